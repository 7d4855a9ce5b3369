"""FROM and JOIN: relations, named queries and queries in parentheses, joined from left to right.

Inner joins only add to the frame. A query inside that is itself a join becomes part of it, so

    SELECT x.a FROM (SELECT r.a, r.b FROM r JOIN s ON ...) AS x JOIN t ON x.b = t.b

is one join of r, s and t.

Of everything that FROM reads, a frame has the columns that the SELECT may name, in the order of their names: what a
view becomes depends on nothing else in its tables, so it is the same view after ADD COLUMN, and goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headwater.model.relation import Column, Relation, SegmentName
from headwater.views.compile.expressions import column, conjuncts, is_linked, settle
from headwater.views.compile.filter_rows import filter_rows
from headwater.views.compile.keep_matching import Side, join_outer, keep_matching, keep_unmatched
from headwater.views.compile.names import Context, Sight, find_names
from headwater.views.compile.plan import Block, Frame
from headwater.views.compile.reasons import LINKED, MAKES_ROWS, UNCOMMON, NoIncrementalForm
from headwater.views.text import support
from headwater.views.text.scope import (
    Named,
    Scope,
    Visible,
    find_plain,
    find_qualified,
    look_up,
    name_table,
    relation_name,
    see_columns,
    see_joined,
)
from headwater.views.text.statement import Statement

_PLAIN_TABLE = frozenset({"this", "db", "catalog", "alias"})
_PLAIN_QUERY = frozenset({"this", "alias"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One thing that FROM reads: how the text names it, and the frame that gives its columns."""

    named: Named
    frame: Frame


def read_from(select: exp.Select, context: Context) -> tuple[Frame, Sight]:
    """Return what FROM gives, and what can be named after it."""
    source = select.args.get("from_")
    if source is None or select.args.get("laterals"):
        raise NoIncrementalForm(MAKES_ROWS, "LATERAL VIEW" if source else "SELECT without FROM")
    statement = replace(context.statement, tree=select)
    number = context.draft.number()
    asked = columns_named(select)
    first = _only(asked, _read_item(source.this, number, context))
    frame = first.frame
    named = [first.named]
    sight = _sight(statement, named, [see_columns(first.named)], number, context)
    visibles = [sight.visible]
    for join in select.args.get("joins") or ():
        item = _only(asked, _read_item(join.this, number, context))
        if any(other.alias.lower() == item.named.alias.lower() for other in named):
            raise statement.refusal(support.DUPLICATE_ALIAS, join.this, because=f'"{item.named.alias}"')
        using = join.args.get("using") or []
        both = see_joined(sight.visible, item.named, using, statement)
        at_join = _sight(statement, [*named, item.named], [*visibles, both], number, context)
        on = [_using(key, sight, at_join, item.named.alias) for key in using]
        on += conjuncts(find_names(join.args["on"], at_join)) if join.args.get("on") else []
        if join.kind in {"SEMI", "ANTI"} or join.side in {"SEMI", "ANTI"}:
            keep = keep_matching if "SEMI" in {join.kind, join.side} else keep_unmatched
            settled = [settle(condition, {**frame.columns, **item.frame.columns}) for condition in on]
            frame = keep(frame, _unnamed(item.frame), settled, context.draft)
            continue
        frame = _join(frame, item.frame, join, on, at_join, context)
        named, visibles, sight = [*named, item.named], [*visibles, both], at_join
    return frame, sight


def columns_named(select: exp.Select) -> frozenset[tuple[str, str]] | None:
    """Return the columns that a SELECT names, as (qualifier or "", name) in lower case. None if a star names all.

    >>> import sqlglot
    >>> sorted(columns_named(sqlglot.parse_one("SELECT s.A, COUNT(*) AS n FROM s JOIN t USING (b)", read="spark")))
    [('', 'b'), ('s', 'a')]
    >>> columns_named(sqlglot.parse_one("SELECT s.* FROM s", read="spark")) is None
    True
    """
    if any(item.is_star for item in select.expressions):
        return None
    using = [key for join in select.find_all(exp.Join) for key in join.args.get("using") or ()]
    named = {("", key.name.lower()) for key in using}
    return frozenset(named | {(one.table.lower(), one.name.lower()) for one in select.find_all(exp.Column)})


def _only(asked: frozenset[tuple[str, str]] | None, item: _Item) -> _Item:
    """Return what FROM reads with the columns that are asked for, in the order of their names."""
    if asked is None:
        return item
    qualifiers = ("", item.named.alias.lower())
    columns = {
        key: item.frame.columns[key]
        for key in sorted(item.frame.columns)
        if any((qualifier, key[1].lower()) in asked for qualifier in qualifiers)
    }
    return replace(item, frame=replace(item.frame, columns=columns))


def _unnamed(frame: Frame) -> Frame:
    """Return a frame whose aliases nothing after it can name."""
    return replace(frame, occurrences=tuple(replace(one, written="") for one in frame.occurrences))


def _sight(statement: Statement, named: list[Named], visible: list[Visible], number: int, context: Context) -> Sight:
    scope = Scope(statement=statement, named=tuple(named), visible=tuple(visible))
    return Sight(scope=scope, visible=scope.everything, number=number, around=context.around)


def _using(key: exp.Expr, left: Sight, both: Sight, alias: str) -> exp.Expr:
    statement = both.scope.statement
    mine = find_plain(left.visible, key, statement)
    theirs = find_qualified(both.visible, alias, key, statement)
    return exp.EQ(this=column(left.named(mine.alias), mine.column), expression=column(both.named(alias), theirs.column))


def _join(frame: Frame, other: Frame, join: exp.Join, on: list[exp.Expr], sight: Sight, context: Context) -> Frame:
    statement = sight.scope.statement
    if join.method:
        if join.method == "NATURAL":
            raise statement.refusal(support.NATURAL_JOIN, join)
        hint = "write a JOIN on all rows that may match, and keep one of them: QUALIFY row_number() OVER (…) = 1"
        raise statement.refusal(support.CLAUSE, join, because=f"{join.method} JOIN", hint=hint)
    if join.kind not in {"", "INNER", "CROSS", "OUTER"}:
        raise statement.refusal(support.CLAUSE, join, because=f"{join.kind} JOIN")
    if join.side:
        if join.args.get("using") and join.side in {"RIGHT", "FULL"}:
            raise NoIncrementalForm(UNCOMMON, f"{join.side} JOIN ... USING")
        settled = [settle(condition, {**frame.columns, **other.columns}) for condition in on]
        return join_outer(frame, other, settled, Side(join.side), context.draft)
    both = Frame(
        occurrences=frame.occurrences + other.occurrences,
        conditions=frame.conditions + other.conditions,
        columns={**frame.columns, **other.columns},
    )
    return filter_rows(both, on, sight, context)


def _read_item(item: exp.Expr, number: int, context: Context) -> _Item:
    if isinstance(item, exp.Table) and not isinstance(item.this, exp.Func):
        common = context.common.get(item.name.lower()) if not item.db else None
        if any(value for part, value in item.args.items() if part not in _PLAIN_TABLE):
            raise NoIncrementalForm(UNCOMMON, context.statement.words_of(item))
        if common is None:
            relation = look_up(relation_name(item, context.statement), item, context.statement, context.catalog)
            return _read_relation(item, relation, number, context)
        return _read_block(item, common(), number, context)
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
        if any(value for part, value in item.args.items() if part not in _PLAIN_QUERY):
            raise NoIncrementalForm(UNCOMMON, context.statement.words_of(item))
        inner = replace(context, is_outermost=False)
        return _read_block(item, context.compile(item.this, inner), number, context)
    raise NoIncrementalForm(MAKES_ROWS, context.statement.words_of(item))


def _read_relation(table: exp.Table, relation: Relation, number: int, context: Context) -> _Item:
    listed = _listed(table)
    if listed:
        raise context.statement.refusal(
            support.CLAUSE, table.args["alias"], hint="rename columns with AS in the SELECT list"
        )
    named = name_table(table, relation)
    written = named.alias if context.is_outermost else ""
    occurrence = context.draft.occurrence(context.draft.source(relation), written)
    columns = {(f"{named.alias}#{number}", c.name): column(occurrence.alias, c.name) for c in relation.columns}
    return _Item(named=named, frame=Frame(occurrences=(occurrence,), conditions=(), columns=columns))


def _read_block(item: exp.Expr, block: Block, number: int, context: Context) -> _Item:
    if block.empty is not None and any(is_linked(condition) for condition in block.conditions):
        # it promises a row even where nothing is linked, which a join with its groups does not give
        raise NoIncrementalForm(LINKED, "an aggregate of a linked sub-query that another query reads")
    names = _listed(item) or block.names
    if len(names) != len(block.names):
        raise NoIncrementalForm(UNCOMMON, f"{item.alias} of another number of columns")  # Spark refuses it
    alias = item.alias_or_name or f"_{context.draft.number()}"
    for place, name in enumerate(names):
        if name and name.lower() in {other.lower() for other in names[:place]}:
            raise context.statement.refusal(support.DUPLICATE_OUTPUT, item, because=f'"{name}"')
    columns = tuple(Column(name=name or f"_{place}", type="", native="") for place, name in enumerate(names))
    relation = Relation(name=SegmentName(name=alias), columns=columns)
    named = Named(alias=alias, relation=relation, qualifiers=frozenset({(alias.lower(),)}))
    meant = {(f"{alias}#{number}", c.name): value for c, value in zip(columns, block.values, strict=True)}
    frame = Frame(occurrences=block.occurrences, conditions=block.conditions, columns=meant)
    return _Item(named=named, frame=frame)


def _listed(item: exp.Expr) -> tuple[str, ...]:
    alias = item.args.get("alias")
    return tuple(found.name for found in alias.args.get("columns") or ()) if alias is not None else ()
