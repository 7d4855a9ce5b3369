"""What kind of value a Spark type holds, and which kinds can be compared without a cast that may fail.

In Spark's ANSI mode comparing a string with a number casts the string, and the cast raises on 'abc'. Comparing numbers
with each other only widens them, which never raises as long as a decimal of 38 digits can hold both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

_MAX_DECIMAL_DIGITS = 38


class ValueKind(Enum):
    """Types whose values compare with each other as they are."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOATING = "floating"
    STRING = "string"
    BINARY = "binary"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_NTZ = "timestamp_ntz"
    NULL = "null"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """The kind of a value. For integers and decimals also how many digits stand before and after the point."""

    kind: ValueKind
    whole_digits: int = 0
    fraction_digits: int = 0


UNKNOWN = Value(kind=ValueKind.UNKNOWN)
NULL = Value(kind=ValueKind.NULL)
STRING = Value(kind=ValueKind.STRING)
BOOLEAN = Value(kind=ValueKind.BOOLEAN)

# Whole digits as Spark counts them when it makes a decimal of an integer.
_SIMPLE: dict[str, Value] = {
    "tinyint": Value(kind=ValueKind.INTEGER, whole_digits=3),
    "smallint": Value(kind=ValueKind.INTEGER, whole_digits=5),
    "int": Value(kind=ValueKind.INTEGER, whole_digits=10),
    "bigint": Value(kind=ValueKind.INTEGER, whole_digits=20),
    "float": Value(kind=ValueKind.FLOATING),
    "double": Value(kind=ValueKind.FLOATING),
    "string": STRING,
    "binary": Value(kind=ValueKind.BINARY),
    "boolean": BOOLEAN,
    "date": Value(kind=ValueKind.DATE),
    "timestamp": Value(kind=ValueKind.TIMESTAMP),
    "timestamp_ntz": Value(kind=ValueKind.TIMESTAMP_NTZ),
}

_EXACT = frozenset({ValueKind.INTEGER, ValueKind.DECIMAL})
_NUMERIC = _EXACT | {ValueKind.FLOATING}


def value_of_type(spark_type: str) -> Value:
    """Return what a Spark type holds.

    >>> value_of_type("decimal(12,2)")
    Value(kind=<ValueKind.DECIMAL: 'decimal'>, whole_digits=10, fraction_digits=2)
    >>> value_of_type("array<int>").kind
    <ValueKind.UNKNOWN: 'unknown'>
    """
    if decimal := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", spark_type):
        precision, scale = int(decimal[1]), int(decimal[2])
        return Value(kind=ValueKind.DECIMAL, whole_digits=precision - scale, fraction_digits=scale)
    return _SIMPLE.get(spark_type, UNKNOWN)


def compare_safely(values: Iterable[Value]) -> bool:
    """Tell whether values can be compared with, or chosen between, each other without a cast that may raise.

    >>> compare_safely([value_of_type("int"), value_of_type("decimal(12,2)")])
    True
    >>> compare_safely([value_of_type("int"), STRING])
    False
    >>> compare_safely([value_of_type("bigint"), value_of_type("decimal(38,30)")])
    False
    """
    known = [value for value in values if value.kind is not ValueKind.NULL]
    kinds = {value.kind for value in known}
    if not kinds:
        return True
    if ValueKind.UNKNOWN in kinds:
        return False
    if kinds <= _EXACT and ValueKind.DECIMAL in kinds:
        whole, fraction = max(v.whole_digits for v in known), max(v.fraction_digits for v in known)
        return whole + fraction <= _MAX_DECIMAL_DIGITS
    return kinds <= _NUMERIC or len(kinds) == 1


def calculated(left: Value, right: Value, *, is_product: bool) -> Value:
    """Return what a sum, a difference or a product holds, at most, if it can surely be held. Else it is unknown.

    Numbers with a point become as long as they need, up to 38 digits; floating ones become infinite instead of raising.
    Integers may overflow.

    >>> price, discount, one = value_of_type("decimal(15,2)"), value_of_type("decimal(4,2)"), value_of_type("int")
    >>> calculated(price, calculated(one, discount, is_product=False), is_product=True)
    Value(kind=<ValueKind.DECIMAL: 'decimal'>, whole_digits=25, fraction_digits=4)
    >>> calculated(one, one, is_product=False) == calculated(price, value_of_type("decimal(38,2)"), is_product=True)
    True
    """
    kinds = {left.kind, right.kind}
    if not kinds <= _NUMERIC or kinds == {ValueKind.INTEGER}:
        return UNKNOWN
    if ValueKind.FLOATING in kinds:
        return Value(kind=ValueKind.FLOATING)
    if is_product:
        whole, fraction = left.whole_digits + right.whole_digits + 1, left.fraction_digits + right.fraction_digits
    else:
        whole = max(left.whole_digits, right.whole_digits) + 1
        fraction = max(left.fraction_digits, right.fraction_digits)
    if whole + fraction > _MAX_DECIMAL_DIGITS:
        return UNKNOWN
    return Value(kind=ValueKind.DECIMAL, whole_digits=whole, fraction_digits=fraction)


def join_as_keys(left: Value, right: Value) -> bool:
    """Tell whether equality of two columns can be asked of a source with the values of the other as keys.

    Floating numbers never: -0.0, NaN and rounding are compared differently from place to place.

    >>> join_as_keys(value_of_type("int"), value_of_type("bigint"))
    True
    >>> join_as_keys(value_of_type("int"), value_of_type("decimal(10,0)"))
    False
    >>> join_as_keys(value_of_type("double"), value_of_type("double"))
    False
    """
    never = (ValueKind.FLOATING, ValueKind.BINARY, ValueKind.NULL, ValueKind.UNKNOWN)
    return left.kind is right.kind and left.kind not in never and compare_safely([left, right])
