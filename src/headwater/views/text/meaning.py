"""What columns of segments mean to the view's author: expressions over columns of relations.

Segments have neutral names (`c0`, `total_c1`); a person who reads about a group wants `stores.city` and `SUM(sales.x)`.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.model.relation import RelationName, SegmentName
from headwater.views.compile.expressions import column, settle
from headwater.views.steps.join import JoinView
from headwater.views.steps.segments import Segments
from headwater.views.text.spark_text import spark_text


def meaning(name: RelationName, held: str, segments: Segments) -> exp.Expr:
    """Return what a column of a relation or segment means."""
    if not isinstance(name, SegmentName):
        return column(name.name, held)
    return segments[name].step.column_meaning(segments[name], held, segments)


def meant(expression: exp.Expr, join: JoinView, segments: Segments) -> exp.Expr:
    """Return an expression of a join in terms of relations' columns."""
    read = {o.alias: o.relation.name for o in join.occurrences}
    used = {(found.table, found.name) for found in expression.find_all(exp.Column)}
    return settle(expression, {(alias, held): meaning(read[alias], held, segments) for alias, held in used})


def text_of(expression: exp.Expr) -> str:
    """Return an expression as a person writes it, with names quoted only where they must be.

    >>> text_of(exp.GT(this=column("stores", "city"), expression=column("stores", "old city")))
    'stores.city > stores.`old city`'
    """
    plain = expression.transform(_unquoted)
    return spark_text(plain)


def _unquoted(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Identifier) and node.name.isidentifier():
        return exp.to_identifier(node.name, quoted=False)
    return node
