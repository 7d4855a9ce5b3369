"""A campaign: trial after trial until the time is over, each with the pairs of constructs that were met least so far.

What counts is written down as it is found (`record`): distinct texts, states, pairs of constructs in accepted views,
refusals by code, and wrong states, each shrunk to a small trial that can be played again.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.maintenance.published.algorithms import NAMES
from headwater.model.project import DEFAULT_ALGORITHM
from headwater.prove.chance import Chance
from headwater.prove.constructs.every import CONSTRUCTS, OTHER_VIEW, width
from headwater.prove.play import Played, Wrong, play_aside
from headwater.prove.record import PAIR_GOAL, Record, add_to_file, pair_name, pairs_of, read_record
from headwater.prove.result import ProveResult, WrongState
from headwater.prove.shrink import shrink
from headwater.prove.trial import Trial, TrialView, draw_history, draw_published, draw_view

TICKS_PER_TRIAL = 450
_FIRST_VIEWS = 6
_MOST_VIEWS = 30
"""Views of one trial share its history, its batches and its commits; the first trial shows how long a view takes."""
_SHOWN_LINES = 4
_SIZES = (2, 3, 3, 4, 4, 4, 4, 5, 5, 6, 7)
"""How many constructs are put on top of each other."""
_MOST_WIDTH = 3
"""A batch of many ticks computes all combinations of its changes: joins on top of each other take the power of them."""
_MOST_SHRUNK = 5
"""How many failures of a run are shrunk: each takes as long as a trial or two."""
_PUBLISHED = tuple(name for name in NAMES if name != DEFAULT_ALGORITHM)
_PUBLISHED_SHARE = 0.06
_REFUSALS = 3
"""After this many refusals, and none accepted, a pair is tried alone: is it the pair that is refused?"""


@dataclass(slots=True, kw_only=True)
class Campaign:
    """What was found so far."""

    spark: SparkSession
    seed: int
    folder: Path
    """Where trials that fail are written."""
    report: Callable[[ProveResult], None]
    file: Path | None = None
    """The record that is read and added to."""
    record: Record = field(init=False)
    _shrunk: int = 0

    def __post_init__(self) -> None:
        """Read what earlier runs found."""
        self.record = read_record(self.file)

    def run(self, *, seconds: float, view_limit: int | None) -> ProveResult:
        """Play trials until the time is over, or enough views were accepted."""
        began, view_count = time.monotonic(), _FIRST_VIEWS
        while view_count and (view_limit is None or len(self.record.texts) < view_limit):
            started = time.monotonic()
            number = self.record.trials[str(self.seed)]
            self.play(self.draw(self.seed * 100_000 + number, view_count))
            self.report(self.result())
            now = time.monotonic()
            left = seconds - (now - began)
            view_count = min(_MOST_VIEWS, max(int(left / ((now - started) / view_count)), 0))
        return self.result()

    def replay(self, trial: Trial) -> None:
        """Play a trial as it is. One that is wrong stays in its file."""
        played = play_aside(self.spark, trial)
        found = self._counted(trial, played)
        found.wrong += [_told(wrong, "", wrong.difference.text(_SHOWN_LINES)) for wrong in played.wrong]
        self.record.add(found)

    def play(self, trial: Trial) -> None:
        """Play a trial, make small what is wrong, and write down what was found."""
        started = time.monotonic()
        played = play_aside(self.spark, trial)
        found = self._counted(trial, played)
        found.wrong += [self._kept(trial, wrong) for wrong in played.wrong]
        found.trials[str(self.seed)] += 1
        found.seconds = time.monotonic() - started
        if self.file is None:
            self.record.add(found)
        else:
            self.record = add_to_file(self.file, found)

    def _counted(self, trial: Trial, played: Played) -> Record:
        """Count what became of a trial's views."""
        found = Record(state_count=played.states.total(), spark_count=len(played.judged_by_spark))
        found.stopped.update(stopped.code for stopped in played.stopped.values())
        texts = {view.name: view.whole_text for view in trial.views}
        for name, stopped in played.stopped.items():
            found.examples[stopped.code] = f"{texts.get(name, name)}\n-- {stopped}"
        found.disagreed += [f"{texts[name]}\n-- {differs}" for name, differs in played.disagreed.items()]
        for view in trial.views:
            error = played.refused.get(view.name)
            if view.name in played.left_out:
                continue
            if view.name in played.unjudged:
                found.unjudged.append(f"{view.whole_text}\n-- {played.unjudged[view.name]}")
                continue
            if error is None:
                found.accept(view.whole_text, view.constructs, self.record.texts)
            else:
                found.refuse(view.whole_text, view.constructs, error.code, error.detail)
        return found

    def _kept(self, trial: Trial, wrong: Wrong) -> WrongState:
        """Write a trial with a wrong state to a file, as small as it can be made."""
        small, difference = trial.with_views([wrong.view]), wrong.difference
        if self._shrunk < _MOST_SHRUNK:
            self._shrunk += 1
            small, difference = shrink(self.spark, trial, wrong)
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{trial.seed}-{wrong.view.name}.json"
        file.write_text(small.text(), encoding="utf-8")
        return _told(wrong, str(file), difference.text(_SHOWN_LINES))

    def draw(self, seed: int, view_count: int) -> Trial:
        """Return the next trial: its views have the pairs of constructs that were met least."""
        chance = Chance(random=random.Random(seed))  # noqa: S311 - reproducible on purpose
        drawn = Counter(self.record.pairs)
        ruled_out = self.record.ruled_out()
        views: dict[str, TrialView] = {}
        for number in range(view_count):
            constructs = self._constructs(chance, drawn, ruled_out.keys())
            if not views and OTHER_VIEW in constructs:
                constructs = ["join" if name == OTHER_VIEW else name for name in constructs]
            drawn.update(pairs_of(constructs))
            views[f"v{number}"] = draw_view(chance, f"v{number}", constructs, views)
        if chance.random.random() < _PUBLISHED_SHARE:
            views["published"] = draw_published(chance, "published", _PUBLISHED)
        return draw_history(seed, TICKS_PER_TRIAL).with_views(views.values())

    def _constructs(self, chance: Chance, drawn: Counter[str], ruled_out: Collection[str]) -> list[str]:
        """Return a pair that was drawn least, and constructs that make more such pairs with it."""
        names = list(CONSTRUCTS)
        tries = [chance.random.sample(names, 2) for _ in range(400)]
        fitting = [pair for pair in tries if pair_name(*pair) not in ruled_out]
        chosen = min(fitting or tries, key=lambda pair: drawn[pair_name(*pair)])
        seldom = pair_name(*chosen)
        if not self.record.pairs[seldom] and self.record.refused_pairs[seldom] >= _REFUSALS:
            return chosen
        size = chance.pick(*_SIZES)
        while len(chosen) < size:
            left = max(_MOST_WIDTH - sum(map(width, chosen)), 0)
            others = [name for name in chance.random.sample(names, 40) if name not in chosen and width(name) <= left]
            chosen.append(max(others, key=lambda name: _worth(chosen, name, drawn, ruled_out)))
        chance.random.shuffle(chosen)
        return chosen

    def result(self) -> ProveResult:
        """Return what was found so far, in this run and in the recorded ones."""
        record, ruled_out = self.record, self.record.ruled_out()
        every = [pair_name(one, other) for one, other in combinations(CONSTRUCTS, 2)]
        return ProveResult(
            seed=self.seed,
            view_count=len(record.texts),
            state_count=record.state_count,
            judged_by_spark=record.spark_count,
            pair_count=sum(record.pairs[pair] >= PAIR_GOAL for pair in every),
            pairs_possible=sum(pair not in ruled_out for pair in every),
            ruled_out=ruled_out,
            refused=dict(record.refused),
            stopped=dict(record.stopped),
            unjudged=tuple(record.unjudged),
            disagreed=tuple(record.disagreed),
            wrong=tuple(record.wrong),
            seconds=record.seconds,
        )


def _worth(chosen: Sequence[str], name: str, drawn: Counter[str], ruled_out: Collection[str]) -> float:
    """Return how many rare pairs a construct would add. A pair that is refused by rule spoils the view."""
    pairs = [pair_name(one, name) for one in chosen]
    return sum(-1000 if pair in ruled_out else max(PAIR_GOAL - drawn[pair], 0) for pair in pairs)


def _told(wrong: Wrong, file: str, difference: str) -> WrongState:
    return WrongState(file=file, sql=wrong.view.whole_text, tick=wrong.tick, difference=difference)
