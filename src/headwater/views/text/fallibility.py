"""Whether an expression may raise on some row.

Signed stamps combine rows that never met (one deleted at tick 5, the other inserted at 7). Their counts cancel, but
`x / y` on such a combination would raise. So what may raise is evaluated after netting, and what cannot raise before:
then it still drives the joins. The answer "fallible" is always safe, it only costs a second aggregation; so this is a
list of what surely cannot raise under Spark's ANSI mode, and everything else may.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from headwater.views.text.value_kinds import (
    BOOLEAN,
    NULL,
    STRING,
    UNKNOWN,
    Value,
    ValueKind,
    calculated,
    compare_safely,
    value_of_type,
)

ColumnTypes = Mapping[tuple[str, str], str]

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_TRUTHS = (*_COMPARISONS, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.Boolean)
_SUMS = (exp.Add, exp.Sub, exp.Mul)
_STRINGS = (exp.Upper, exp.Lower, exp.Concat, exp.DPipe, exp.Trim)
_MAX_INT, _MAX_BIGINT = 2**31 - 1, 2**63 - 1


def is_fallible(expression: exp.Expr, types: ColumnTypes) -> bool:
    """Tell whether an expression may raise, given the Spark types of its columns.

    >>> import sqlglot
    >>> types = {("r", "x"): "int", ("r", "s"): "string", ("r", "d"): "date", ("r", "p"): "decimal(15,2)"}
    >>> def ask(sql): return is_fallible(sqlglot.parse_one(sql, read="spark"), types)
    >>> ask("r.x > 3 AND r.s LIKE 'a%' OR r.x IS NULL")
    False
    >>> ask("r.x / 2 > 1"), ask("r.s = 5"), ask("CAST(r.s AS INT) = 5")
    (True, True, True)
    >>> ask("r.p * (1 - r.p)"), ask("r.p * r.p * r.p"), ask("r.x + 1")
    (False, True, True)
    >>> ask("r.d >= '2024-01-31'"), ask("r.d >= '2024-02-31'"), ask("CAST(NULL AS INT)")
    (False, True, False)
    """
    return not _is_safe(expression, types)


def value_of(expression: exp.Expr, types: ColumnTypes) -> Value:  # noqa: C901, PLR0911, PLR0912 — one case per kind
    """Return what an expression gives, as far as it is known without asking Spark."""
    match expression:
        case exp.Column():
            return value_of_type(types.get((expression.table, expression.name), ""))
        case exp.Literal():
            return STRING if expression.is_string else _number(expression.name)
        case exp.RawString():
            return STRING
        case exp.Null():
            return NULL
        case exp.Paren():
            return value_of(expression.this, types)
        case exp.Neg(this=exp.Literal() as literal):
            return value_of(literal, types)
        case exp.Cast() | exp.TryCast():
            return value_of_type(expression.to.sql(dialect="spark").lower())
        case exp.Coalesce():
            return _chosen([expression.this, *expression.expressions], types)
        case exp.Case():
            return _chosen(_results(expression), types)
        case exp.If():
            return _chosen(
                [part for part in (expression.args.get("true"), expression.args.get("false")) if part], types
            )
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = value_of(expression.left, types), value_of(expression.right, types)
            return calculated(left, right, is_product=isinstance(expression, exp.Mul))
        case _ if isinstance(expression, _TRUTHS):
            return BOOLEAN
        case _ if isinstance(expression, _STRINGS):
            return STRING
        case _:
            return UNKNOWN


def _is_safe(expression: exp.Expr, types: ColumnTypes) -> bool:
    if isinstance(expression, (exp.Column, exp.Literal, exp.RawString, exp.Boolean, exp.Null)):
        return True
    for kinds, rule in _SAFE_WHEN:
        if isinstance(expression, kinds):
            return rule(expression, types)
    return False


def _all_safe(expressions: Iterable[exp.Expr], types: ColumnTypes) -> bool:
    return all(_is_safe(expression, types) for expression in expressions)


def _compares(expressions: list[exp.Expr], types: ColumnTypes) -> bool:
    """Tell whether safe operands are compared as they are. A date may meet a literal that surely is a date."""
    if not _all_safe(expressions, types):
        return False
    values = [value_of(expression, types) for expression in expressions]
    moments = {value.kind for value in values} & {ValueKind.DATE, ValueKind.TIMESTAMP, ValueKind.TIMESTAMP_NTZ}
    if len(moments) == 1:
        wanted = next(iter(moments))
        values = [v for v, e in zip(values, expressions, strict=True) if not _is_moment(e, wanted)]
    return compare_safely(values)


def _is_moment(expression: exp.Expr, kind: ValueKind) -> bool:
    """Tell whether a string literal surely is a date or a timestamp for Spark: ISO, four digits of year."""
    if not (isinstance(expression, exp.Literal) and expression.is_string):
        return False
    text = expression.name
    form = r"\d{4}-\d\d-\d\d" if kind is ValueKind.DATE else r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?"
    if not re.fullmatch(form, text, re.ASCII):
        return False
    try:
        date.fromisoformat(text) if kind is ValueKind.DATE else datetime.fromisoformat(re.sub(r"\.\d+$", "", text))
    except ValueError:
        return False
    return True


def _number(text: str) -> Value:
    if re.fullmatch(r"\d+", text):
        if int(text) <= _MAX_BIGINT:
            return value_of_type("int" if int(text) <= _MAX_INT else "bigint")
        return Value(kind=ValueKind.DECIMAL, whole_digits=len(text))
    if re.fullmatch(r"\d*\.\d*", text) and text != ".":
        digits = Decimal(text).as_tuple()
        fraction = -int(digits.exponent)
        return Value(
            kind=ValueKind.DECIMAL, whole_digits=max(0, len(digits.digits) - fraction), fraction_digits=fraction
        )
    return Value(kind=ValueKind.FLOATING) if re.fullmatch(r"[\d.]+[eE][+-]?\d+", text) else UNKNOWN


def _chosen(expressions: list[exp.Expr], types: ColumnTypes) -> Value:
    values = [v for v in (value_of(e, types) for e in expressions) if v.kind is not ValueKind.NULL]
    if not values:
        return NULL
    return values[0] if all(value == values[0] for value in values) else UNKNOWN


def _results(case: exp.Case) -> list[exp.Expr]:
    otherwise = case.args.get("default")
    return [branch.args["true"] for branch in case.args["ifs"]] + ([otherwise] if otherwise else [])


def _is_truth(expression: exp.Expr, types: ColumnTypes) -> bool:
    return _is_safe(expression, types) and value_of(expression, types).kind in {ValueKind.BOOLEAN, ValueKind.NULL}


def _is_string(expression: exp.Expr, types: ColumnTypes) -> bool:
    return _is_safe(expression, types) and value_of(expression, types).kind in {ValueKind.STRING, ValueKind.NULL}


def _paren(node: exp.Expr, types: ColumnTypes) -> bool:
    return _is_safe(node.this, types)


def _negative(node: exp.Expr, _types: ColumnTypes) -> bool:
    return isinstance(node.this, exp.Literal) and not node.this.is_string


def _sum(node: exp.Expr, types: ColumnTypes) -> bool:
    return _all_safe([node.this, node.expression], types) and value_of(node, types).kind is not ValueKind.UNKNOWN


def _logic(node: exp.Expr, types: ColumnTypes) -> bool:
    return all(_is_truth(part, types) for part in (node.this, node.args.get("expression")) if part is not None)


def _comparison(node: exp.Expr, types: ColumnTypes) -> bool:
    return _compares([node.this, node.expression], types)


def _is(node: exp.Expr, types: ColumnTypes) -> bool:
    if isinstance(node.expression, exp.Null):
        return _is_safe(node.this, types)
    return isinstance(node.expression, exp.Boolean) and _is_truth(node.this, types)


def _in(node: exp.Expr, types: ColumnTypes) -> bool:
    return bool(node.expressions) and _compares([node.this, *node.expressions], types)


def _between(node: exp.Expr, types: ColumnTypes) -> bool:
    return _compares([node.this, node.args["low"], node.args["high"]], types)


def _like(node: exp.Expr, types: ColumnTypes) -> bool:
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal) and pattern.is_string and "\\" not in pattern.name
    return plain and _is_string(node.this, types)


def _coalesce(node: exp.Expr, types: ColumnTypes) -> bool:
    parts = [node.this, *node.expressions]
    return _all_safe(parts, types) and compare_safely(value_of(part, types) for part in parts)


def _case(node: exp.Expr, types: ColumnTypes) -> bool:
    assert isinstance(node, exp.Case), "the rule for CASE is asked about CASE"
    tests = [branch.this for branch in node.args["ifs"]]
    tests_safe = _compares([node.this, *tests], types) if node.this else all(_is_truth(test, types) for test in tests)
    results = _results(node)
    return tests_safe and _all_safe(results, types) and compare_safely(value_of(part, types) for part in results)


def _if(node: exp.Expr, types: ColumnTypes) -> bool:
    results = [part for part in (node.args.get("true"), node.args.get("false")) if part is not None]
    safe = _is_truth(node.this, types) and _all_safe(results, types)
    return safe and compare_safely(value_of(part, types) for part in results)


def _string_function(node: exp.Expr, types: ColumnTypes) -> bool:
    parts = [part for part in (node.this, node.args.get("expression"), *node.expressions) if isinstance(part, exp.Expr)]
    return all(_is_string(part, types) for part in parts)


def _cast(node: exp.Expr, types: ColumnTypes) -> bool:
    if isinstance(node.this, exp.Null):
        return True
    kind = value_of(node, types).kind
    return kind in {ValueKind.DATE, ValueKind.TIMESTAMP, ValueKind.TIMESTAMP_NTZ} and _is_moment(node.this, kind)


_SAFE_WHEN: tuple[tuple[tuple[type[exp.Expr], ...], Callable[[exp.Expr, ColumnTypes], bool]], ...] = (
    ((exp.Paren,), _paren),
    ((exp.Neg,), _negative),
    (_SUMS, _sum),
    ((exp.And, exp.Or, exp.Not), _logic),
    (_COMPARISONS, _comparison),
    ((exp.Is,), _is),
    ((exp.In,), _in),
    ((exp.Between,), _between),
    ((exp.Like, exp.ILike), _like),
    ((exp.Coalesce,), _coalesce),
    ((exp.Case,), _case),
    ((exp.If,), _if),
    (_STRINGS, _string_function),
    ((exp.Cast, exp.TryCast), _cast),
)
