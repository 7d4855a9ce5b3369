"""Make a trial that fails smaller as long as it fails: one view, fewer transactions, fewer rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from headwater.deltas.compare import Difference
from headwater.model.relation import RelationName
from headwater.prove.chance import RELATIONS
from headwater.prove.play import Wrong, play_aside
from headwater.prove.trial import Trial
from headwater.sources.scripted import Changes, Values

_MOST_TRIES = 24


def shrink(spark: SparkSession, trial: Trial, wrong: Wrong) -> tuple[Trial, Difference]:
    """Return a small trial that is wrong as well, and how. The whole one, with all its views, if no smaller one is."""
    found = _Shrinking(spark=spark, best=trial, difference=wrong.difference)
    found.shrink(wrong)
    return found.best, found.difference


class _Shrinking:
    """The smallest trial so far that is wrong."""

    def __init__(self, spark: SparkSession, best: Trial, difference: Difference) -> None:
        self.best = best
        self.difference = difference
        self._spark = spark
        self._left = _MOST_TRIES

    def shrink(self, wrong: Wrong) -> None:
        """Drop other views and what comes later, then halves, quarters, eighths of the transactions."""
        self._try(self.best.with_views([wrong.view]))
        transactions = wrong.tick - len(self.best.before)
        self._try(replace(self.best, after=self.best.after[:transactions], cuts=(transactions,)))
        size = max(len(self.best.after) // 2, 1)
        while self._left > 0:
            pieces = range(0, len(self.best.after), size)
            smaller = [self._try(_without(self.best, start, size)) for start in reversed(pieces)]
            if size == 1 and not any(smaller):
                break
            size = max(size // 2, 1)

    def _try(self, trial: Trial) -> bool:
        """Take a trial if it is wrong too."""
        if self._left <= 0 or not trial.after or trial == self.best:
            return False
        self._left -= 1
        played = play_aside(self._spark, trial)
        if not played.wrong:
            return False
        self.best, self.difference = trial, played.wrong[0].difference
        return True


def _without(trial: Trial, start: int, size: int) -> Trial:
    """Return a trial without some transactions. What others took from them is not taken."""
    kept = (*trial.after[:start], *trial.after[start + size :])
    return replace(trial, after=possible(trial.before, kept), cuts=(len(kept),) if kept else ())


def possible(
    before: Sequence[tuple[str, Changes]], after: Sequence[tuple[str, Changes]]
) -> tuple[tuple[str, Changes], ...]:
    """Return transactions as far as they are possible: no row goes that is not there, no key comes twice."""
    held: dict[RelationName, Counter[Values]] = {relation.name: Counter() for relation in RELATIONS}
    width = {relation.name: len(relation.key) for relation in RELATIONS}
    done = []
    for source, changes in (*before, *after):
        left: dict[RelationName, dict[Values, int]] = {}
        for name, rows in changes.items():
            kept = _possible_rows(rows, held[name], width[name])
            held[name].update(kept)
            if kept:
                left[name] = kept
        done.append((source, left))
    return tuple(one for one in done[len(before) :] if one[1])


def _possible_rows(rows: Mapping[Values, int], held: Counter[Values], width: int) -> dict[Values, int]:
    gone = {row: -min(-count, held[row]) for row, count in rows.items() if count < 0 and held[row]}
    keys = {row[:width] for row, count in held.items() if count + gone.get(row, 0) > 0}
    come = {row: count for row, count in rows.items() if count > 0 and not (width and row[:width] in keys)}
    return gone | come
