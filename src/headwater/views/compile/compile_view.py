"""From a view's SQL to its segments.

text ──read──► Statement ──VIEW_CHECKS, complete_orders──► ──compile_query──► Block ──► nodes ──prune, write──► segments

A view that joins relations and does no more is one segment, with its author's aliases. What has no incremental form is
recomputed from its relations, unless it must not be (`strict`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.errors import InvalidView
from headwater.model.relation import Column, Relation, RelationName
from headwater.views.compile.compile_query import compile_query, with_lower_views
from headwater.views.compile.complete_orders import complete_orders
from headwater.views.compile.draft import Draft, Types, check_settled
from headwater.views.compile.expressions import cast_to, column, held_type, implied, settle
from headwater.views.compile.names import Context
from headwater.views.compile.plan import Block, Joined
from headwater.views.compile.reasons import CHOSEN, UNTYPED, WHYS, NoIncrementalForm
from headwater.views.compile.recompute_view import recompute_view
from headwater.views.compile.write_segments import write_segments
from headwater.views.steps.segments import Segment, SegmentedView
from headwater.views.text import support
from headwater.views.text.declaration import check_view
from headwater.views.text.other_dialects import find_quoted_column
from headwater.views.text.scope import look_up_all, relation_name, relations_read
from headwater.views.text.statement import Span, Statement
from headwater.views.text.upstream_views import ViewText, completed_text, whole_text

UNTYPED_CODE = "HW-244"


def compile_view(
    name: str,
    sql: str,
    catalog: Mapping[RelationName, Relation],
    types: Types,
    *,
    path: str = "",
    strict: bool = False,
    lower: Sequence[ViewText] = (),
    recomputed: bool = False,
) -> SegmentedView:
    """Understand any view's SQL, given the relations it may read and who types a SELECT over relations.

    `lower` are the views that it reads, itself or through others, each after those that it reads. One that is to be
    recomputed is so whatever it says.
    """
    checked = check_view(sql, name=name, path=path, lower=lower)
    _check_quotes(checked, catalog)
    statement = complete_orders(checked, catalog)
    completed = completed_text(statement)
    text = completed or whole_text(sql, lower)
    try:
        if recomputed:
            chosen = NoIncrementalForm(CHOSEN, "")
            found = recompute_view(statement, text, catalog, types, chosen, keeps_copies=False)
        else:
            found = _segments(statement, text, catalog, types)
    except InvalidView as error:
        if error.code != UNTYPED_CODE:
            raise
        read = look_up_all(statement, catalog)
        types(whole_text(sql, lower), read)  # says it of the author's own text, not of ours
        if because := _why_untyped(completed, read, types):
            raise statement.refusal(support.OPEN_ORDER, None, because=because) from None
        raise
    named = tuple(look_up_all(statement, catalog).values())
    view = replace(found, lower=tuple(lower), completed=completed, named=named)
    whole = {why.code for why in WHYS if why.whole}
    if strict and (forbidden := [reason for reason in view.reasons if reason.code in whole]):
        raise statement.refusal(
            support.STRICT, None, because=f"{forbidden[0].what} ({forbidden[0].code})", hint=forbidden[0].remedy
        )
    return view


def _check_quotes(statement: Statement, catalog: Mapping[RelationName, Relation]) -> None:
    """Refuse a column in double quotes: Spark reads a text there, so nothing would fail, and nothing be right."""
    read = {relation_name(table, text) for table, text in relations_read(statement)}
    columns = {column for name in read & catalog.keys() for column in catalog[name].column_names}
    if foreign := find_quoted_column(statement.sql, statement.tokens, columns):
        token = statement.tokens[foreign.token]
        raise statement.refusal(
            support.OTHER_DIALECT,
            Span(start=token.start, end=token.end + 1),
            because=foreign.what,
            hint=foreign.remedy,
        )


def _why_untyped(completed: str, read: Mapping[RelationName, Relation], types: Types) -> str:
    """Return why a text with completed orders cannot be run, or nothing."""
    try:
        types(completed or "SELECT 1 AS one", read)
    except InvalidView as error:
        return error.detail.partition("\n")[0].partition(" SQLSTATE")[0]
    return ""


def _segments(statement: Statement, text: str, catalog: Mapping[RelationName, Relation], types: Types) -> SegmentedView:
    draft = Draft(types=_types_of_parts(types))
    try:
        block = with_written_aliases(compile_statement(statement, catalog, draft))
        expected = types(text, look_up_all(statement, catalog))
        _check_typed(statement, expected)
        segments, reasons = write_segments(statement.name, _root(block, expected, draft), block.names, draft)
        if draft.holds_untyped:
            _check_joins(segments, draft.types)
    except NoIncrementalForm as found:
        return recompute_view(statement, text, catalog, types, found, keeps_copies=True)
    return SegmentedView(
        name=statement.name, sql=statement.sql, segments=segments, reasons=reasons, path=statement.path
    )


def compile_statement(statement: Statement, catalog: Mapping[RelationName, Relation], draft: Draft) -> Block:
    """Return a checked statement as a join over nodes, which are made in a draft."""
    context = Context(
        draft=draft,
        statement=statement,
        catalog=catalog,
        common={},
        around=(),
        compile=compile_query,
        is_outermost=True,
    )
    return compile_query(statement.tree, with_lower_views(context))


def with_written_aliases(block: Block) -> Block:
    """Return a join of relations that one SELECT names with its author's aliases. Any other block as it is."""
    if not all(one.written for one in block.occurrences):
        return block
    meant = {(o.alias, c.name): column(o.written, c.name) for o in block.occurrences for c in o.node.columns}
    return replace(
        block,
        occurrences=tuple(replace(one, alias=one.written) for one in block.occurrences),
        conditions=tuple(settle(condition, meant) for condition in block.conditions),
        values=tuple(settle(value, meant) for value in block.values),
    )


def _types_of_parts(types: Types) -> Types:
    """Return what types parts of ours: if Spark cannot run one, it is asked about the author's own text instead."""

    def typed(sql: str, relations: Mapping[RelationName, Relation]) -> tuple[Column, ...]:
        try:
            return types(sql, relations)
        except InvalidView:
            raise NoIncrementalForm(UNTYPED, "") from None

    return typed


def _check_joins(segments: Sequence[Segment], types: Types) -> None:
    """See to it that NULLs that were given a type are not compared with values of another."""
    for segment in segments:
        join = segment.step.join
        if join is not None:
            types(join.sql, {o.relation.name: o.relation for o in join.occurrences})


def _check_typed(statement: Statement, columns: Sequence[Column]) -> None:
    """Refuse a column that is NULL and nothing else."""
    for one in columns:
        if held_type(one.type) != one.type:
            written = [found for found in statement.tree.find_all(exp.Alias) if found.alias == one.name]
            raise statement.refusal(support.UNTYPED_OUTPUT, written[0] if written else None, because=f'"{one.name}"')


def _root(block: Block, expected: tuple[Column, ...], draft: Draft) -> Joined:
    """Return the last join: the view's columns, in the types that Spark gives the original text.

    Where it reads relations alone, its values are those of the text, and have its types.
    """
    check_settled([*block.conditions, *block.values])
    values = block.values
    if not block.is_join_of_relations:
        own = draft.types_of(block.occurrences, block.values)
        values = tuple(
            value if kind == one.type else cast_to(value, one.type)
            for value, kind, one in zip(block.values, own, expected, strict=True)
        )
    return Joined(
        occurrences=block.occurrences,
        conditions=implied(block.conditions),
        values=values,
        columns=tuple(Column(name=f"c{place}", type=one.type, native=one.type) for place, one in enumerate(expected)),
    )
