"""A text with its aggregates of doubles written out by their definition: for recomputing, and for judging.

Which SUM and AVG add doubles, only the engine can tell. It is asked for the types of what they are of, over the same
FROM, and each such call is rewritten:

    SELECT k, SUM(x * 2) FROM r GROUP BY k     asked: SELECT x * 2 FROM r     written: SELECT k, <exact sum> FROM ...

A call whose argument cannot be asked for by itself (it names an outer query, or an output) stays as it is. VARIANCE and
its like add doubles whatever they are of (`moments`): nobody need be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from headwater.errors import InvalidView
from headwater.model.relation import Column, Relation, RelationName
from headwater.views.laws.float_sums import sum_of_values
from headwater.views.laws.moments import MOMENTS, moment_of_values
from headwater.views.text.spark_text import spark_text
from headwater.views.text.value_kinds import ValueKind, value_of_type

_FROM = ("from_", "joins", "laterals")
_CALL = "_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatAggregate:
    """An aggregate of doubles: which, of what, where FILTER lets it, and over which window, if any."""

    function: type[exp.Expr]
    arguments: tuple[exp.Expr, ...]
    window: exp.Window | None
    is_distinct: bool

    def over(self, dialect: str) -> str:
        """Return the text of the window after OVER, or nothing."""
        if self.window is None:
            return ""
        bare = self.window.copy()
        bare.set("this", exp.column(_CALL))
        return bare.sql(dialect=dialect).removeprefix(f"{_CALL} OVER ")


def exact_sums_on_spark(
    sql: str,
    relations: Mapping[RelationName, Relation],
    types: Callable[[str, Mapping[RelationName, Relation]], tuple[Column, ...]],
) -> str:
    """Return a text of Spark's with its aggregates of doubles written out. One that has none is returned as it is."""

    def are_floating(text: str) -> list[bool]:
        try:
            return [value_of_type(column.type).kind is ValueKind.FLOATING for column in types(text, relations)]
        except InvalidView:
            return []

    tree = sqlglot.parse_one(sql, read="spark")
    written = write_aggregates(tree, are_floating, write_on_spark)
    return sql if written == tree else spark_text(written)


def write_on_spark(found: FloatAggregate) -> exp.Expr:
    """Return the expression of Spark's for an aggregate of doubles."""
    return sqlglot.parse_one(text_on_spark(found, over=found.over("spark")), read="spark")


def text_on_spark(found: FloatAggregate, *, over: str = "") -> str:
    """Return the same as a text, over a window that may be another."""
    values = [spark_text(argument) for argument in found.arguments]
    if found.function in MOMENTS:
        return moment_of_values(found.function, values, over=over, is_distinct=found.is_distinct)
    is_average = issubclass(found.function, exp.Avg)
    return sum_of_values(values[0], over=over, is_distinct=found.is_distinct, is_average=is_average)


def write_aggregates(
    tree: exp.Expr, are_floating: Callable[[str], Sequence[bool]], write: Callable[[FloatAggregate], exp.Expr]
) -> exp.Expr:
    """Return a query with its aggregates of doubles rewritten.

    `are_floating` is given a SELECT in Spark's SQL, and tells for each of its columns whether it is FLOAT or DOUBLE;
    nothing at all if the SELECT cannot be run.
    """
    result = tree.copy()
    by_select: dict[int, list[exp.Expr]] = {}
    for found_call in result.find_all(exp.Sum, exp.Avg):
        by_select.setdefault(id(found_call.find_ancestor(exp.Select)), []).append(found_call)
    due: list[exp.Expr] = list(result.find_all(*MOMENTS))
    for calls in by_select.values():
        asked = zip(calls, are_floating(_asked(calls)), strict=False)
        due += [call for call, is_floating in asked if is_floating]
    for call in due:
        whole, found = describe_aggregate(call)
        whole.replace(write(found))
    return result


def describe_aggregate(call: exp.Expr) -> tuple[exp.Expr, FloatAggregate]:
    """Return an aggregate as it is written, with its FILTER and its window: the whole expression, and what it says."""
    whole, arguments = call, _arguments(call)
    if isinstance(whole.parent, exp.Filter):
        whole = whole.parent
        arguments = [exp.Case().when(whole.expression.this.copy(), one.copy()) for one in arguments]
    window = whole.parent if isinstance(whole.parent, exp.Window) and whole.arg_key == "this" else None
    found = FloatAggregate(
        function=type(call),
        arguments=tuple(arguments),
        window=window,
        is_distinct=isinstance(call.this, exp.Distinct),
    )
    return window or whole, found


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    """Return what an aggregate is of. Two columns for CORR and its like."""
    if isinstance(call.this, exp.Distinct):
        return list(call.this.expressions)
    return [one for one in (call.this, call.args.get("expression")) if one is not None]


def _asked(calls: Sequence[exp.Expr]) -> str:
    """Return the SELECT of what some calls of one SELECT are of, over its FROM and the queries that it may name."""
    select = calls[0].find_ancestor(exp.Select)
    assert select is not None, "an aggregate stands in a SELECT"
    outputs = [exp.alias_(_arguments(call)[0].copy(), f"c{place}") for place, call in enumerate(calls)]
    asked = exp.Select(expressions=outputs)
    for clause in _FROM:
        asked.set(clause, _copied(select.args.get(clause)))
    if common := _common(select):
        asked.set("with_", exp.With(expressions=common))
    return spark_text(asked)


def _common(select: exp.Expr) -> list[exp.Expr]:
    """Return the queries named by WITH that a SELECT may read: of those that it stands in itself, the ones before."""
    found: list[exp.Expr] = []
    inside: exp.Expr | None = None
    node: exp.Expr | None = select
    while node is not None:
        named = node.args.get("with_")
        listed = list(named.expressions) if named else []
        before = next((place for place, one in enumerate(listed) if one is inside), len(listed))
        found = [one.copy() for one in listed[:before]] + found
        inside = node if isinstance(node, exp.CTE) else inside
        node = node.parent
    return found


def _copied(part: object) -> object:
    if isinstance(part, list):
        return [one.copy() for one in part]
    return part.copy() if isinstance(part, exp.Expr) else part
