"""ORDER BY ... LIMIT: the first rows in an order that all columns make total: ties are cut the same every time."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.views.compile.draft import Draft
from headwater.views.compile.expressions import column, is_linked
from headwater.views.compile.plan import Block
from headwater.views.compile.reasons import FIRST, LINKED, UNCOMMON, NoIncrementalForm
from headwater.views.segments import First
from headwater.views.spark_text import quoted


def take_first(query: exp.Expr, block: Block, order: Sequence[exp.Expr], draft: Draft) -> Block:
    """Return the query's first rows, if it has LIMIT or OFFSET; `order` are the values of ORDER BY over its join."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if limit is None and offset is None:
        return block
    if any(is_linked(condition) for condition in block.conditions):
        raise NoIncrementalForm(LINKED, "LIMIT in a linked sub-query")
    count = _number(limit, 2**31 - 1)
    node, names = draft.join(block.occurrences, block.conditions, [*block.values, *order])
    written = query.args["order"].expressions if query.args.get("order") else []
    directions = [
        f"{quoted(name)} {'DESC' if one.args.get('desc') else 'ASC'} "
        f"{'NULLS FIRST' if one.args.get('nulls_first') else 'NULLS LAST'}"
        for name, one in zip(names[len(block.values) :], written, strict=True)
    ]
    ties = [quoted(one.name) for one in node.columns]
    first = First(order=", ".join([*directions, *ties]), limit=count, offset=_number(offset, 0))
    found = draft.occurrence(draft.regroup(node, (), first, why=FIRST.code))
    return Block(
        occurrences=(found,),
        conditions=(),
        names=block.names,
        values=tuple(column(found.alias, name) for name in names[: len(block.values)]),
    )


def _number(clause: exp.Expr | None, missing: int) -> int:
    if clause is None:
        return missing
    value = clause.expression
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise NoIncrementalForm(UNCOMMON, clause.sql(dialect="spark"))
    return int(value.name)
