"""Sums of doubles that depend on the values alone: the definition that maintenance and the judge both use.

Adding doubles rounds, so a sum depends on the order of its additions. Spark's SUM adds rows in the order it meets them:
the same rows, read from other files, give another last digit; and a total that is kept, added to and taken from drifts
away for good. Here the order is part of the definition:

    SUM(x)  = the values of x that are not NULL, as doubles, sorted by size (absolute value) and then by value,
              added one after the other to 0.0; NULL if there are none
    AVG(x)  = SUM(x) / COUNT(x)
    VAR(x)  = the values in the same order, one after the other, by Welford's recurrence (below); NULL as in Spark
    STDDEV  = SQRT(VAR)

So equal bags of rows have equal sums, whatever happened in between. Small values first is also the more exact order.

    (n, mean, squares) + x:   d = x - mean,   mean' = mean + d / (n + 1),   squares' = squares + d · (x - mean')

NaN sorts last; infinities of both signs give NaN, as IEEE 754 has it. FLOAT is added as DOUBLE, as Spark does. 0.0 and
-0.0 add up to 0.0.

Not covered: the last digits may differ from those of Spark's own SUM over the same rows (which may differ from its own,
too). CORR, COVAR, REGR, SKEWNESS and KURTOSIS have no such definition yet. A window's running SUM of doubles is added
in the window's order, which is total, and so is defined already.
Cost: the partition's values are sorted, at every tick that touches it: a sum of doubles is a regroup, not a group.
"""

from __future__ import annotations


def float_sum(value: str) -> str:
    """Return the Spark expression for the sum of an expression of type FLOAT or DOUBLE.

    >>> float_sum("x").startswith("CASE WHEN COUNT(x) > 0 THEN AGGREGATE(TRANSFORM(ARRAY_SORT(COLLECT_LIST(")
    True
    """
    total = f"AGGREGATE({_in_order(value, 'one.value')}, CAST(0 AS DOUBLE), (total, one) -> total + one)"
    return f"CASE WHEN COUNT({value}) > 0 THEN {total} END"


def float_average(value: str) -> str:
    """Return the Spark expression for the average of an expression of type FLOAT or DOUBLE."""
    return f"CASE WHEN COUNT({value}) > 0 THEN ({float_sum(value)}) / COUNT({value}) END"


def population_variance(value: str) -> str:
    """Return the Spark expression for VAR_POP of a number."""
    return f"CASE WHEN COUNT({value}) > 0 THEN {_squares(value)} / COUNT({value}) END"


def sample_variance(value: str) -> str:
    """Return the Spark expression for VAR_SAMP, or VARIANCE, of a number."""
    return f"CASE WHEN COUNT({value}) > 1 THEN {_squares(value)} / (COUNT({value}) - 1) END"


def population_deviation(value: str) -> str:
    """Return the Spark expression for STDDEV_POP of a number."""
    return f"SQRT({population_variance(value)})"


def sample_deviation(value: str) -> str:
    """Return the Spark expression for STDDEV_SAMP, or STDDEV, of a number."""
    return f"SQRT({sample_variance(value)})"


def _squares(value: str) -> str:
    """Return the expression for the sum of squared distances from the mean."""
    nothing = "STRUCT(CAST(0 AS DOUBLE) AS n, CAST(0 AS DOUBLE) AS mean, CAST(0 AS DOUBLE) AS squares)"
    single = "STRUCT(CAST(1 AS DOUBLE) AS n, one.value AS mean, CAST(0 AS DOUBLE) AS squares)"
    mean = "seen.mean + (one.mean - seen.mean) / (seen.n + one.n)"
    squares = f"seen.squares + (one.mean - seen.mean) * (one.mean - ({mean}))"
    added = f"STRUCT(seen.n + one.n AS n, {mean} AS mean, {squares} AS squares)"
    return f"AGGREGATE({_in_order(value, single)}, {nothing}, (seen, one) -> {added}).squares"


def _in_order(value: str, element: str) -> str:
    """Return the expression for the array of the values in the order of the definition, each as an element."""
    number = f"CAST({value} AS DOUBLE)"
    sized = f"CASE WHEN {value} IS NOT NULL THEN STRUCT(ABS({number}) AS size, {number} AS value) END"
    return f"TRANSFORM(ARRAY_SORT(COLLECT_LIST({sized})), one -> {element})"
