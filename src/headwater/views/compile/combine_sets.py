"""UNION, INTERSECT and EXCEPT.

    A UNION ALL B    the sum
    A UNION B        the sum, each row once
    A INTERSECT B    rows of the sum, tagged by where they come from, that have both tags
    A EXCEPT B       likewise, that have the first and not the second
    ... ALL          likewise, but copies of a row are numbered: those of A up to, or beyond, how many B has

Columns are by position; Spark says what type two of them have in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from headwater.views.compile.draft import Draft, DraftPart
from headwater.views.compile.expressions import column, is_linked
from headwater.views.compile.names import Context
from headwater.views.compile.plan import Block, Node, PlannedOccurrence, known_of
from headwater.views.compile.reasons import COPIES, LINKED, UNCOMMON, NoIncrementalForm
from headwater.views.compile.take_first import take_first
from headwater.views.steps.computed import Windows
from headwater.views.text.spark_text import quoted
from headwater.views.text.statement import Statement


def combine_sets(query: exp.SetOperation, context: Context) -> Block:
    """Return a set operation as a union, and what is asked of it."""
    if query.args.get("by_name") or query.args.get("side") or query.args.get("kind"):
        raise NoIncrementalForm(UNCOMMON, f"{query.key.upper()} BY NAME")
    left = context.compile(query.this, context)
    right = context.compile(query.expression, replace(context, is_outermost=False))
    if any(is_linked(part) for side in (left, right) for part in (*side.conditions, *side.values)):
        raise NoIncrementalForm(LINKED, f"{query.key.upper()} in a linked sub-query")
    if len(left.values) != len(right.values):
        raise NoIncrementalForm(UNCOMMON, f"{query.key.upper()} of different numbers of columns")
    combined = _combine(query, left, right, context)
    order = _read_order(query, combined, context.statement)
    return take_first(query, combined, order, context.draft)


def _combine(query: exp.SetOperation, left: Block, right: Block, context: Context) -> Block:
    draft = context.draft
    kinds = _common_types(left, right, context)
    tagged = not isinstance(query, exp.Union)
    one, none = exp.Literal.number(1), exp.cast(exp.null(), exp.DataType.build("int", dialect="spark"))
    tags: tuple[tuple[exp.Expr, ...], tuple[exp.Expr, ...]] = ((one, none), (none, one)) if tagged else ((), ())
    parts = [
        DraftPart(frame=block, values=(*block.values, *tag), sign=1)
        for block, tag in zip((left, right), tags, strict=True)
    ]
    node = draft.unite_parts(parts, [*kinds, *("int" for _ in tags[0])])
    names = [held.name for held in node.columns]
    own, asked = names[: len(kinds)], names[len(kinds) :]
    if not query.args.get("distinct") and tagged:
        return _copies(query, node, own, asked, left, draft)
    if not query.args.get("distinct"):
        found = draft.occurrence(node)
        return _over(found.alias, names, left, (), occurrence=found)
    found = draft.occurrence(draft.group(node, own, asked))
    if not tagged:
        return _over(found.alias, own, left, (), occurrence=found)
    mine, theirs = (column(found.alias, known_of(name)) for name in asked)
    wanted = exp.GT if isinstance(query, exp.Intersect) else exp.EQ
    conditions = (
        exp.GT(this=mine, expression=exp.Literal.number(0)),
        wanted(this=theirs, expression=exp.Literal.number(0)),
    )
    return _over(found.alias, own, left, conditions, occurrence=found)


def _copies(
    query: exp.SetOperation, node: Node, own: Sequence[str], asked: Sequence[str], left: Block, draft: Draft
) -> Block:
    """Return the copies of the left side's rows that INTERSECT ALL or EXCEPT ALL leaves. `asked` are the two tags."""
    mine, theirs = map(quoted, asked)
    outputs = {name: quoted(name) for name in own} | {
        "is_mine": f"{mine} IS NOT NULL",
        "copy": f"ROW_NUMBER() OVER (PARTITION BY {{partition}}, {mine} ORDER BY {mine})",
        "others": f"COUNT({theirs}) OVER (PARTITION BY {{partition}})",
    }
    numbered = Windows(outputs=tuple(outputs.items()))
    found = draft.occurrence(draft.regroup(node, own, numbered, why=COPIES.code))
    wanted = exp.LTE if isinstance(query, exp.Intersect) else exp.GT
    copy, others = column(found.alias, "copy"), column(found.alias, "others")
    conditions = (column(found.alias, "is_mine"), wanted(this=copy, expression=others))
    return _over(found.alias, list(own), left, conditions, occurrence=found)


def _over(
    alias: str, names: list[str], left: Block, conditions: tuple[exp.Expr, ...], *, occurrence: PlannedOccurrence
) -> Block:
    return Block(
        occurrences=(occurrence,),
        conditions=conditions,
        names=left.names,
        values=tuple(column(alias, name) for name in names),
    )


def _common_types(left: Block, right: Block, context: Context) -> tuple[str, ...]:
    """Return the types that Spark gives a union of both."""
    kinds = [context.draft.types_of(block.occurrences, block.values) for block in (left, right)]
    if kinds[0] == kinds[1]:
        return kinds[0]
    sides = [
        ", ".join(f"{'NULL' if kind == 'void' else f'CAST(NULL AS {kind})'} AS c{n}" for n, kind in enumerate(side))
        for side in kinds
    ]
    some = context.draft.relation(left.occurrences[0].node)
    typed = context.draft.types(f"SELECT {sides[0]} UNION ALL SELECT {sides[1]}", {some.name: some})
    return tuple(one.type for one in typed)


def _read_order(query: exp.SetOperation, block: Block, statement: Statement) -> list[exp.Expr]:
    if not (query.args.get("limit") or query.args.get("offset")) or not query.args.get("order"):
        return []
    by_name = {name.lower(): value for name, value in zip(block.names, block.values, strict=True)}

    def meant(asked: exp.Expr) -> exp.Expr:
        if isinstance(asked, exp.Literal) and asked.name.isdigit() and 1 <= int(asked.name) <= len(block.values):
            return block.values[int(asked.name) - 1]
        if isinstance(asked, exp.Column) and not asked.table and asked.name.lower() in by_name:
            return by_name[asked.name.lower()]
        raise NoIncrementalForm(UNCOMMON, f"ORDER BY {statement.words_of(asked)} of a set operation")

    return [meant(ordered.this) for ordered in query.args["order"].expressions]
