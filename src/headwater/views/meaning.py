"""What columns of segments mean to the view's author: expressions over columns of relations.

Segments have neutral names (`c0`, `total_c1`); a person who reads about a group wants `stores.city` and `SUM(sales.x)`.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot
from sqlglot import exp

from headwater.relation import RelationName
from headwater.views.compile.expressions import column, settle
from headwater.views.normal_form import JoinView
from headwater.views.segments import (
    SEGMENTS,
    First,
    GroupStep,
    JoinStep,
    RecomputeStep,
    RegroupStep,
    Segment,
    UnionStep,
)
from headwater.views.spark_text import spark_text

Segments = Mapping[RelationName, Segment]


def meaning(name: RelationName, held: str, segments: Segments) -> exp.Expr:  # noqa: PLR0911 — one case per step
    """Return what a column of a relation or segment means."""
    if name.source != SEGMENTS:
        return column(name.name, held)
    segment = segments[name]
    match segment.step:
        case JoinStep(view=join):
            output = next(one for one in join.outputs if one.name == held)
            return meant(output.expression, join, segments)
        case GroupStep():
            return _of_group(segment.step, held, segments)
        case RegroupStep(input=given, computed=First()):
            return meaning(given, held, segments)
        case RegroupStep(input=given, keys=keys, computed=computed):
            text = dict(computed.outputs).get(held) if not isinstance(computed, First) else None
            if text is None:
                return meaning(given, held, segments)
            partition = ", ".join(text_of(meaning(given, key, segments)) for key in keys) or "1"
            tree = sqlglot.parse_one(text.replace("{partition}", partition), read="spark")
            return settle(tree, {("", one): meaning(given, one, segments) for one in _columns(given, segments)})
        case UnionStep(inputs=inputs):
            first = next(signed.input for signed in inputs if signed.sign > 0)
            place = segment.relation.column_names.index(held)
            return meaning(first, _columns(first, segments)[place], segments)
        case RecomputeStep():
            return column(name.name, held)


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


def _of_group(step: GroupStep, held: str, segments: Segments) -> exp.Expr:
    if held == step.rows:
        return exp.Count(this=exp.Star())
    for total in step.totals:
        if held in (total.total, total.known):
            function = exp.Sum if held == total.total else exp.Count
            return function(this=meaning(step.input, total.column, segments))
    return meaning(step.input, held, segments)


def _columns(name: RelationName, segments: Segments) -> tuple[str, ...]:
    return segments[name].relation.column_names
