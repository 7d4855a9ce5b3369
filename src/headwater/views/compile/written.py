"""What a SELECT says after FROM and WHERE, while rules take things out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from headwater.views.compile.expressions import SUBQUERIES


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The outputs, and the clauses that are computed after grouping. Names are found, but for those inside queries."""

    names: tuple[str, ...]
    values: tuple[exp.Expr, ...]
    having: tuple[exp.Expr, ...]
    qualify: tuple[exp.Expr, ...]
    order: tuple[exp.Expr, ...]

    def parts(self) -> tuple[exp.Expr, ...]:
        """Return all expressions."""
        return (*self.values, *self.having, *self.qualify, *self.order)

    def changed(self, change: Callable[[exp.Expr], exp.Expr]) -> Written:
        """Return the same with every expression changed."""
        return Written(
            names=self.names,
            values=tuple(change(part) for part in self.values),
            having=tuple(change(part) for part in self.having),
            qualify=tuple(change(part) for part in self.qualify),
            order=tuple(change(part) for part in self.order),
        )


def aggregates_in(expression: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the calls of aggregates that make one value of a group, not those of a window. Queries are not entered."""
    if isinstance(expression, SUBQUERIES):
        return
    if isinstance(expression, exp.Window):
        inside = [
            *expression.this.iter_expressions(),
            *(p for p in expression.iter_expressions() if p.arg_key != "this"),
        ]
    elif is_aggregate(expression):
        yield expression
        return
    else:
        inside = list(expression.iter_expressions())
    for part in inside:
        yield from aggregates_in(part)


def is_aggregate(expression: exp.Expr) -> bool:
    """Tell whether an expression is the call of an aggregate, with its FILTER if it has one."""
    if isinstance(expression, (exp.Filter, exp.WithinGroup)):
        return True
    if isinstance(expression, (exp.Grouping, exp.GroupingId)):
        return False
    return isinstance(expression, exp.AggFunc)
