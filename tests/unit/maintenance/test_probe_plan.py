"""The visit tree against a search over all orders of visits."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import pytest

from headwater.maintenance.probe_plan import plan_visits


def fewest_visits(nodes: str, edges: set[frozenset[str]]) -> int:
    """Search breadth first over what each term has bound; a visit binds a node wherever it is next to what is bound."""
    start = tuple(frozenset(node) for node in nodes)
    level, count = {start}, 0
    while not any(all(len(bound) == len(nodes) for bound in state) for state in level):
        level = {
            tuple(
                bound | {node} if any(frozenset((node, other)) in edges for other in bound) else bound
                for bound in state
            )
            for state in level
            for node in nodes
        }
        count += 1
    return count


@pytest.mark.parametrize("seed", range(60))
def test_no_order_of_visits_does_with_less(seed: int) -> None:
    random = Random(seed)
    nodes = "abcdef"[: random.randint(2, 6)]
    edges = {frozenset((nodes[i], random.choice(nodes[:i]))) for i in range(1, len(nodes))}
    edges |= {frozenset(pair) for pair in combinations(nodes, 2) if random.random() < 0.2}
    [tree] = plan_visits(nodes, [tuple(sorted(edge)) for edge in edges])
    assert tree.visit_count == fewest_visits(nodes, edges)


@pytest.mark.parametrize(("size", "visits"), [(2, 2), (3, 3), (4, 5), (5, 7), (6, 9)])
def test_a_chain_takes_2n_minus_3(size: int, visits: int) -> None:
    nodes = "abcdef"[:size]
    [tree] = plan_visits(nodes, list(pairwise(nodes)))
    assert tree.visit_count == visits


def test_large_graphs_get_a_tree_too() -> None:
    nodes = [f"n{i}" for i in range(20)]
    [tree] = plan_visits(nodes, [(nodes[i], nodes[i // 2]) for i in range(1, 20)])
    assert {tree.root, *tree.parents} == set(nodes)
    assert sum(len(level) for level in tree.levels) == 20
