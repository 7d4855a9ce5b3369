"""VARIANCE, STDDEV, CORR and their like by a definition that depends on the values alone, as SUM has in `float_sums`.

Spark's own merge partial results, and each merge rounds: the last digits depend on where the rows were. Here values are
added in their own order, smallest first, so equal bags of rows have equal values. Of n values, as doubles (those that
are not NULL; with two arguments, the rows where both are known, in the order of the first, then of the second):

    mean of x = SUM(x) / n   dx = x - mean of x   xx = SUM(dx · dx)   xxx = SUM(dx · dx · dx)   xy = SUM(dx · dy) ...

| function | is |
|---|---|
| VAR_POP, VARIANCE | xx / n, xx / (n - 1) |
| STDDEV_POP, STDDEV | the square root of these |
| COVAR_POP, COVAR_SAMP | xy / n, xy / (n - 1) |
| SKEWNESS | √n · xxx / √(xx · xx · xx) |
| KURTOSIS | n · xxxx / (xx · xx) - 3 |
| CORR | xy / √(xx · yy), of more than one row |

Every operation rounds once, from left to right; NULL where there is no value or the divisor is 0. All values of a group
are looked at again when one comes or goes. Exact sums as `float_sums` keeps them would not help: what is added are
distances from the mean, and all of those change with it; and from sums of x and x² the digits would be lost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

_FORMULAS: dict[type[exp.Expr], str] = {
    exp.VariancePop: "s.xx / n",
    exp.Variance: "s.xx / NULLIF(n - 1, 0)",
    exp.StddevPop: "SQRT(s.xx / n)",
    exp.Stddev: "SQRT(s.xx / NULLIF(n - 1, 0))",
    exp.StddevSamp: "SQRT(s.xx / NULLIF(n - 1, 0))",
    exp.CovarPop: "s.xy / n",
    exp.CovarSamp: "s.xy / NULLIF(n - 1, 0)",
    exp.Skewness: "SQRT(n) * s.xxx / NULLIF(SQRT(s.xx * s.xx * s.xx), 0)",
    exp.Kurtosis: "n * s.xxxx / NULLIF(s.xx * s.xx, 0) - 3",
    exp.Corr: "CASE WHEN n > 1 THEN s.xy / NULLIF(SQRT(s.xx * s.yy), 0) END",
}
MOMENTS = tuple(_FORMULAS)


def moment_of_values(function: type[exp.Expr], values: Sequence[str], *, over: str = "", is_distinct: bool) -> str:
    """Return the Spark expression for one of them. `over` is the text of a window, parentheses included."""
    letters = "xy"[: len(values)]
    known = " AND ".join(f"{value} IS NOT NULL" for value in values)
    doubles = ", ".join(f"{_double(value)} AS {letter}" for letter, value in zip(letters, values, strict=True))
    listed = f"COLLECT_LIST(CASE WHEN {known} THEN STRUCT({doubles}) END){f' OVER {over}' if over else ''}"
    means = ", ".join(f"{_sum(f'r.{letter}')} / SIZE(rows) AS {letter}" for letter in letters)
    formula = _FORMULAS[function]
    sums = ", ".join(f"{_sum_of_products(name)} AS {name}" for name in _sums_in(formula))
    value = _with("SIZE(rows)", "n", _with(f"STRUCT({means})", "m", _with(f"STRUCT({sums})", "s", formula)))
    rows = f"ARRAY_SORT({f'ARRAY_DISTINCT({listed})' if is_distinct else listed})"
    return _with(rows, "rows", f"CASE WHEN SIZE(rows) > 0 THEN {value} END")


def _double(value: str) -> str:
    """Return a value as a double. -0.0 becomes 0.0."""
    return f"CAST({value} AS DOUBLE) + CAST(0 AS DOUBLE)"


def _sums_in(formula: str) -> list[str]:
    return sorted(set(re.findall(r"s\.(\w+)", formula)))


def _sum_of_products(letters: str) -> str:
    factors = " * ".join(f"(r.{letter} - m.{letter})" for letter in letters)
    return _sum(factors)


def _sum(value: str) -> str:
    """Return the sum of a value of each row `r`, in the order of the rows."""
    return f"AGGREGATE(TRANSFORM(rows, r -> {value}), CAST(0 AS DOUBLE), (total, one) -> total + one)"


def _with(value: str, name: str, body: str) -> str:
    """Return an expression in which a name stands for a value that is computed once."""
    return f"TRANSFORM(ARRAY({value}), {name} -> {body})[0]"
