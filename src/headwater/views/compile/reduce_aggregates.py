"""Aggregates as what a group keeps: the number of rows, and per column a total and how many values are known.

| aggregate | over the column | is |
|---|---|---|
| COUNT(*) | | rows |
| COUNT(x, ...) | 1 where no x is NULL | known |
| SUM(x) | x | total, if any is known |
| AVG(x) | x | total / known, in Spark's type |
| COUNT_IF(p), BOOL_OR(p), BOOL_AND(p) | 1 where p; 1 where NOT p | known > 0 |
| ... FILTER (WHERE p) | x where p | |

A total is exact for integers and decimals only; of doubles their places and amounts are kept (`rounding`). MIN and MAX,
DISTINCT, and everything else need more than this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from headwater.views.compile.expressions import null_of
from headwater.views.compile.reasons import UNCOMMON, NoIncrementalForm
from headwater.views.laws.exact_sums import FloatAggregate
from headwater.views.text.value_kinds import ValueKind, value_of_type

_MAX_DIGITS = 38
_AVERAGE_DIGITS = 4


class Need(Enum):
    """What an aggregate needs of a group."""

    TOTALS = "totals"
    EXTREME = "extreme"
    DISTINCT = "distinct"
    PARTS = "places and amounts of doubles"
    ROWS = "all rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptColumn:
    """What is kept of one column: expressions for its total, for how many values are known, and its own type."""

    total: exp.Expr
    known: exp.Expr
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """An aggregate call, reduced: the columns it needs, and its value from the number of rows and their cells.

    `summed` says that the columns' totals are used, not only how many values are known; `adds`, that doubles are added.
    """

    call: exp.Expr
    need: Need
    columns: tuple[exp.Expr, ...] = ()
    summed: bool = False
    value: Callable[[exp.Expr, Sequence[KeptColumn]], exp.Expr] | None = None
    is_count: bool = False
    adds: FloatAggregate | None = None


def reduce_aggregate(call: exp.Expr) -> Reduced:  # noqa: PLR0911 — one case per aggregate
    """Return what an aggregate call needs and how its value is made."""
    test = call.expression.this if isinstance(call, exp.Filter) else None
    inner = call.this if isinstance(call, exp.Filter) else call
    distinct = isinstance(inner.this, exp.Distinct)
    arguments = list(inner.this.expressions) if distinct else [inner.this, *inner.expressions] if inner.this else []
    if (distinct or len(arguments) > 1) and any(isinstance(argument, exp.Star) for argument in arguments):
        raise NoIncrementalForm(UNCOMMON, "COUNT(DISTINCT *)" if distinct else "COUNT of * and something else")
    match inner:
        case exp.Count():
            return _count(call, arguments, test, distinct=distinct)
        case exp.Sum():
            return _sum(call, _where(arguments[0], test), _total, distinct=distinct)
        case exp.Avg():
            return _sum(call, _where(arguments[0], test), _average, distinct=distinct)
        case exp.Min() | exp.Max() if len(arguments) == 1:
            return Reduced(call=call, need=Need.EXTREME, columns=(_where(arguments[0], test),))
        case exp.CountIf() if not distinct:
            return _known(
                call, [_where(_one_where(arguments[0]), test)], lambda _, cells: cells[0].known, is_count=True
            )
        case exp.LogicalAnd() | exp.LogicalOr() if not distinct:
            return _truth(call, arguments[0], test, decisive=isinstance(inner, exp.LogicalOr))
        case _:
            return Reduced(call=call, need=Need.ROWS)


def _count(call: exp.Expr, arguments: list[exp.Expr], test: exp.Expr | None, *, distinct: bool) -> Reduced:
    if distinct:
        columns = tuple(_where(argument, test) for argument in arguments)
        return Reduced(
            call=call, need=Need.DISTINCT, columns=columns, value=lambda _, cells: cells[0].known, is_count=True
        )
    tested = [argument for argument in arguments if not isinstance(argument, (exp.Star, exp.Literal))]
    if not tested and test is None:
        return Reduced(call=call, need=Need.TOTALS, value=lambda rows, _: rows, is_count=True)
    return _known(call, [_where(one_where_known(tested), test)], lambda _, cells: cells[0].known, is_count=True)


def _sum(call: exp.Expr, argument: exp.Expr, value: Callable[[KeptColumn], exp.Expr], *, distinct: bool) -> Reduced:
    need = Need.DISTINCT if distinct else Need.TOTALS
    return Reduced(call=call, need=need, columns=(argument,), summed=True, value=lambda _, cells: value(cells[0]))


def _known(
    call: exp.Expr,
    columns: Sequence[exp.Expr],
    value: Callable[[exp.Expr, Sequence[KeptColumn]], exp.Expr],
    *,
    is_count: bool = False,
) -> Reduced:
    return Reduced(call=call, need=Need.TOTALS, columns=tuple(columns), value=value, is_count=is_count)


def _truth(call: exp.Expr, argument: exp.Expr, test: exp.Expr | None, *, decisive: bool) -> Reduced:
    """Return BOOL_OR (decided by one TRUE) or BOOL_AND (decided by one FALSE)."""
    yes, no = _one_where(argument), _one_where(exp.Not(this=exp.paren(argument.copy())))
    first, second = (yes, no) if decisive else (no, yes)
    return _known(
        call,
        [_where(first, test), _where(second, test)],
        lambda _, cells: (
            exp.Case()
            .when(_is_positive(cells[0].known), exp.Boolean(this=decisive))
            .when(_is_positive(cells[1].known), exp.Boolean(this=not decisive))
        ),
    )


def one_where_known(arguments: Sequence[exp.Expr]) -> exp.Expr:
    """Return 1 where none of some values is NULL. If there are no values, that is everywhere."""
    if not arguments:
        return exp.Literal.number(1)
    known = [exp.Not(this=exp.Is(this=exp.paren(one.copy()), expression=exp.null())) for one in arguments]
    return _one_where(exp.and_(*known))


def _one_where(test: exp.Expr) -> exp.Expr:
    return exp.Case().when(test.copy(), exp.Literal.number(1))


def _where(argument: exp.Expr, test: exp.Expr | None) -> exp.Expr:
    return argument if test is None else exp.Case().when(test.copy(), argument.copy())


def _is_positive(number: exp.Expr) -> exp.Expr:
    return exp.GT(this=number.copy(), expression=exp.Literal.number(0))


def _total(cell: KeptColumn) -> exp.Expr:
    return exp.Case().when(_is_positive(cell.known), cell.total.copy())


def _average(cell: KeptColumn) -> exp.Expr:
    """Return total / known as Spark types AVG: decimals get four digits more, everything else is a double."""
    held = value_of_type(cell.type)
    if held.kind is ValueKind.DECIMAL:
        digits = min(_MAX_DIGITS, held.whole_digits + held.fraction_digits + _AVERAGE_DIGITS)
        scale = min(_MAX_DIGITS, held.fraction_digits + _AVERAGE_DIGITS)
        kind, count = f"decimal({digits},{scale})", _cast(cell.known, "decimal(20,0)")
        ratio = _cast(exp.Div(this=cell.total.copy(), expression=count), kind)
    else:
        ratio = exp.Div(this=_cast(cell.total, "double"), expression=cell.known.copy())
    return exp.Case().when(_is_positive(cell.known), ratio)


def _cast(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.cast(value.copy(), exp.DataType.build(kind, dialect="spark"))


def empty_value(reduced: Reduced, kind: str) -> exp.Expr:
    """Return what an aggregate gives over no rows."""
    return _cast(exp.Literal.number(0), kind) if reduced.is_count else null_of(kind)
