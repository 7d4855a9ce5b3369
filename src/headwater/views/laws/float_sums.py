"""Sums of doubles that depend on the values alone: the definition that maintenance and the judge both use.

Adding doubles rounds, so a sum depends on the order of its additions: the same rows, read from other files, give
another last digit, and a total that is kept, added to and taken from drifts away for good. Here it is defined by its
value:

    SUM(x)  = the exact sum of the values that are not NULL, rounded once, to the nearest double (ties to even);
              NaN if one is NaN or both infinities are there, else the infinity that is there; NULL if there is no value
    AVG(x)  = SUM(x) / COUNT(x)

Equal bags of rows have equal sums, whatever happened in between, and it is the best answer that a double can hold.

Every double is a whole number of units: x = amount · 2^(40 · place - 1074). The place follows from the size of x, and
the amount has at most 93 bits; sums of amounts per place are exact, linear, and fit a DECIMAL(38, 0) up to ten billion
rows. Few values have places of their own: a group of prices has one or two. So

    rows ──π place, amount──► ──GROUP BY key, place──► ──per touched key: put the amounts together──►

Putting together is a carry from place to place, in base 2^40, from the lowest to four beyond the highest; what is left
then is the sign, 0 or -1. Of the digits, the three highest that say something are at least 80 bits; whatever stands
below only matters for being there (the last bit is set if it is zero: rounding to odd), so the one rounding to 53 bits
is right. A sum too small for that has no more than 52 bits and is not rounded at all; one too large is infinite.

0.0 and -0.0 add up to 0.0. FLOAT is added as DOUBLE, as Spark does.
VARIANCE, STDDEV, CORR and their like have a definition of their own (`moments`). The last digit may differ from the one
that Spark's own SUM gives, which may differ from run to run.
"""

from __future__ import annotations

_BASE = 2**40
_SPECIAL = 1000
"""The places of NaN, of infinity and of minus infinity are this and the next two."""

_UNIT = f"CAST({_BASE} AS DECIMAL(13, 0))"


def place_text(value: str) -> str:
    """Return the Spark expression for the place of a double, NULL for NULL."""
    number = f"CAST({value} AS DOUBLE)"
    return (
        f"CASE WHEN {_is_finite(number)} THEN {_size(number)} WHEN ISNAN({number}) THEN {_SPECIAL} "
        f"WHEN {number} > 0 THEN {_SPECIAL + 1} WHEN {number} < 0 THEN {_SPECIAL + 2} END"
    )


def amount_text(value: str) -> str:
    """Return the Spark expression for how many units of its place a double is.

    For NaN and infinities it gives 1. The scaled value is a whole number of up to 93 bits. It becomes a decimal in two
    parts, for each cast to be exact.
    """
    number = f"CAST({value} AS DOUBLE)"
    half = f"POWER(CAST(2 AS DOUBLE), 537 - 20 * {_size(number)})"
    units = f"({number} * {half} * {half})"
    whole = f"CAST(CAST({units} / {_BASE} AS BIGINT) AS DECIMAL(20, 0)) * {_UNIT} + CAST({units} % {_BASE} AS BIGINT)"
    return f"CAST(CASE WHEN {_is_finite(number)} THEN {whole} WHEN {number} IS NOT NULL THEN 1 END AS DECIMAL(28, 0))"


def _is_finite(number: str) -> str:
    return f"ABS({number}) < CAST('Infinity' AS DOUBLE)"


def _size(number: str) -> str:
    """Return the place of a finite double.

    0 has no logarithm, and GREATEST passes over NULL.
    A logarithm that errs by half a bit does no harm: both places hold such a value exactly.
    """
    return f"CAST(GREATEST(FLOOR((LOG(2, ABS({number})) + CAST(1021.5 AS DOUBLE)) / 40), 0) AS INT)"


def sum_of_values(value: str, *, over: str = "", is_distinct: bool = False, is_average: bool = False) -> str:
    """Return the Spark expression for SUM or AVG of doubles. `over` is the text of a window, parentheses included."""
    listed = f"COLLECT_LIST(CAST({value} AS DOUBLE)){f' OVER {over}' if over else ''}"
    values = f"ARRAY_DISTINCT({listed})" if is_distinct else listed
    part = f"STRUCT({place_text('x')} AS place, CAST({amount_text('x')} AS DECIMAL(38, 0)) AS amount)"
    total = _put_together(f"TRANSFORM({values}, x -> {part})")
    return f"({total} / NULLIF(SIZE({values}), 0))" if is_average else total


def sum_of_parts(place: str, amount: str) -> str:
    """Return the aggregate that puts a group's places and their amounts, each a DECIMAL(38, 0), together."""
    part = f"CASE WHEN {place} IS NOT NULL THEN STRUCT({place} AS place, {amount} AS amount) END"
    return _put_together(f"COLLECT_LIST({part})")


def _put_together(parts: str) -> str:
    """Return the double that an array of places and amounts stands for, NULL for none."""
    nothing = _state("-1", "-1", "0", "ARRAY_REPEAT(CAST(0 AS BIGINT), 0)", "0")
    special = f"s.special | SHIFTLEFT(1, one.place - {_SPECIAL})"
    merged = (
        f"CASE WHEN one.place >= {_SPECIAL} THEN {_state('s.low', 's.place', 's.amount', 's.digits', special)} "
        f"WHEN s.place = one.place THEN {_state('s.low', 's.place', 's.amount + one.amount', 's.digits')} "
        f"WHEN s.place < 0 THEN {_state('one.place', 'one.place', 'one.amount', 's.digits')} "
        f"ELSE {_carried('one.place', _state('s.low', 'one.place', 'f.amount + one.amount', 'f.digits'))} END"
    )
    finished = (
        "CASE WHEN s.special % 2 = 1 OR s.special = 6 THEN CAST('NaN' AS DOUBLE) "
        "WHEN s.special = 2 THEN CAST('Infinity' AS DOUBLE) WHEN s.special = 4 THEN CAST('-Infinity' AS DOUBLE) "
        f"WHEN s.place >= 0 THEN {_carried('s.place + 4', _rounded())} END"
    )
    return f"AGGREGATE(ARRAY_SORT({parts}), {nothing}, (s, one) -> {merged}, s -> {finished})"


def _state(low: str, place: str, amount: str, digits: str, special: str = "s.special") -> str:
    """Return what is known after a part: digits from the place `low` up to below `place`, and the amount there."""
    whole = f"CAST({amount} AS DECIMAL(38, 0))"
    return f"STRUCT({low} AS low, {place} AS place, {whole} AS amount, {digits} AS digits, {special} AS special)"


def _carried(upto: str, finish: str) -> str:
    """Return the state `s` carried up to a place: digits are split off the amount. `finish` says what becomes of it."""
    digit = f"PMOD(f.amount, {_UNIT})"
    step = (
        f"STRUCT(CAST((f.amount - {digit}) / {_UNIT} AS DECIMAL(38, 0)) AS amount, "
        f"CONCAT(f.digits, ARRAY(CAST({digit} AS BIGINT))) AS digits)"
    )
    start = "STRUCT(s.amount AS amount, s.digits AS digits)"
    return f"AGGREGATE(SEQUENCE(s.place, {upto} - 1), {start}, (f, i) -> {step}, f -> {finish})"


def _rounded() -> str:
    """Return the double of the digits `f.digits` from place `s.low` on, whose sign is `f.amount`."""
    filling = f"CASE WHEN f.amount < 0 THEN {_BASE - 1} ELSE 0 END"
    tops = f"FILTER(SEQUENCE(0, SIZE(f.digits) - 1), i -> f.digits[i] <> {filling})"
    second = "CASE WHEN top >= 1 THEN f.digits[top - 1] ELSE 0 END"
    third = "CASE WHEN top >= 2 THEN f.digits[top - 2] ELSE 0 END"
    below = "EXISTS(SLICE(f.digits, 1, GREATEST(top - 2, 0)), digit -> digit <> 0)"
    odd = f"({third} + CASE WHEN {third} % 2 = 0 AND {below} THEN 1 ELSE 0 END)"
    number = f"((f.amount * {_UNIT} + f.digits[top]) * {_UNIT} + {second}) * {_UNIT} + {odd}"
    half = "POWER(CAST(2 AS DOUBLE), 20 * (s.low + top - 2) - 537)"
    return f"TRANSFORM(ARRAY(COALESCE(ARRAY_MAX({tops}), 0)), top -> CAST({number} AS DOUBLE) * {half} * {half})[0]"
