"""A campaign: trial after trial until the time is over, each with the pairs of constructs that were met least so far.

What counts is written down as it is found: distinct texts, states, pairs of constructs in accepted views, refusals by
code, and wrong states, each shrunk to a small trial that can be played again.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.prove.chance import Chance
from headwater.prove.constructs import CONSTRUCTS
from headwater.prove.play import Played, play_aside
from headwater.prove.shrink import shrink
from headwater.prove.trial import Trial, draw_history, draw_view
from headwater.results.proving import ProveResult, WrongState

TICKS_PER_TRIAL = 320
_FIRST_VIEWS = 6
_MOST_VIEWS = 24
"""Views of one trial share its history, its batches and its commits; the first trial shows how long a view takes."""
_SHOWN_LINES = 4
PAIR_GOAL = 5
"""A pair of constructs is covered once so many accepted views have both."""


@dataclass(slots=True, kw_only=True)
class Campaign:
    """What was found so far."""

    spark: SparkSession
    seed: int
    folder: Path
    """Where trials that fail are written."""
    told: Callable[[ProveResult], None]
    texts: set[str] = field(default_factory=set)
    pairs: Counter[frozenset[str]] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    stopped: Counter[str] = field(default_factory=Counter)
    wrong: list[WrongState] = field(default_factory=list)
    state_count: int = 0
    spark_count: int = 0
    _started: float = field(default_factory=time.monotonic)

    def run(self, *, seconds: float, view_limit: int | None) -> ProveResult:
        """Play trials until the time is over, or so many views were accepted."""
        number, view_count = 0, _FIRST_VIEWS
        while view_count and (view_limit is None or len(self.texts) < view_limit):
            started = time.monotonic()
            self._play(self.draw(self.seed * 100_000 + number, view_count))
            self.told(self.result())
            now = time.monotonic()
            left = seconds - (now - self._started)
            view_count = min(_MOST_VIEWS, max(int(left / ((now - started) / view_count)), 0))
            number += 1
        return self.result()

    def replay(self, trial: Trial) -> None:
        """Play a trial as it is; one that is wrong stays in its file."""
        played = self._played(trial)
        self.wrong += [
            WrongState(file="", sql=wrong.view.sql, tick=wrong.tick, difference=wrong.difference.text(_SHOWN_LINES))
            for wrong in played.wrong
        ]

    def draw(self, seed: int, view_count: int) -> Trial:
        """Return the next trial: its views have the pairs of constructs that were met least."""
        chance = Chance(random=random.Random(seed))  # noqa: S311 - reproducible on purpose
        drawn: Counter[frozenset[str]] = Counter(self.pairs)
        views = []
        for number in range(view_count):
            constructs = self._constructs(chance, drawn)
            views.append(draw_view(chance, f"v{number}", constructs))
        return draw_history(seed, TICKS_PER_TRIAL).with_views(views)

    def _constructs(self, chance: Chance, drawn: Counter[frozenset[str]]) -> list[str]:
        """Return three or four constructs of which a pair was drawn least, and note their pairs."""
        names = list(CONSTRUCTS)
        tries = [chance.random.sample(names, chance.pick(3, 3, 4)) for _ in range(60)]
        chosen = min(tries, key=lambda tried: sum(min(drawn[pair], PAIR_GOAL) for pair in _pairs(tried)) / len(tried))
        drawn.update(_pairs(chosen))
        return chosen

    def _play(self, trial: Trial) -> None:
        played = self._played(trial)
        for wrong in played.wrong:
            small, difference = shrink(self.spark, trial, wrong)
            self.folder.mkdir(parents=True, exist_ok=True)
            file = self.folder / f"{trial.seed}-{wrong.view.name}.json"
            file.write_text(small.text(), encoding="utf-8")
            self.wrong.append(
                WrongState(
                    file=str(file), sql=wrong.view.sql, tick=wrong.tick, difference=difference.text(_SHOWN_LINES)
                )
            )

    def _played(self, trial: Trial) -> Played:
        """Play a trial and count what became of its views."""
        played = play_aside(self.spark, trial)
        self._count(trial, played)
        return played

    def _count(self, trial: Trial, played: Played) -> None:
        self.state_count += sum(played.states.values())
        self.spark_count += len(played.judged_by_spark)
        self.stopped.update(stopped.code for stopped in played.stopped.values())
        for view in trial.views:
            error = played.refused.get(view.name)
            if error is not None:
                self.refused[error.code] += 1
            elif view.sql not in self.texts:
                self.texts.add(view.sql)
                self.pairs.update(_pairs(view.constructs))

    def result(self) -> ProveResult:
        """Return what was found so far."""
        every = len(CONSTRUCTS) * (len(CONSTRUCTS) - 1) // 2
        return ProveResult(
            seed=self.seed,
            view_count=len(self.texts),
            state_count=self.state_count,
            judged_by_spark=self.spark_count,
            pair_count=sum(count >= PAIR_GOAL for count in self.pairs.values()),
            pairs_possible=every,
            refused=dict(self.refused),
            stopped=dict(self.stopped),
            wrong=tuple(self.wrong),
            seconds=time.monotonic() - self._started,
        )


def _pairs(constructs: list[str] | tuple[str, ...]) -> list[frozenset[str]]:
    return [frozenset(pair) for pair in combinations(sorted(set(constructs)), 2)]
