"""A view of the lab: one join of relations, which is what the published algorithms maintain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headwater.model.relation import Column, Relation, RelationName
from headwater.views.compile.compile_view import compile_statement, with_written_aliases
from headwater.views.compile.draft import Draft
from headwater.views.compile.expressions import implied
from headwater.views.compile.plan import Block
from headwater.views.compile.reasons import UNTYPED, NoIncrementalForm
from headwater.views.steps.build_join import build_join
from headwater.views.steps.join import JoinView
from headwater.views.text.declaration import check_view
from headwater.views.text.statement import Statement
from headwater_lab.errors import InvalidScenario


def declare(name: str, sql: str, catalog: Mapping[RelationName, Relation], *, path: str = "") -> JoinView:
    """Return the join that a view's text is, with this text. One that is more than a join of relations is refused.

    >>> sales = RelationName(source="shop", name="sales")
    >>> columns = (Column(name="id", type="int", native="int4"), Column(name="price", type="int", native="int4"))
    >>> catalog = {sales: Relation(name=sales, columns=columns)}
    >>> view = declare("dear", "SELECT id FROM shop.sales WHERE Price > 9", catalog)
    >>> view.output_names, view.conditions[0].expression.sql(dialect="spark")
    (('id',), '`sales`.`price` > 9')
    """
    statement = check_view(sql, name=name, path=path)
    draft = Draft(types=_untyped)
    block = _compiled(statement, catalog, draft)
    if block is None or not block.is_join_of_relations:
        raise InvalidScenario(
            f'view "{name}" is more than one join',
            code="HW-721",
            detail=f"the published algorithms maintain inner joins of relations, selected and projected: {sql}",
            hint="write one SELECT of inner joins: no grouping, DISTINCT, LIMIT, windows, outer joins or sub-queries",
        )
    tables = {one.alias: draft.relation(one.node) for one in block.occurrences}
    join = build_join(name, tables, implied(block.conditions), list(zip(block.names, block.values, strict=True)))
    return replace(join, sql=sql)


def _compiled(statement: Statement, catalog: Mapping[RelationName, Relation], draft: Draft) -> Block | None:
    try:
        return with_written_aliases(compile_statement(statement, catalog, draft))
    except NoIncrementalForm:
        return None


def _untyped(_sql: str, _relations: Mapping[RelationName, Relation]) -> tuple[Column, ...]:
    """Give no types: only what is more than a join of relations asks for some before the whole text is typed."""
    raise NoIncrementalForm(UNTYPED, "")
