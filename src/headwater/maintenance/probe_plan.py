r"""In which order to visit the occurrences of a view, with as few visits as can be.

A term starts at a changed occurrence and must bind every other one along the join graph. Root a spanning tree at an
inner node; visit the inner nodes from the leaves towards the root, then everything from the root outwards:

        L1   L2            up:    A, then R           (a leaf has nothing to ask for before its parent is bound)
          \ /              down:  L1, L2, L3, A's other rows
      L3 — R — A — L4

Each inner node but the root is visited twice, the others once: n + (number of inner nodes) - 1. The inner nodes of a
tree are a connected dominating set of the graph, so a tree that has as few of them as can be gives n + γ - 1, and no
plan that asks one relation per visit does with less when every relation has changed (PAPERS.md §5.2).
Chain: 2n - 3. Star: n. Clique: n. A batch of any number of transactions costs this once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

_LARGEST_EXACT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitTree:
    """A rooted spanning tree of one connected part of a join graph."""

    root: str
    parents: Mapping[str, str]
    levels: tuple[tuple[str, ...], ...]
    """Nodes by their distance from the root; the first level is the root alone."""

    def children(self, node: str) -> tuple[str, ...]:
        """Return the nodes right below a node."""
        return tuple(child for child, parent in self.parents.items() if parent == node)

    @property
    def visit_count(self) -> int:
        """How many visits a batch costs in which every occurrence has changed."""
        inner = set(self.parents.values()) | {self.root}
        node_count = 1 + len(self.parents)
        return 0 if node_count == 1 else node_count + len(inner) - 1


def plan_visits(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> tuple[VisitTree, ...]:
    """Return a tree of fewest visits for each connected part of a join graph.

    >>> [tree.visit_count for tree in plan_visits("abcde", ["ab", "bc", "cd", "de"])]
    [7]
    >>> [tree.visit_count for tree in plan_visits("rstuv", ["rs", "rt", "ru", "rv"])]
    [5]
    >>> [tree.root for tree in plan_visits("ab", [])]
    ['a', 'b']
    """
    neighbours: dict[str, list[str]] = {node: [] for node in nodes}
    for left, right in edges:
        if left != right and right not in neighbours[left]:
            neighbours[left].append(right)
            neighbours[right].append(left)
    return tuple(_tree(part, neighbours) for part in _connected_parts(neighbours))


def _connected_parts(neighbours: Mapping[str, list[str]]) -> list[list[str]]:
    parts: list[list[str]] = []
    placed: set[str] = set()
    for start in neighbours:
        if start not in placed:
            part = _reachable(start, set(neighbours), neighbours)
            placed |= set(part)
            parts.append(part)
    return parts


def _reachable(start: str, within: set[str], neighbours: Mapping[str, list[str]]) -> list[str]:
    found = [start]
    for node in found:
        found.extend(near for near in neighbours[node] if near in within and near not in found)
    return found


def _tree(part: list[str], neighbours: Mapping[str, list[str]]) -> VisitTree:
    inner = _connected_dominating_set(part, neighbours)
    root = inner[0]
    parents: dict[str, str] = {}
    levels: list[list[str]] = [[root]]
    placed = {root}
    while len(placed) < len(part):
        level: list[str] = []
        for node in [node for node in levels[-1] if node in inner]:
            for near in neighbours[node]:
                if near not in placed:
                    placed.add(near)
                    parents[near] = node
                    level.append(near)
        levels.append(level)
    return VisitTree(root=root, parents=parents, levels=tuple(map(tuple, levels)))


def _connected_dominating_set(part: list[str], neighbours: Mapping[str, list[str]]) -> list[str]:
    """Return a smallest set of connected nodes that every other node is next to. For large graphs, just a small one."""
    if len(part) > _LARGEST_EXACT:
        return _reachable(part[0], {node for node in part if len(neighbours[node]) > 1} | {part[0]}, neighbours)
    for size in range(1, len(part) + 1):
        for chosen in combinations(part, size):
            covered = set(chosen).union(*(neighbours[node] for node in chosen))
            if covered >= set(part) and len(_reachable(chosen[0], set(chosen), neighbours)) == size:
                return list(chosen)
    raise AssertionError("a connected part dominates itself")
