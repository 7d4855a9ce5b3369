"""Expressions over one row, in plain Python, with SQL's three truth values: for the in-memory twin of maintenance.

It is not the judge (that is the original text, run by Spark) and knows only what views in tests are made of; anything
else is an assertion, never a guess. NULL is None. Decimals are Decimal, doubles are float, as Spark has them; Spark's
limits on the size of integers and the scale of decimals are not imitated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from sqlglot import exp

Row = Mapping[tuple[str, str], object]

_OF_TWO_SIDES: dict[type[exp.Expr], Callable[[Any, Any], object]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
    exp.DPipe: operator.add,
}


def evaluate(expression: exp.Expr, row: Row) -> object:  # noqa: C901, PLR0911, PLR0912 — one case per operator
    """Return the value of an expression whose columns are written alias.column. Dividing by zero raises.

    >>> import sqlglot
    >>> def value(sql, **row):
    ...     return evaluate(sqlglot.parse_one(sql, read="spark"), {("r", name): held for name, held in row.items()})
    >>> value("r.x > 1 OR r.y = 2", x=None, y=2)
    True
    >>> value("r.x NOT IN (1, NULL)", x=2) is None
    True
    >>> value("CASE WHEN r.x / r.y > 1 THEN 'much' ELSE 'little' END", x=3, y=2)
    'much'
    >>> value("r.x / r.y", x=3, y=0)
    Traceback (most recent call last):
    ...
    ZeroDivisionError: division by zero
    """

    def value(node: exp.Expr) -> Any:
        return evaluate(node, row)

    function = _OF_TWO_SIDES.get(type(expression))
    if function is not None:
        return _apply(function, value(expression.args["this"]), value(expression.args["expression"]))
    match expression:
        case exp.Column():
            return row[expression.table, expression.name]
        case exp.Literal():
            return expression.name if expression.is_string else _number(expression.name)
        case exp.Boolean():
            return bool(expression.this)
        case exp.Null():
            return None
        case exp.Paren() | exp.Alias():
            return value(expression.this)
        case exp.And():
            return _and(value(expression.left), lambda: value(expression.right))
        case exp.Or():
            return _not(_and(_not(value(expression.left)), lambda: _not(value(expression.right))))
        case exp.Not():
            return _not(value(expression.this))
        case exp.Is():
            return value(expression.this) is value(expression.expression)
        case exp.NullSafeEQ():
            return _same(value(expression.this), value(expression.expression))
        case exp.NullSafeNEQ():
            return not _same(value(expression.this), value(expression.expression))
        case exp.In():
            return _is_in(value(expression.this), [value(item) for item in expression.expressions])
        case exp.Between():
            this, low, high = (value(expression.args[part]) for part in ("this", "low", "high"))
            return _and(_apply(operator.ge, this, low), lambda: _apply(operator.le, this, high))
        case exp.Neg():
            return _apply(operator.sub, 0, value(expression.this))
        case exp.Coalesce():
            parts = (expression.this, *expression.expressions)
            return next((found for part in parts if (found := value(part)) is not None), None)
        case exp.Case():
            return _case(expression, value)
        case exp.Upper() | exp.Lower():
            text = value(expression.this)
            return None if text is None else (text.upper() if isinstance(expression, exp.Upper) else text.lower())
        case exp.Concat():
            texts = [value(part) for part in expression.expressions]
            return None if None in texts else "".join(texts)
    raise AssertionError(f"the in-memory evaluator does not know {type(expression).__name__}")


def _number(text: str) -> int | Decimal | float:
    if text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def _apply(function: Callable[[Any, Any], object], left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if {type(left), type(right)} == {float, Decimal}:
        left, right = float(left), float(right)
    return function(left, right)


def _and(left: bool | None, right: Callable[[], bool | None]) -> bool | None:
    if left is False:
        return False
    other = right()
    if other is False:
        return False
    return None if left is None or other is None else True


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _same(left: object, right: object) -> bool:
    if left is None or right is None:
        return left is right
    return bool(_apply(operator.eq, left, right))


def _is_in(this: object, items: list[object]) -> bool | None:
    tests = [_apply(operator.eq, this, item) for item in items]
    if True in tests:
        return True
    return None if None in tests else False


def _case(case: exp.Case, value: Callable[[exp.Expr], Any]) -> object:
    for branch in case.args["ifs"]:
        test = value(branch.this)
        if case.this is not None:
            test = _apply(operator.eq, value(case.this), test)
        if test is True:
            return value(branch.args["true"])
    otherwise = case.args.get("default")
    return None if otherwise is None else value(otherwise)
