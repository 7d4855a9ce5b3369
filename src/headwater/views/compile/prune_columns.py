"""Which columns of each node something above it needs. Only these become columns of segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlglot
from sqlglot import exp

from headwater.views.compile.expressions import columns_in
from headwater.views.compile.plan import (
    Block,
    Grouped,
    Joined,
    Node,
    Regrouped,
    SourceRelation,
    United,
    known_of,
    total_of,
)
from headwater.views.steps.computed import First


def nodes_in_order(root: Node) -> list[Node]:
    """Return a node and all it is made of but relations, each once and after what it reads."""
    found: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if isinstance(node, SourceRelation) or node in found:
            return
        for read in inputs_of(node):
            visit(read)
        found[node] = None

    visit(root)
    return list(found)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node reads."""
    match node:
        case SourceRelation():
            return ()
        case Joined():
            return tuple(o.node for o in node.occurrences)
        case Grouped() | Regrouped():
            return (node.input,)
        case United():
            return tuple(branch.node for branch in node.branches)


def needed_columns(root: Node, lower: Sequence[Block] = ()) -> dict[Node, frozenset[str]]:
    """Return for every node the names of its columns that are needed. All of the root's are.

    A node of an upstream view has the columns that this view itself needs, no matter which view reads it. Then it is
    the same segment.
    """
    order = nodes_in_order(root)
    needed: dict[Node, set[str]] = {node: set() for node in order}
    needed[root].update(one.name for one in root.columns)
    for block in lower:
        for read, names in _used(block, block.values):
            if read in needed:
                needed[read].update(names)
    for node in reversed(order):
        for read, names in _asks(node, needed[node]):
            needed.setdefault(read, set()).update(names)
    return {node: frozenset(names) for node, names in needed.items()}


def kept_places(node: Node, needed: frozenset[str] | set[str]) -> tuple[int, ...]:
    """Return the places of a join's, union's or regrouping's columns that stay: the needed ones, or the first."""
    places = tuple(place for place, one in enumerate(node.columns) if one.name in needed)
    return places or (0,)


def _asks(node: Node, needed: set[str]) -> Iterable[tuple[Node, set[str]]]:
    match node:
        case Joined():
            yield from _used(node, [node.values[place] for place in kept_places(node, needed)])
        case Grouped():
            totals = {name for name in node.totals if {total_of(name), known_of(name)} & needed}
            yield node.input, {*node.keys, *totals}
        case Regrouped():
            yield node.input, _asked_by(node, needed)
        case United():
            places = kept_places(node, needed)
            for branch in node.branches:
                yield branch.node, {branch.names[place] for place in places}
        case SourceRelation():
            return


def _used(join: Joined | Block, values: Iterable[exp.Expr]) -> Iterable[tuple[Node, set[str]]]:
    """Yield the columns of its occurrences that a join needs to give some values."""
    used = [found for part in (*values, *join.conditions) for found in columns_in(part)]
    for occurrence in join.occurrences:
        yield occurrence.node, {found.name for found in used if found.table == occurrence.alias}


def _asked_by(node: Regrouped, needed: set[str]) -> set[str]:
    if isinstance(node.computed, First):
        return {one.name for one in node.input.columns}
    kept = [text for name, text in node.computed.outputs if name in needed]
    texts = kept or [node.computed.outputs[0][1]]  # one output stays, so that rows can be counted
    return {*node.keys, *(name for text in texts for name in columns_of_text(text))}


def columns_of_text(text: str) -> set[str]:
    """Return the columns that a Spark expression names.

    >>> sorted(columns_of_text("SUM(`c1`) OVER (PARTITION BY {partition} ORDER BY `c2`)"))
    ['c1', 'c2']
    """
    tree = sqlglot.parse_one(text.replace("{partition}", "1"), read="spark")
    return {found.name for found in tree.find_all(exp.Column)}
