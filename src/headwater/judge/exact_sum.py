"""Sums of doubles as the judge has them: exact, then rounded once, as `views.float_sums` defines and does otherwise.

>>> exact_sum([1e308, 1e308, -1e308, None]), exact_sum([0.1] * 10), exact_sum([None])
(1e+308, 1.0, None)
>>> exact_sum([1e308, 1e308]), exact_sum([float("inf"), float("-inf")]), exact_average([1.0, 2.0])
(inf, nan, 1.5)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def exact_sum(values: Sequence[float | None] | None) -> float | None:
    """Return the sum of the values that are known, None if there are none."""
    known = [value for value in values or () if value is not None]
    if not known:
        return None
    if special := [value for value in known if not math.isfinite(value)]:
        return sum(special)
    total = sum(map(Fraction, known))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def exact_average(values: Sequence[float | None] | None) -> float | None:
    """Return the sum by the number of values that are known, None if there are none."""
    total = exact_sum(values)
    return None if total is None else total / sum(value is not None for value in values or ())
