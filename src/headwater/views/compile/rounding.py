"""Aggregates that add up doubles: Spark's own depend on the order in which it meets the rows.

SUM and AVG have a definition that does not (`views.float_sums`): they are kept as exact parts, and put together for
every group that changes. Of the others none is known. Computed again from the same rows, such a value may differ from
the one that was computed, and stored, before; taking the old row away would then take away a row that is not there. So
a view with such an aggregate is recomputed, and compared with the rows it really holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import sqlglot
from sqlglot import exp

from headwater.views.compile.reasons import ROUNDED, NoIncrementalForm
from headwater.views.compile.reduce_aggregates import Need, Reduced
from headwater.views.exact_sums import FloatSum, describe_sum
from headwater.views.float_sums import amount_text, place_text, sum_of_values
from headwater.views.spark_text import spark_text
from headwater.views.value_kinds import Kind, value_of_type

_IN_DOUBLES = (
    exp.Corr,
    exp.CovarPop,
    exp.CovarSamp,
    exp.Kurtosis,
    exp.Skewness,
    exp.Stddev,
    exp.StddevPop,
    exp.StddevSamp,
    exp.Variance,
    exp.VariancePop,
)


def find_float_sum(call: exp.Expr, type_of: Callable[[exp.Expr], str]) -> FloatSum | None:
    """Return what an aggregate sums up if it is a SUM or AVG of doubles; raise if it adds doubles in another way.

    `type_of` gives the type of what a sum is of; strings are added as doubles.
    """
    if call.find(*_IN_DOUBLES):
        raise NoIncrementalForm(ROUNDED, spark_text(call))
    inner = call.find(exp.Sum, exp.Avg)
    if inner is None:
        return None
    _, found = describe_sum(inner)
    return None if value_of_type(type_of(found.argument)).kind in {Kind.INTEGER, Kind.DECIMAL} else found


def in_parts(reduced: Reduced, found: FloatSum) -> Reduced:
    """Return a sum of doubles with what it needs: the places and amounts of its values, or all rows for DISTINCT."""
    if found.is_distinct:
        return replace(reduced, need=Need.ROWS, float_sum=found)
    value = spark_text(found.argument)
    parts = tuple(sqlglot.parse_one(text, read="spark") for text in (place_text(value), amount_text(value)))
    return replace(reduced, need=Need.PARTS, columns=parts, float_sum=found)


def float_sum_text(call: exp.Expr, *, over: str = "") -> str:
    """Return the Spark expression for a SUM or AVG of doubles, FILTER and DISTINCT included, from all of its rows."""
    inner = call.find(exp.Sum, exp.Avg)
    assert inner is not None, "a sum of doubles is a SUM or an AVG"
    _, found = describe_sum(inner)
    return sum_of_values(
        spark_text(found.argument), over=over, is_distinct=found.is_distinct, is_average=found.is_average
    )
