"""Differential: the exact algorithm costs what pricing every set finds, on random views; and it answers in seconds."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from time import perf_counter

import pytest
from random_structures import random_structure
from volume import volume

from headwater.advisor.algorithms.choose import exhaustive, none
from headwater.advisor.algorithms.exact import exact
from headwater.advisor.algorithms.three_step import combined
from headwater.advisor.candidates import search_space
from headwater.advisor.cost_model import CostModel
from headwater.advisor.structure import GroupTable, Node, ReadsBehind, RelationNode, SegmentNode, Structure
from headwater_lab.papers.random_statistics import with_random_statistics
from headwater_lab.papers.views import high_profit, regular_view, tpc_d_views

SMALL = 3_000


def small_structures(count: int) -> list[Structure]:
    drawn = (random_structure(Random(seed)) for seed in range(100 * count))
    found = (structure for structure in drawn if 2 < search_space(structure).size <= SMALL)
    return [structure for structure, _ in zip(found, range(count), strict=False)]


def agree(structure: Structure) -> None:
    model = CostModel(structure)
    found, best = exact(model), exhaustive(model)
    assert found.total == pytest.approx(best.total, rel=1e-9)
    assert found.kept in set(search_space(structure).sets())


def test_differential_exact_costs_what_exhaustive_does() -> None:
    structures = small_structures(volume(150, 3000))
    assert sum(bool(structure.shared_names) for structure in structures) > len(structures) / 10
    assert sum(structure.levels > 1 for structure in structures) > len(structures) / 4
    for structure in structures:
        agree(structure)


def test_differential_exact_does_not_live_off_a_good_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.advisor.algorithms.exact.combined", none)
    structures = [structure for structure in small_structures(volume(150, 3000)) if structure.shared_names]
    for structure in structures:
        agree(structure)


@pytest.mark.parametrize("structure", [high_profit(), *tpc_d_views().values()], ids=lambda one: one.top.name)
def test_differential_exact_agrees_on_the_papers_views(structure: Structure) -> None:
    for seed in range(volume(8, 200)):
        agree(with_random_statistics(structure, Random(seed)))


@pytest.mark.parametrize(("levels", "fan_out"), [(2, 3), (6, 1), (2, 5), (6, 2)])
def test_exact_answers_in_seconds_where_the_paper_gave_up(levels: int, fan_out: int) -> None:
    regular = regular_view(levels, fan_out, 10)
    for structure in (regular, with_random_statistics(regular, Random(1)), with_random_statistics(regular, Random(2))):
        began = perf_counter()
        exact(CostModel(structure))
        assert perf_counter() - began < 20


def test_exact_is_never_dearer_than_the_others() -> None:
    for seed in range(volume(5, 50)):
        model = CostModel(with_random_statistics(regular_view(2, 3, 10), Random(seed)))
        assert exact(model).total <= combined(model).total * (1 + 1e-12)


def settled(structure: Structure, chance: Random) -> Structure:
    """Return a structure in which much is no choice: group tables always or never kept, no lineage here or there."""
    drawn: dict[str, Node] = {}

    def draw(node: Node) -> Node:
        if isinstance(node, RelationNode):
            return node
        if node.name not in drawn:
            drawn[node.name] = replace(
                node,
                operands=tuple(draw(operand) for operand in node.operands),
                group_table=chance.choice(list(GroupTable)),
                reads_behind=chance.choice(list(ReadsBehind)),
                may_keep_lineage=chance.random() < 0.7,
                is_joined_by_lineage=chance.random() < 0.5,
            )
        return drawn[node.name]

    top = draw(structure.top)
    assert isinstance(top, SegmentNode)
    costs = replace(structure.warehouse, compute_cost=chance.choice((0.0, 1.0, 150.0)))
    return replace(structure, top=top, warehouse=costs)


def test_differential_exact_costs_what_exhaustive_does_where_much_is_no_choice() -> None:
    structures = [settled(one, Random(seed)) for seed, one in enumerate(small_structures(volume(150, 3000)))]
    assert sum(search_space(one).size > 2 for one in structures) > len(structures) / 2
    for structure in structures:
        agree(structure)
