"""From a view's SQL to its segments.

text ──read──► Statement ──VIEW_CHECKS──► ──compile_query──► Block ──► nodes ──prune, write──► segments

A select-project-join view is one segment, declared as it is. What has no incremental form is recomputed from its
relations, unless it must not be (`strict`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.errors import HeadwaterError, InvalidView
from headwater.relation import Column, Relation, RelationName
from headwater.views import support
from headwater.views.checks import JOIN_CHECKS
from headwater.views.compile.compile_query import compile_query, with_lower_views
from headwater.views.compile.context import Context
from headwater.views.compile.draft import Draft, Types, check_settled
from headwater.views.compile.expressions import cast_to, held_type, implied
from headwater.views.compile.plan import Block, Joined
from headwater.views.compile.reasons import CHOSEN, UNTYPED, WHYS, NoIncrementalForm
from headwater.views.compile.recompute_view import recompute_view
from headwater.views.compile.write_segments import write_segments
from headwater.views.declaration import check_view, declare
from headwater.views.lower_views import ViewText, whole_text
from headwater.views.scope import look_up_all
from headwater.views.segments import SEGMENTS, JoinStep, Segment, SegmentedView
from headwater.views.statement import Statement


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
    statement = check_view(sql, name=name, path=path, lower=lower)
    if recomputed:
        chosen = NoIncrementalForm(CHOSEN, "maintenance")
        found = recompute_view(statement, catalog, types, chosen, keeps_copies=False)
    else:
        found = _plain_join(statement, catalog, types) or _segments(statement, catalog, types)
    view = replace(found, lower=tuple(lower), named=tuple(look_up_all(statement, catalog).values()))
    whole = {why.code for why in WHYS if why.whole}
    if strict and (forbidden := [reason for reason in view.reasons if reason.code in whole]):
        raise statement.refusal(
            support.STRICT, None, because=f"{forbidden[0].what} ({forbidden[0].code})", hint=forbidden[0].remedy
        )
    return view


def _plain_join(statement: Statement, catalog: Mapping[RelationName, Relation], types: Types) -> SegmentedView | None:
    """Return the view as one join of relations, if it is no more than that."""
    if statement.lower:
        return None
    try:
        for check in JOIN_CHECKS:
            check(statement)
    except HeadwaterError:
        return None
    join = declare(statement.name, statement.sql, catalog, path=statement.path)
    columns = types(statement.sql, look_up_all(statement, catalog))
    _check_typed(statement, columns)
    relation = Relation(name=RelationName(source=SEGMENTS, name=statement.name), columns=columns)
    segment = Segment(relation=relation, step=JoinStep(view=join), is_kept=True)
    return SegmentedView(name=statement.name, sql=statement.sql, segments=(segment,), path=statement.path)


def _segments(statement: Statement, catalog: Mapping[RelationName, Relation], types: Types) -> SegmentedView:
    unreadable = NoIncrementalForm(UNTYPED, statement.name)
    draft = Draft(types=_types_of_parts(types, unreadable))
    text = whole_text(statement.sql, statement.lower)
    context = Context(
        draft=draft,
        statement=statement,
        catalog=catalog,
        common={},
        around=(),
        compile=compile_query,
        is_outermost=True,
    )
    try:
        block = compile_query(statement.tree, with_lower_views(context))
        expected = types(text, look_up_all(statement, catalog))
        _check_typed(statement, expected)
        root = _root(block, expected, draft)
    except NoIncrementalForm as found:
        return recompute_view(statement, catalog, types, found, keeps_copies=True)
    try:
        segments, reasons = write_segments(statement.name, root, block.names, catalog, draft, path=statement.path)
        if draft.holds_untyped:
            _check_joins(segments, types)
    except HeadwaterError:  # the author's text can be run: that is known by now
        return recompute_view(statement, catalog, types, unreadable, keeps_copies=True)
    return SegmentedView(
        name=statement.name, sql=statement.sql, segments=segments, reasons=reasons, path=statement.path
    )


def _types_of_parts(types: Types, unreadable: NoIncrementalForm) -> Types:
    """Return what types parts of ours: if Spark cannot run one, it is asked about the author's own text instead."""

    def typed(sql: str, relations: Mapping[RelationName, Relation]) -> tuple[Column, ...]:
        try:
            return types(sql, relations)
        except InvalidView:
            raise unreadable from None

    return typed


def _check_joins(segments: Sequence[Segment], types: Types) -> None:
    """See to it that NULLs that were given a type are not compared with values of another."""
    for segment in segments:
        if isinstance(segment.step, JoinStep):
            join = segment.step.view
            types(join.sql, {o.relation.name: o.relation for o in join.occurrences})


def _check_typed(statement: Statement, columns: Sequence[Column]) -> None:
    """Refuse a column that is NULL and nothing else."""
    for one in columns:
        if held_type(one.type) != one.type:
            written = [found for found in statement.tree.find_all(exp.Alias) if found.alias == one.name]
            raise statement.refusal(support.UNTYPED_OUTPUT, written[0] if written else None, because=f'"{one.name}"')


def _root(block: Block, expected: tuple[Column, ...], draft: Draft) -> Joined:
    """Return the last join: the view's columns, in the types that Spark gives the original text."""
    check_settled([*block.conditions, *block.values])
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
