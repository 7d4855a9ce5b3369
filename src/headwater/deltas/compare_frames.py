"""Compare two Spark frames as bags, so that only what differs leaves Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from headwater.deltas.compare import Difference, Row, difference
from headwater.model.relation import COUNT

_MOST_ROWS = 1000


def compare_frames(expected: DataFrame, actual: DataFrame) -> Difference:
    """Return what `actual` lacks and has too much of: at most a thousand different rows."""
    return compare_counted(expected, actual.withColumn(COUNT, F.lit(1)))


def compare_counted(expected: DataFrame, actual: DataFrame) -> Difference:
    """Return the same where the actual rows say with `_count` how often they stand: even fewer than zero times.

    Both are computed by themselves first: planned together, Spark 4.3 fails on some correlated sub-queries ("key not
    found").
    """
    columns = [f"`{column}`" for column in expected.columns]
    right, counted = expected.persist(), actual.select(*columns, (-F.col(COUNT)).alias(COUNT)).persist()
    try:
        both = right.withColumn(COUNT, F.lit(1)).unionByName(counted)
        balance = both.groupBy(*columns).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) != 0)
        missing: dict[Row, int] = {}
        surplus: dict[Row, int] = {}
        for *row, count in balance.limit(_MOST_ROWS).collect():
            (missing if count > 0 else surplus)[tuple(row)] = abs(count)
    finally:
        right.unpersist()
        counted.unpersist()
    return difference(missing, surplus)


def fingerprint(frame: DataFrame) -> Row:
    """Return a value that two equal frames share, and that two different ones share hardly ever."""
    columns = [f"`{column}`" for column in frame.columns]
    hashed = F.xxhash64(*columns, *(F.col(column).isNull() for column in columns))
    [row] = frame.agg(F.count(F.lit(1)), F.sum(hashed.cast("decimal(38,0)"))).collect()
    return tuple(row)
