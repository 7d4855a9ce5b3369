"""DISTINCT: a group per row, of which only the keys are read."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.views.compile.draft import Draft
from headwater.views.compile.expressions import column, is_linked
from headwater.views.compile.keep_matching import own_conditions
from headwater.views.compile.plan import Block
from headwater.views.compile.reasons import LINKED, UNCOMMON, NoIncrementalForm


def remove_duplicates(block: Block, order: Sequence[exp.Expr], draft: Draft) -> tuple[Block, list[exp.Expr]]:
    """Return the query's different rows, and what orders them over the new columns."""
    if any(is_linked(condition) for condition in block.conditions):
        raise NoIncrementalForm(LINKED, "DISTINCT in a linked sub-query")
    if any(value not in block.values for value in order):
        raise NoIncrementalForm(UNCOMMON, "ORDER BY what DISTINCT does not select")
    node, names = draft.join(block.occurrences, own_conditions(block), block.values)
    found = draft.occurrence(draft.group(node, names))
    values = tuple(column(found.alias, name) for name in names)
    ordered: list[exp.Expr] = [values[block.values.index(value)] for value in order]
    return Block(occurrences=(found,), conditions=(), names=block.names, values=values), ordered
