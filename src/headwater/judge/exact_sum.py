"""Aggregates of doubles as the judge computes them. `views.float_sums` and `views.moments` say what they are.

>>> exact_sum([1e308, 1e308, -1e308, None]), exact_sum([0.1] * 10), exact_sum([None])
(1e+308, 1.0, None)
>>> exact_sum([1e308, 1e308]), exact_sum([float("inf"), float("-inf")]), exact_average([1.0, 2.0])
(inf, nan, 1.5)
>>> exact_variance([1e9 + 1, 1e9 + 2, None, 1e9 + 3]), exact_variance([4.0]), exact_variance_pop([4.0])
(1.0, None, 0.0)
>>> exact_corr([1.0, 2.0, 3.0], [2.0, 4.0, None]), exact_corr([1.0, 2.0], [5.0, 5.0]), exact_kurtosis([1.0, 2.0])
(1.0, None, -2.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from sqlglot import exp

Values = Sequence[float | None] | None


def exact_sum(values: Values) -> float | None:
    """Return the sum of the values that are known, None if there are none."""
    present = [value for value in values or () if value is not None]
    if not present:
        return None
    if special := [value for value in present if not math.isfinite(value)]:
        return sum(special)
    total = sum(map(Fraction, present))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def exact_average(values: Values) -> float | None:
    """Return the sum by the number of values that are known, None if there are none."""
    total = exact_sum(values)
    return None if total is None else total / sum(value is not None for value in values or ())


def exact_variance(xs: Values) -> float | None:
    """Return VARIANCE, VAR_SAMP."""
    return exact_covariance(xs, xs)


def exact_variance_pop(xs: Values) -> float | None:
    """Return VAR_POP."""
    return exact_covariance_pop(xs, xs)


def exact_deviation(xs: Values) -> float | None:
    """Return STDDEV, STDDEV_SAMP."""
    spread = exact_variance(xs)
    return None if spread is None else math.sqrt(spread)


def exact_deviation_pop(xs: Values) -> float | None:
    """Return STDDEV_POP."""
    spread = exact_variance_pop(xs)
    return None if spread is None else math.sqrt(spread)


def exact_covariance(xs: Values, ys: Values) -> float | None:
    """Return COVAR_SAMP."""
    pairs = _from_their_means(xs, ys)
    return _divided(_sum([x * y for x, y in pairs]), len(pairs) - 1)


def exact_covariance_pop(xs: Values, ys: Values) -> float | None:
    """Return COVAR_POP."""
    pairs = _from_their_means(xs, ys)
    return _divided(_sum([x * y for x, y in pairs]), len(pairs))


def exact_corr(xs: Values, ys: Values) -> float | None:
    """Return CORR."""
    pairs = _from_their_means(xs, ys)
    if len(pairs) <= 1:
        return None
    own = _sum([x * x for x, _ in pairs]) * _sum([y * y for _, y in pairs])
    return _divided(_sum([x * y for x, y in pairs]), math.sqrt(own))


def exact_skewness(xs: Values) -> float | None:
    """Return SKEWNESS."""
    found = [x for x, _ in _from_their_means(xs, xs)]
    squares = _sum([x * x for x in found])
    return _divided(math.sqrt(len(found)) * _sum([x * x * x for x in found]), math.sqrt(squares * squares * squares))


def exact_kurtosis(xs: Values) -> float | None:
    """Return KURTOSIS."""
    found = [x for x, _ in _from_their_means(xs, xs)]
    squares = _sum([x * x for x in found])
    ratio = _divided(len(found) * _sum([x * x * x * x for x in found]), squares * squares)
    return None if ratio is None else ratio - 3


EXACT: dict[type[exp.Expr], Callable[..., float | None]] = {
    exp.Sum: exact_sum,
    exp.Avg: exact_average,
    exp.Variance: exact_variance,
    exp.VariancePop: exact_variance_pop,
    exp.Stddev: exact_deviation,
    exp.StddevSamp: exact_deviation,
    exp.StddevPop: exact_deviation_pop,
    exp.CovarSamp: exact_covariance,
    exp.CovarPop: exact_covariance_pop,
    exp.Corr: exact_corr,
    exp.Skewness: exact_skewness,
    exp.Kurtosis: exact_kurtosis,
}
"""By what sqlglot calls them."""


def _from_their_means(xs: Values, ys: Values) -> list[tuple[float, float]]:
    """Return how far the known values are from their means, smallest first. Of two columns, where both are known."""
    pairs = sorted(
        (x + 0.0, y + 0.0) for x, y in zip(xs or (), ys or (), strict=True) if x is not None and y is not None
    )
    left, right = (_sum([pair[side] for pair in pairs]) / max(1, len(pairs)) for side in (0, 1))
    return [(x - left, y - right) for x, y in pairs]


def _sum(values: Sequence[float]) -> float:
    """Return the sum as it comes from adding one by one."""
    total = 0.0
    for value in values:
        total += value
    return total


def _divided(value: float, by: float) -> float | None:
    return None if by <= 0 else value / by
