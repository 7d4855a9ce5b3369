"""Compare two Spark frames as bags: the symmetric difference, both ways, so that only what differs leaves Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headwater.judge.compare import Difference, bag_of, difference

_MOST_ROWS = 1000


def compare_frames(expected: DataFrame, actual: DataFrame) -> Difference:
    """Return what `actual` lacks and has too much of, at most a thousand rows of each."""
    missing = expected.exceptAll(actual).limit(_MOST_ROWS)
    surplus = actual.exceptAll(expected).limit(_MOST_ROWS)
    return difference(bag_of(map(tuple, missing.collect())), bag_of(map(tuple, surplus.collect())))
