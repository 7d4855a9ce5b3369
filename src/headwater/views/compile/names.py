"""What names of the text mean: each column is found in its own SELECT, or else in the ones around it.

A column is written `alias#number`.`column` once it is found, with the number of the SELECT that its alias belongs to:
then a query inside can be moved out of its place, and still says what it speaks of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from headwater.errors import InvalidView
from headwater.model.relation import Relation, RelationName
from headwater.views.compile.draft import Draft
from headwater.views.compile.expressions import UNSETTLED, column, replace_parts
from headwater.views.compile.plan import Block
from headwater.views.text import support
from headwater.views.text.scope import Scope, Visible, find_alias, find_plain, find_qualified, qualifier_of
from headwater.views.text.statement import Statement

_WRITE_OUT = "an output cannot use another output: write its expression out again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What can be named at some place: in a SELECT, and in those around it, the nearest first."""

    scope: Scope
    visible: Visible
    number: int
    around: tuple[Sight, ...]

    def named(self, alias: str) -> str:
        """Return an alias as columns write it that were found here."""
        return f"{alias}{UNSETTLED}{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every rule knows of one query's surroundings: where nodes are made, and how to compile a query inside.

    `common` are the queries that WITH has named, by lower-case name.
    """

    draft: Draft
    statement: Statement
    catalog: Mapping[RelationName, Relation]
    common: Mapping[str, Callable[[], Block]]
    around: tuple[Sight, ...]
    compile: Callable[[exp.Expr, Context], Block]
    is_outermost: bool = False


def find_names(
    expression: exp.Expr,
    sight: Sight,
    aliases: Mapping[str, exp.Expr] | None = None,
    *,
    outputs: Mapping[str, exp.Expr] | None = None,
    earlier: Collection[str] = (),
) -> exp.Expr:
    """Return an expression with every column found. Queries inside are left for later.

    `aliases` are outputs of the SELECT that HAVING and others may name; a column of the same name comes first. ORDER BY
    means `outputs` before columns. `earlier` are outputs before this one, in lower case, which it may not name.
    """

    def found(node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Column):
            return None
        if isinstance(node.this, exp.Star):
            raise sight.scope.statement.refusal(
                support.UNKNOWN_EXPRESSION, node, because="a relation's * inside an expression", hint=support.NO_STAR
            )
        if outputs and not node.table and node.name.lower() in outputs:
            return outputs[node.name.lower()]
        try:
            reused = not node.table and node.name.lower() in earlier
            return _look_around(node, sight, hint=_WRITE_OUT if reused else "")
        except InvalidView as error:
            output = (aliases or {}).get(node.name.lower()) if not node.table else None
            if output is None or error.code != support.UNKNOWN_COLUMN.code:
                raise
            return output

    return replace_parts(expression, found)


def _look_around(node: exp.Column, sight: Sight, hint: str) -> exp.Column:
    try:
        return _look(node, sight, hint)
    except InvalidView as error:
        if error.code != support.UNKNOWN_COLUMN.code:
            raise
        for outer in sight.around:
            try:
                return _look(node, outer, "")
            except InvalidView as other:
                if other.code != support.UNKNOWN_COLUMN.code:
                    raise
        raise


def _look(node: exp.Column, sight: Sight, hint: str) -> exp.Column:
    statement = sight.scope.statement
    if parts := qualifier_of(node):
        alias = find_alias(sight.scope, sight.visible, parts, node)
        seen = find_qualified(sight.visible, alias, node.this, statement, at=node)
    else:
        seen = find_plain(sight.visible, node.this, statement, hint=hint)
    result = column(sight.named(seen.alias), seen.column)
    result.meta.update(node.meta)
    result.this.meta.update(node.this.meta)
    if qualifier := node.parts[:-1]:
        result.args["table"].meta.update(qualifier[0].meta)
    return result
