"""Expressions as the view's author calls them: a value that is a column of the view goes by that column's name.

CAST(COALESCE(SUM(COUNT(*)), 0) AS BIGINT) > 3   ──►   sold > 3
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from headwater.model.relation import RelationName, SegmentName
from headwater.views.steps.join import JoinView
from headwater.views.steps.segments import SegmentedView, Segments
from headwater.views.text.meaning import meaning, meant, text_of
from headwater.views.text.wrapped_values import has_default, unwrap


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorWords:
    """What expressions are called.

    `columns` are the columns of segments that become columns of the view as they are, and `names` has the view's
    columns by the texts of their values, where only one of them has that text.
    """

    segments: Segments
    columns: Mapping[tuple[RelationName, str], str]
    names: Mapping[str, str]

    @classmethod
    def of(cls, view: SegmentedView) -> AuthorWords:
        """Return the words of a view."""
        segments = {segment.name: segment for segment in view.segments}
        columns: dict[tuple[RelationName, str], str] = {}
        names: dict[str, set[str]] = {}
        for output in view.output_names:
            for held in _ways(view.output.name, output, segments):
                columns.setdefault(held, output)
            for value in unwrap(_simple(meaning(view.output.name, output, segments))):
                if not isinstance(value, (exp.Column, exp.Literal, exp.Null, exp.Boolean)):
                    names.setdefault(text_of(value), set()).add(output)
        sure = {text: next(iter(outputs)) for text, outputs in names.items() if len(outputs) == 1}
        return cls(segments=segments, columns=columns, names=sure)

    def of_column(self, name: RelationName, column: str) -> str:
        """Return what a column of a relation or segment is called."""
        return self.columns.get((name, column)) or self._text(meaning(name, column, self.segments))

    def of_expression(self, expression: exp.Expr, join: JoinView) -> str:
        """Return what an expression of a join is called."""
        return self._text(meant(expression, join, self.segments))

    def _text(self, expression: exp.Expr) -> str:
        return text_of(_simple(expression).transform(self._named))

    def _named(self, node: exp.Expr) -> exp.Expr:
        found = None if isinstance(node, (exp.Column, exp.Identifier)) else self.names.get(text_of(node.unnest()))
        return node if found is None else exp.column(exp.to_identifier(found, quoted=True))


def _ways(name: RelationName, column: str, segments: Segments) -> Iterator[tuple[RelationName, str]]:
    """Yield a segment's column, and the columns of segments below that give it as it is."""
    if not isinstance(name, SegmentName):
        return
    yield name, column
    for below, held in segments[name].step.passed(segments[name], column, segments):
        yield from _ways(below, held, segments)


def _simple(expression: exp.Expr) -> exp.Expr:
    """Return an expression without what the compiler put around aggregates.

    >>> import sqlglot
    >>> def shown(text: str) -> str:
    ...     return _simple(sqlglot.parse_one(text, read="spark")).sql(dialect="spark")
    >>> shown("CAST(COALESCE(SUM(COUNT(*)), 0) AS BIGINT) > 3")
    'COUNT(*) > 3'
    >>> shown("CASE WHEN COUNT(y) > 0 THEN SUM(y) END")
    'SUM(y)'
    """
    before = None
    while before != expression:
        before, expression = expression, expression.transform(_unwrapped)
    return expression


def _unwrapped(node: exp.Expr) -> exp.Expr:
    inner = node.this.unnest() if isinstance(node.this, exp.Expr) else None
    if isinstance(node, exp.Cast) and node.is_type("bigint") and isinstance(inner, exp.Expr):
        return inner if isinstance(inner, (exp.Sum, exp.Count)) or has_default(inner) else node
    if has_default(node) and isinstance(inner, exp.Sum) and isinstance(inner.this, (exp.Sum, exp.Count)):
        return inner
    if isinstance(node, exp.Sum) and isinstance(inner, (exp.Sum, exp.Count)):
        return inner
    return _value_of_known(node)


def _value_of_known(node: exp.Expr) -> exp.Expr:
    """Return what a CASE gives that only asks whether there is a value at all."""
    if not isinstance(node, exp.Case) or node.this or node.args.get("default") or len(node.args["ifs"]) != 1:
        return node
    [only] = node.args["ifs"]
    asked = only.this
    if not isinstance(asked, exp.GT) or not isinstance(asked.left.unnest(), exp.Count) or asked.right.name != "0":
        return node
    return only.args["true"] if only.args["true"].find(exp.Sum) else node
