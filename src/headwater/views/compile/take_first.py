"""What is done with a query's rows at last: DISTINCT, and LIMIT in an order of all columns (`complete_orders`)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from headwater.deltas.order import By, can_order
from headwater.views.compile.draft import Draft
from headwater.views.compile.expressions import column, is_linked
from headwater.views.compile.keep_matching import own_conditions
from headwater.views.compile.plan import Block
from headwater.views.compile.reasons import FIRST, FIRST_OF_ALL, LINKED, UNCOMMON, NoIncrementalForm
from headwater.views.steps.computed import First


def remove_duplicates(block: Block, order: Sequence[exp.Expr], draft: Draft) -> tuple[Block, list[exp.Expr]]:
    """Return the query's different rows, and what orders them over the new columns: the keys of groups."""
    if any(is_linked(condition) for condition in block.conditions):
        raise NoIncrementalForm(LINKED, "DISTINCT in a linked sub-query")
    if any(value not in block.values for value in order):
        raise NoIncrementalForm(UNCOMMON, "ORDER BY what DISTINCT does not select")
    node, names = draft.join(block.occurrences, own_conditions(block), block.values)
    found = draft.occurrence(draft.group(node, names))
    values = tuple(column(found.alias, name) for name in names)
    ordered: list[exp.Expr] = [values[block.values.index(value)] for value in order]
    return Block(occurrences=(found,), conditions=(), names=block.names, values=values), ordered


def take_first(query: exp.Expr, block: Block, order: Sequence[exp.Expr], draft: Draft) -> Block:
    """Return the query's first rows, if it has LIMIT or OFFSET. `order` are the values of ORDER BY over its join."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    if limit is None and offset is None:
        return block
    if any(is_linked(condition) for condition in block.conditions):
        raise NoIncrementalForm(LINKED, "LIMIT in a linked sub-query")
    count = _number(limit, 2**31 - 1)
    node, names = draft.join(block.occurrences, block.conditions, [*block.values, *order])
    written = query.args["order"].expressions if query.args.get("order") else []
    wanted = [
        By(name, is_descending=bool(one.args.get("desc")), are_nulls_first=bool(one.args.get("nulls_first")))
        for name, one in zip(names[len(block.values) :], written, strict=True)
    ]
    by_column: dict[str, By] = {}
    for by in wanted:
        by_column.setdefault(by.column, by)
    first = First(order=tuple(by_column.values()), limit=count, offset=_number(offset, 0))
    schema = pa.schema([one.arrow_field for one in node.columns])
    why = FIRST if limit is not None and can_order(schema, first.order) else FIRST_OF_ALL
    found = draft.occurrence(draft.regroup(node, (), first, why=why.code))
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
