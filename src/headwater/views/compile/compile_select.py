"""One SELECT, clause by clause, in SQL's order: FROM, WHERE, GROUP BY, HAVING, windows, DISTINCT, LIMIT."""

from __future__ import annotations

from sqlglot import exp

from headwater.views.compile.attach_queries import attach_queries
from headwater.views.compile.compute_windows import compute_windows, spell_out_windows
from headwater.views.compile.expressions import cast_to, conjuncts, has_query, is_linked, settle
from headwater.views.compile.filter_rows import filter_rows
from headwater.views.compile.group_rows import group_rows
from headwater.views.compile.names import Context, Sight, find_names
from headwater.views.compile.plan import Block, Frame
from headwater.views.compile.read_from import read_from
from headwater.views.compile.reasons import LINKED, MAKES_ROWS, UNCOMMON, NoIncrementalForm
from headwater.views.compile.take_first import remove_duplicates, take_first
from headwater.views.compile.written import Written
from headwater.views.text.bounds import excess_of_value
from headwater.views.text.expand_stars import expand_stars
from headwater.views.text.functions import MAKE_ROWS
from headwater.views.text.name_outputs import name_outputs

_KNOWN_CLAUSES = frozenset(
    {
        "with_", "expressions", "from_", "joins", "where", "group", "having", "windows", "qualify", "distinct", "order",
        "sort", "cluster", "distribute", "limit", "offset", "hint", "laterals", "kind",
    }
)  # fmt: skip


def compile_select(select: exp.Select, context: Context) -> Block:
    """Return a SELECT as a join over nodes."""
    for clause, value in select.args.items():
        if value and clause not in _KNOWN_CLAUSES:
            raise NoIncrementalForm(UNCOMMON, clause.rstrip("_").upper())
    select = spell_out_windows(select)
    frame, sight = read_from(select, context)
    written = _read_written(select, sight, context)
    if where := select.args.get("where"):
        frame = filter_rows(frame, conjuncts(find_names(where.this, sight)), sight, context)
    groups = group_rows(select, written, frame, sight, context)
    empty = None
    if groups is not None:
        frame, written = groups.frame, groups.written
        frame = filter_rows(frame, written.having, sight, context)
        empty = groups.empty
        if empty is not None:
            _check_promised_row(groups.frame, frame, written)
    frame, written = compute_windows(written, frame, sight, context)
    read = [*written.values, *written.order]
    values, frame = attach_queries(read, frame, sight, context, decides=context.is_outermost)
    block = Block(
        occurrences=frame.occurrences,
        conditions=frame.conditions,
        names=written.names,
        values=tuple(settle(value, frame.columns) for value in values[: len(written.values)]),
        empty=_empty_values(written, empty),
    )
    _check_size(block, select, context)
    order = [settle(value, frame.columns) for value in values[len(written.values) :]]
    if select.args.get("distinct"):
        if select.args["distinct"].args.get("on"):
            raise NoIncrementalForm(UNCOMMON, "DISTINCT ON")
        block, order = remove_duplicates(block, order, context.draft)
    return take_first(select, block, order, context.draft)


def _check_size(block: Block, select: exp.Select, context: Context) -> None:
    for value in (*block.values, *block.conditions):
        context.statement.refuse(excess_of_value(value, select))


def _read_written(select: exp.Select, sight: Sight, context: Context) -> Written:
    listed = expand_stars(select, sight.scope).expressions
    found: list[tuple[str, exp.Expr]] = []
    for item in listed:
        bare = item.this if isinstance(item, exp.Alias) else item
        if isinstance(bare, MAKE_ROWS):
            raise NoIncrementalForm(MAKES_ROWS, context.statement.words_of(bare))
        earlier = {name.lower() for name, _ in found}
        name = item.alias_or_name if isinstance(item, (exp.Alias, exp.Column)) else ""
        found.append((name, find_names(bare, sight, earlier=earlier)))
    if context.is_outermost:
        name_outputs(exp.Select(expressions=[_named(item) for item in listed]), sight.scope)
    aliases = {name.lower(): value for name, value in found if name}
    having = select.args.get("having")
    qualify = select.args.get("qualify")
    return Written(
        names=tuple(name for name, _ in found),
        values=tuple(value for _, value in found),
        having=tuple(conjuncts(find_names(_condition(having.this), sight, aliases))) if having else (),
        qualify=tuple(conjuncts(find_names(qualify.this, sight, aliases))) if qualify else (),
        order=_read_order(select, found, sight),
    )


def _condition(having: exp.Expr) -> exp.Expr:
    """Return what HAVING asks. Spark takes a value that is no predicate for one."""
    return cast_to(having, "boolean") if isinstance(having.unnest(), (exp.Column, exp.Literal, exp.Func)) else having


def _named(item: exp.Expr) -> exp.Expr:
    if not isinstance(item, exp.Column):
        return item
    named = exp.alias_(item.copy(), exp.to_identifier(item.name, quoted=True))
    named.meta.update(item.this.meta or item.meta)
    return named


def _read_order(select: exp.Select, items: list[tuple[str, exp.Expr]], sight: Sight) -> tuple[exp.Expr, ...]:
    """Return what LIMIT orders by. Without a LIMIT a table has no order. Outputs are found before columns."""
    if not (select.args.get("limit") or select.args.get("offset")) or not select.args.get("order"):
        return ()
    by_name = {name.lower(): value for name, value in items if name}
    found = []
    for ordered in select.args["order"].expressions:
        asked = ordered.this
        if isinstance(asked, exp.Var):
            raise NoIncrementalForm(UNCOMMON, f"ORDER BY {asked.name}")
        if isinstance(asked, exp.Literal) and asked.is_int and 1 <= int(asked.name) <= len(items):
            found.append(items[int(asked.name) - 1][1])
        else:
            found.append(find_names(asked, sight, outputs=by_name))
    return tuple(found)


def _check_promised_row(groups: Frame, frame: Frame, written: Written) -> None:
    """See to it that an aggregate without GROUP BY is known for a link that finds no rows."""
    links = [sum(map(is_linked, one.conditions)) for one in (groups, frame)]
    if links[0] < links[1]:
        raise NoIncrementalForm(LINKED, "HAVING in a sub-query without GROUP BY")
    if links[1] and any(has_query(value) for value in written.values):
        raise NoIncrementalForm(LINKED, "a query beside an aggregate of a linked sub-query")


def _empty_values(written: Written, empty: dict[tuple[str, str], exp.Expr] | None) -> tuple[exp.Expr, ...] | None:
    return None if empty is None else tuple(settle(value, empty) for value in written.values)
