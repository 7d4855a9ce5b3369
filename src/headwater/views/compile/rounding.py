"""Aggregates that add up doubles: Spark's own depend on the order in which it meets the rows.

Computed again from the same rows, such a value may differ from the one that was computed, and stored, before; taking
the old row away would then take away a row that is not there. So all of them have a definition that depends on the
values alone. SUM and AVG (`views.float_sums`) are kept as exact parts, and put together for every group that changes;
VARIANCE and its like (`views.moments`) are computed from the rows of every group that changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import sqlglot
from sqlglot import exp

from headwater.views.compile.reduce_aggregates import Need, Reduced
from headwater.views.laws.exact_sums import FloatAggregate, describe_aggregate, text_on_spark
from headwater.views.laws.float_sums import amount_text, place_text
from headwater.views.laws.moments import MOMENTS
from headwater.views.text.spark_text import spark_text
from headwater.views.text.value_kinds import ValueKind, value_of_type


def find_float_aggregates(
    calls: Sequence[exp.Expr], types_of: Callable[[list[exp.Expr]], Sequence[str]]
) -> list[FloatAggregate | None]:
    """Return for each aggregate what it adds up if it adds doubles.

    `types_of` gives the types of what sums are of, all asked for at once; strings are added as doubles.
    """
    inner = [call.find(exp.Sum, exp.Avg, *MOMENTS) for call in calls]
    described = [None if one is None else describe_aggregate(one)[1] for one in inner]
    sums = [one for one in described if one is not None and one.function not in MOMENTS]
    kinds = iter(types_of([one.arguments[0] for one in sums]) if sums else ())
    exact = [one for one in sums if value_of_type(next(kinds)).kind in {ValueKind.INTEGER, ValueKind.DECIMAL}]
    return [None if any(one is known for known in exact) else one for one in described]


def in_parts(reduced: Reduced, found: FloatAggregate) -> Reduced:
    """Return an aggregate of doubles with what it needs: for sums the values' places and amounts, else all rows."""
    if found.is_distinct or found.function in MOMENTS:
        return replace(reduced, need=Need.ROWS, adds=found)
    value = spark_text(found.arguments[0])
    parts = tuple(sqlglot.parse_one(text, read="spark") for text in (place_text(value), amount_text(value)))
    return replace(reduced, need=Need.PARTS, columns=parts, adds=found)


def float_aggregate_text(call: exp.Expr, *, over: str = "") -> str:
    """Return the Spark expression for an aggregate of doubles, FILTER and DISTINCT included, from all of its rows."""
    inner = call.find(exp.Sum, exp.Avg, *MOMENTS)
    assert inner is not None, "an aggregate of doubles is a SUM, an AVG or a moment"
    _, found = describe_aggregate(inner)
    return text_on_spark(found, over=over)
