"""The rows of a kept table at a tick, from a checkpoint at another tick and the changes in between.

Law: signed bags roll both ways, so one checkpoint serves every tick whose changes are kept:

    state(t) = checkpoint(c) + Σ Δ(s), c < s <= t      where t >= c
    state(t) = checkpoint(c) − Σ Δ(s), t < s <= c      where t <  c

A checkpoint has plain rows: a row with count k stands k times. Only rows that the changes touch are counted; all others
pass through untouched and unshuffled, so the cost beyond reading the checkpoint follows the size of the changes:

    state = (checkpoint ▷ net) ∪ unfold(count(checkpoint ⋉ net) + net)        both null-safe on all columns
"""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from headwater.deltas.on_spark import quoted, unfold
from headwater.model.relation import COUNT


def net(changes: DataFrame, columns: list[str]) -> DataFrame:
    """Return one row for each distinct row whose counts do not cancel, with the sum of its counts."""
    grouped = changes.groupBy(*quoted(columns)).agg(F.sum(COUNT).alias(COUNT))
    return grouped.where(F.col(COUNT) != 0)


def entries(checkpoint: DataFrame, changes: DataFrame, *, back: bool) -> DataFrame:
    """Return what sums up to the checkpoint's rows with signed changes added, or taken back, with `_count`."""
    signed = changes.withColumn(COUNT, -F.col(COUNT) if back else F.col(COUNT))
    return checkpoint.withColumn(COUNT, F.lit(1).cast("bigint")).unionByName(signed)


def roll(checkpoint: DataFrame, changes: DataFrame, *, back: bool) -> DataFrame:
    """Return the checkpoint's rows with signed changes added, or taken back."""
    columns = checkpoint.columns
    if back:
        changes = changes.withColumn(COUNT, -F.col(COUNT))
    netted = net(changes, columns)
    touched = netted.select(*quoted(columns))
    same = _same(checkpoint, touched, columns)
    untouched = checkpoint.join(touched, same, "left_anti")
    counted = checkpoint.join(touched, same, "left_semi").withColumn(COUNT, F.lit(1).cast("bigint"))
    return untouched.unionByName(unfold(net(counted.unionByName(netted), columns), columns))


def _same(left: DataFrame, right: DataFrame, columns: list[str]) -> Column:
    return reduce(and_, (left[name].eqNullSafe(right[name]) for name in quoted(columns)))
