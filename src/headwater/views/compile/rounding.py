"""Aggregates that add up doubles: their last digits depend on the order in which Spark meets the rows.

Computed again from the same rows, such a value may differ from the one that was computed, and stored, before. Taking
the old row away would then take away a row that is not there, and leave the one that is. So a view with such an
aggregate is recomputed, and compared with the rows it really holds.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from headwater.views.compile.reasons import ROUNDED, NoIncrementalForm
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


def is_exact(kind: str) -> bool:
    """Tell whether sums of a type are exact in any order.

    >>> is_exact("decimal(12,2)"), is_exact("double")
    (True, False)
    """
    return value_of_type(kind).kind in {Kind.INTEGER, Kind.DECIMAL}


def require_exact(call: exp.Expr, type_of: Callable[[exp.Expr], str]) -> None:
    """Raise if an aggregate adds up doubles; `type_of` gives the type of what a sum is of."""
    for sum_of in call.find_all(exp.Sum, exp.Avg):
        argument = sum_of.this.expressions[0] if isinstance(sum_of.this, exp.Distinct) else sum_of.this
        if not is_exact(type_of(argument)):
            raise NoIncrementalForm(ROUNDED, spark_text(call))
    if call.find(*_IN_DOUBLES):
        raise NoIncrementalForm(ROUNDED, spark_text(call))
