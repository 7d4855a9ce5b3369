"""Which rows of one occurrence can be in a view at all: the conditions that compare a column with constants.

A row that fails such a condition joins nothing, so a lookup of the partners of changed rows leaves it out. The
conditions stay where they are: leaving selections out changes cost, never results. Only what needs no cast counts, so
that Spark, Arrow and Python agree; strings compare by their bytes in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from sqlglot import exp

from headwater.deltas.selection import Selection
from headwater.model.relation import Column, Relation, arrow_type
from headwater.views.text.value_kinds import ValueKind, value_of_type

_COMPARE: Mapping[type[exp.Expr], str] = MappingProxyType(
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
    {
        "equal": "equal",
        "not_equal": "not_equal",
        "less": "greater",
        "less_equal": "greater_equal",
        "greater": "less",
        "greater_equal": "less_equal",
    }
)


def local_selections(condition: exp.Expr, relation: Relation) -> tuple[Selection, ...]:
    """Return what a conjunct on one occurrence of a relation says of single columns, as far as it is that simple."""
    return tuple(
        selection
        for column, compare, constants in _comparisons(condition)
        if (selection := _selection(relation.column(column.name), compare, constants)) is not None
    )


def _comparisons(condition: exp.Expr) -> Iterator[tuple[exp.Column, str, list[exp.Expr]]]:
    """Yield (column, comparison, constants) for each comparison with constants that has to hold."""
    match condition:
        case exp.Between(this=exp.Column() as column):
            yield column, "greater_equal", [condition.args["low"]]
            yield column, "less_equal", [condition.args["high"]]
        case exp.In(this=exp.Column() as column) if condition.expressions:
            yield column, "equal", condition.expressions
        case exp.Binary() if (compare := _COMPARE.get(type(condition))) is not None:
            if isinstance(condition.left, exp.Column):
                yield condition.left, compare, [condition.right]
            elif isinstance(condition.right, exp.Column):
                yield condition.right, _TURNED[compare], [condition.left]
        case _:
            pass


def _selection(column: Column, compare: str, constants: list[exp.Expr]) -> Selection | None:
    values = [_constant(constant, value_of_type(column.type).kind) for constant in constants]
    try:
        held = tuple(pa.scalar(value, arrow_type(column.type)).as_py() for value in values)
    except (pa.ArrowInvalid, OverflowError):  # the column's type cannot hold it, so that Spark widens both
        return None
    return None if None in held else Selection(column=column.name, compare=compare, values=held)


def _constant(expression: exp.Expr, kind: ValueKind) -> Any:
    """Return a constant's value if it is of this kind as it stands, else None."""
    match expression, kind:
        case exp.Literal(is_string=True), ValueKind.STRING:
            return expression.this
        case exp.Literal(is_string=False), ValueKind.INTEGER if expression.this.isdigit():
            return int(expression.this)
        case exp.Literal(is_string=False), ValueKind.DECIMAL if expression.this.replace(".", "", 1).isdigit():
            return Decimal(expression.this)
        case exp.Neg(this=exp.Literal(is_string=False) as literal), ValueKind.INTEGER | ValueKind.DECIMAL:
            value = _constant(literal, kind)
            return None if value is None else -value
        case exp.Cast(this=exp.Literal(is_string=True) as literal), ValueKind.DATE if (
            expression.to.this is exp.DType.DATE
        ):
            return _date(literal.this)
        case _:
            return None


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2026-01-31") else None
    except ValueError:
        return None
