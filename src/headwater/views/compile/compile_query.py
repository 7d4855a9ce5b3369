"""Any query: its WITH first, then by what it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from sqlglot import exp

from headwater.views.compile.combine_sets import combine_sets
from headwater.views.compile.compile_select import compile_select
from headwater.views.compile.expressions import column, settle
from headwater.views.compile.names import Context
from headwater.views.compile.plan import Block, Node, SourceRelation
from headwater.views.compile.reasons import MAKES_ROWS, UNCOMMON, NoIncrementalForm
from headwater.views.text.statement import Statement

_PARENTHESES = frozenset({"this", "alias", "with_"})


def compile_query(query: exp.Expr, context: Context) -> Block:
    """Return a query as a join over nodes."""
    context = _with_common(query, context)
    match query:
        case exp.Select():
            return compile_select(query, context)
        case exp.SetOperation():
            return combine_sets(query, context)
        case exp.Subquery() if not any(value for part, value in query.args.items() if part not in _PARENTHESES):
            return compile_query(query.this, context)
        case _:
            raise NoIncrementalForm(MAKES_ROWS, context.statement.words_of(query))


def _with_common(query: exp.Expr, context: Context) -> Context:
    """Return the context with the queries that WITH names. Each is compiled when it is first read, and only once."""
    named = query.args.get("with_")
    if named is None:
        return context
    if named.args.get("recursive"):
        raise NoIncrementalForm(UNCOMMON, "WITH RECURSIVE")
    for common in named.expressions:
        name, inner = common.alias.lower(), replace(context, is_outermost=False)
        read = _shared(_named_query(common, inner), inner, shared=_reads(query, name) > 1)
        context = replace(context, common={**context.common, name: read})
    return context


def with_lower_views(context: Context) -> Context:
    """Return the context of a view with the views that its text may name, as if WITH named them."""
    texts = (*context.statement.lower, context.statement)
    for lower in context.statement.lower:
        inner = replace(context, statement=lower, is_outermost=False)
        shared = sum(_reads(text.tree, lower.name) for text in texts) > 1
        read = _shared(_lower_view(lower, inner), inner, shared=shared)
        context = replace(context, common={**context.common, lower.name: read})
    return context


def _reads(query: exp.Expr, name: str) -> int:
    return sum(1 for table in query.find_all(exp.Table) if not table.db and table.name.lower() == name)


def _named_query(common: exp.CTE, context: Context) -> Callable[[], Block]:
    def compiled() -> Block:
        block = context.compile(common.this, context)
        listed = tuple(one.name for one in common.args["alias"].args.get("columns") or ())
        if listed and len(listed) != len(block.names):
            raise NoIncrementalForm(UNCOMMON, f"WITH {common.alias} of another number of columns")  # Spark refuses it
        return replace(block, names=listed or block.names)

    return compiled


def _lower_view(lower: Statement, context: Context) -> Callable[[], Block]:
    """Return what compiles an upstream view.

    All its columns are needed, so that its segments are those of the view itself.
    """

    def compiled() -> Block:
        with context.draft.of_view(lower.name):
            block = context.compile(lower.tree, context)
        context.draft.lower.append(block)
        return block

    return compiled


def _shared(compile_it: Callable[[], Block], context: Context, *, shared: bool) -> Callable[[], Block]:
    """Return what gives a named query: its join if it is read once, else a node that all who read it share."""
    compiled = cache(compile_it)

    def read() -> Block:
        block = compiled()
        if not shared:
            return block
        node, meant = _node_of(block, context)
        found = context.draft.occurrence(node)
        values = tuple(
            settle(value, {("", held.name): column(found.alias, held.name) for held in node.columns}) for value in meant
        )
        return Block(occurrences=(found,), conditions=(), names=block.names, values=values)

    return read


def _node_of(block: Block, context: Context) -> tuple[Node, tuple[exp.Expr, ...]]:
    """Return the node that holds a query's rows, and its values over the node's bare columns.

    Values over one node need no node of their own: the query that reads this one computes them.
    """
    only = block.occurrences[0].node if len(block.occurrences) == 1 and not block.conditions else None
    if only is not None and not isinstance(only, SourceRelation):
        bare = {(block.occurrences[0].alias, held.name): _bare(held.name) for held in only.columns}
        return only, tuple(settle(value, bare) for value in block.values)
    node, names = context.draft.join(block.occurrences, block.conditions, block.values)
    return node, tuple(_bare(name) for name in names)


def _bare(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))
