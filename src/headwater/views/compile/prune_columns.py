"""Which columns of each node something above it needs; only these become columns of segments."""

from __future__ import annotations

from collections.abc import Iterable

import sqlglot
from sqlglot import exp

from headwater.views.compile.expressions import columns_in
from headwater.views.compile.plan import Grouped, Joined, Node, Regrouped, Source, United, known_of, total_of
from headwater.views.segments import First


def nodes_in_order(root: Node) -> list[Node]:
    """Return a node and all it is made of but relations, each once and after what it reads."""
    found: dict[Node, None] = {}

    def visit(node: Node) -> None:
        if isinstance(node, Source) or node in found:
            return
        for read in inputs_of(node):
            visit(read)
        found[node] = None

    visit(root)
    return list(found)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes that a node reads."""
    match node:
        case Source():
            return ()
        case Joined():
            return tuple(o.node for o in node.occurrences)
        case Grouped() | Regrouped():
            return (node.input,)
        case United():
            return tuple(branch.node for branch in node.branches)


def needed_columns(root: Node) -> dict[Node, frozenset[str]]:
    """Return for every node the names of its columns that are needed; all of the root's are."""
    needed: dict[Node, set[str]] = {root: {one.name for one in root.columns}}
    for node in reversed(nodes_in_order(root)):
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
            kept = [node.values[place] for place in kept_places(node, needed)]
            used = [found for part in (*kept, *node.conditions) for found in columns_in(part)]
            for occurrence in node.occurrences:
                yield occurrence.node, {found.name for found in used if found.table == occurrence.alias}
        case Grouped():
            totals = {name for name in node.totals if {total_of(name), known_of(name)} & needed}
            yield node.input, {*node.keys, *totals}
        case Regrouped():
            yield node.input, _asked_by(node, needed)
        case United():
            places = kept_places(node, needed)
            for branch in node.branches:
                yield branch.node, {branch.names[place] for place in places}
        case Source():
            return


def _asked_by(node: Regrouped, needed: set[str]) -> set[str]:
    if isinstance(node.computed, First):
        return {one.name for one in node.input.columns}
    texts = [text for name, text in node.computed.outputs if name in needed]
    return {*node.keys, *(name for text in texts for name in columns_of_text(text))}


def columns_of_text(text: str) -> set[str]:
    """Return the columns that a Spark expression names.

    >>> sorted(columns_of_text("SUM(`c1`) OVER (PARTITION BY {partition} ORDER BY `c2`)"))
    ['c1', 'c2']
    """
    tree = sqlglot.parse_one(text.replace("{partition}", "1"), read="spark")
    return {found.name for found in tree.find_all(exp.Column)}
