"""Views that read one relation pay once for its replica, so together they keep what none of them keeps alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from headwater.advisor.algorithms.exact import exact
from headwater.advisor.candidates import Auxiliary, AuxiliaryKind, search_space
from headwater.advisor.cost_model import CostModel
from headwater.advisor.structure import SegmentNode, Structure
from headwater.advisor.together import choose_together, cost_together, paid_by_others, shared_relations
from headwater_lab.papers.views import figure_14


def renamed(structure: Structure, prefix: str, shared: tuple[str, ...]) -> Structure:
    """Return a structure of which only some relations have the names of another one."""
    top = structure.top
    operands = tuple(one if one.name in shared else replace(one, name=f"{prefix}{one.name}") for one in top.operands)
    return replace(structure, top=replace(top, name=f"{prefix}{top.name}", operands=operands))


def views(net_cost: float, partners: float, shared: tuple[str, ...]) -> dict[str, Structure]:
    one = figure_14(net_cost, partners)
    assert isinstance(one.top, SegmentNode)
    return {name: renamed(one, name, shared) for name in ("a", "b")}


@pytest.mark.parametrize("net_cost", [0.002, 0.006, 0.010, 0.014, 0.020, 0.032])
@pytest.mark.parametrize("partners", [0.6, 2, 5])
def test_no_pair_of_sets_costs_less(net_cost: float, partners: float) -> None:
    structures = views(net_cost, partners, ("R",))
    chosen = choose_together(structures, exact)
    spaces = [list(search_space(one).sets()) for one in structures.values()]
    least = min(cost_together(structures, dict(zip(structures, pair, strict=True))) for pair in product(*spaces))
    assert chosen.total == pytest.approx(least)


def test_what_no_view_keeps_alone_is_kept_together_and_paid_once() -> None:
    replica = Auxiliary("R", AuxiliaryKind.REPLICA)
    found = 0
    for net_cost, partners in product((0.001, 0.002, 0.003, 0.01), (1, 2, 5)):
        structures = views(net_cost, partners, ("R",))
        alone = {name: exact(CostModel(one)).kept for name, one in structures.items()}
        chosen = choose_together(structures, exact)
        assert chosen.total <= cost_together(structures, alone) + 1e-9
        if all(replica in kept for kept in chosen.kept.values()) and not any(
            replica in kept for kept in alone.values()
        ):
            found += 1
            assert paid_by_others("a", chosen.kept) == frozenset()
            assert "R" in paid_by_others("b", chosen.kept)
    assert found, "somewhere sharing decides"


def test_views_that_share_nothing_are_advised_as_alone() -> None:
    structures = views(0.010, 0.6, ())
    assert not shared_relations(structures)
    chosen = choose_together(structures, exact)
    assert chosen.kept == {name: exact(CostModel(one)).kept for name, one in structures.items()}
