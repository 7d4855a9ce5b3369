"""Conditions that need no Spark: comparisons of columns with literals, evaluated on Arrow exactly as Spark does.

Only what is the same for certain is taken; `tests/contracts/test_plain_queries_on_spark` compares. Numbers compare by
value: integers and decimals exactly, as long as a decimal of 38 digits holds both sides; floating ones as doubles,
where a NaN equals itself and is above all others. Texts compare by their bytes. Dates and times take the literals whose
form leaves no doubt. A comparison with NULL is unknown, and unknown is not true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial, reduce
from types import MappingProxyType
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

Test: TypeAlias = Callable[[pa.Table], pa.ChunkedArray]
"""Returns for each row of a table whether a condition is true, false, or unknown (NULL)."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?)?")
_MOST_DIGITS = 38
_LARGEST = 2**63 - 1

_COMPARISONS: Mapping[type[exp.Expr], str] = MappingProxyType(
    {
        exp.EQ: "equal",
        exp.NEQ: "not_equal",
        exp.LT: "less",
        exp.LTE: "less_equal",
        exp.GT: "greater",
        exp.GTE: "greater_equal",
    }
)
_TURNED: Mapping[str, str] = MappingProxyType(
    {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
)


class NotPlainError(Exception):
    """Spark is needed to tell what this means."""


def plain_test(  # noqa: C901, PLR0911 - one case per kind of condition
    tree: exp.Expr, column_of: Callable[[exp.Column], pa.Field]
) -> Test:
    """Return the test that a condition stands for. `column_of` says which column of the view a name means.

    >>> import sqlglot
    >>> rows = pa.table({"a": pa.array([1, 5, None], pa.int32())})
    >>> tree = sqlglot.parse_one("NOT a < 2.5 OR a IS NULL", read="spark")
    >>> plain_test(tree, lambda column: rows.schema.field(column.name))(rows).to_pylist()
    [False, True, True]
    """
    again = partial(plain_test, column_of=column_of)
    match tree:
        case exp.Paren():
            return again(tree.this)
        case exp.And():
            return _both(pc.and_kleene, again(tree.left), again(tree.right))
        case exp.Or():
            return _both(pc.or_kleene, again(tree.left), again(tree.right))
        case exp.Not():
            inside = again(tree.this)
            return lambda rows: pc.invert(inside(rows))
        case exp.Column():
            return _truth(column_of(tree))
        case exp.Is() if isinstance(tree.this, exp.Column) and isinstance(tree.expression, exp.Null):
            name = column_of(tree.this).name
            return lambda rows: pc.is_null(rows[name])
        case exp.Between() if isinstance(tree.this, exp.Column) and not tree.args.get("symmetric"):
            field, low, high = column_of(tree.this), tree.args["low"], tree.args["high"]
            return _both(
                pc.and_kleene,
                _comparison(field, "greater_equal", low, (low, high)),
                _comparison(field, "less_equal", high, (low, high)),
            )
        case exp.In() if isinstance(tree.this, exp.Column) and tree.expressions:
            field = column_of(tree.this)
            tests = [_comparison(field, "equal", one, tree.expressions) for one in tree.expressions]
            return reduce(partial(_both, pc.or_kleene), tests)
        case exp.Binary() if type(tree) in _COMPARISONS:
            name, sides = _COMPARISONS[type(tree)], (tree.left, tree.right)
            if isinstance(tree.left, exp.Column):
                return _comparison(column_of(tree.left), name, tree.right, sides[1:])
            if isinstance(tree.right, exp.Column):
                return _comparison(column_of(tree.right), _TURNED.get(name, name), tree.left, sides[:1])
    raise NotPlainError


def _both(combine: Callable[[pa.ChunkedArray, pa.ChunkedArray], pa.ChunkedArray], left: Test, right: Test) -> Test:
    return lambda rows: combine(left(rows), right(rows))


def _truth(field: pa.Field) -> Test:
    if not pa.types.is_boolean(field.type):
        raise NotPlainError
    return lambda rows: rows[field.name]


def _comparison(field: pa.Field, name: str, literal: exp.Expr, beside: tuple[exp.Expr, ...] | list[exp.Expr]) -> Test:
    """Compare a column with a literal. `beside` are all that Spark brings to one type together with the column."""
    kind = field.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        common = _decimal_for(kind, [_number(one) for one in beside])
        value = pa.scalar(_number(literal), common)
        return lambda rows: pc.call_function(name, [pc.cast(rows[field.name], common), value])
    if pa.types.is_floating(kind):
        return partial(_compare_doubles, field.name, name, float(_number(literal)))
    if pa.types.is_boolean(kind) and name not in ("equal", "not_equal"):
        raise NotPlainError
    scalar = pa.scalar(_value(kind, literal), kind)
    return lambda rows: pc.call_function(name, [rows[field.name], scalar])


def _compare_doubles(column: str, name: str, value: float, rows: pa.Table) -> pa.ChunkedArray:
    doubles = pc.cast(rows[column], pa.float64())
    found = pc.call_function(name, [doubles, pa.scalar(value)])
    return pc.or_kleene(found, pc.is_nan(doubles)) if name in ("greater", "greater_equal") else found


def _number(literal: exp.Expr) -> Decimal:
    """Return the number that a literal such as -1.50 stands for: an integer or a decimal, not a double such as 1e3."""
    if isinstance(literal, exp.Neg):
        return -_number(literal.this)
    if isinstance(literal, exp.Literal) and not literal.is_string and re.fullmatch(r"\d+(\.\d+)?", literal.name):
        return Decimal(literal.name)
    raise NotPlainError


def _decimal_for(kind: pa.DataType, numbers: list[Decimal]) -> pa.DataType:
    """Return the decimal that holds a column and literals exactly, where Spark finds one too."""
    if pa.types.is_integer(kind):
        whole, fraction = 20, 0
    else:
        whole, fraction = kind.precision - kind.scale, kind.scale
    for number in numbers:
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int), "a literal is a finite number"
        if abs(number) > _LARGEST:
            raise NotPlainError
        whole, fraction = max(whole, 20 if not exponent else len(str(abs(int(number))))), max(fraction, -exponent)
    if whole + fraction > _MOST_DIGITS:
        raise NotPlainError
    return pa.decimal128(_MOST_DIGITS, fraction)


def _value(kind: pa.DataType, literal: exp.Expr) -> bool | str | date | datetime:
    if pa.types.is_boolean(kind) and isinstance(literal, exp.Boolean):
        return bool(literal.this)
    text = _text(kind, literal)
    if pa.types.is_string(kind):
        return text
    try:
        if pa.types.is_date(kind) and _DATE.fullmatch(text):
            return date.fromisoformat(text)
        if pa.types.is_timestamp(kind) and _TIME.fullmatch(text):
            whole, _, fraction = text.partition(".")
            time = datetime.fromisoformat(whole).replace(microsecond=int((fraction or "0").ljust(6, "0")))
            return time.replace(tzinfo=UTC) if kind.tz else time
    except ValueError:  # there is no such day
        raise NotPlainError from None
    raise NotPlainError


def _text(kind: pa.DataType, literal: exp.Expr) -> str:
    """Return the text of 'x', or of DATE 'x' and TIMESTAMP 'x' where the column is of that type."""
    if isinstance(literal, exp.Cast) and isinstance(literal.this, exp.Literal):
        to = literal.to.this
        is_date = pa.types.is_date(kind) and to == exp.DType.DATE
        is_time = pa.types.is_timestamp(kind) and kind.tz and to in (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ)
        if is_date or is_time:
            literal = literal.this
    if isinstance(literal, exp.Literal) and literal.is_string:
        return str(literal.name)
    raise NotPlainError
