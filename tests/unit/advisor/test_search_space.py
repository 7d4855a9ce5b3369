"""What may be kept for a view, and what is refused."""

from __future__ import annotations

import pytest

from headwater.advisor.algorithms.choose import exhaustive
from headwater.advisor.candidates import search_space
from headwater.advisor.cost_model import CostModel
from headwater.errors import HeadwaterError
from headwater_lab.papers.views import high_profit, regular_view, tpc_d_views


def test_high_profit_has_576_sets_not_384() -> None:
    space = search_space(high_profit())
    sets = list(space.sets())
    assert space.size == len(sets) == len(set(sets)) == 576


def test_high_profit_may_keep_what_figure_3_shows() -> None:
    assert {str(table) for table in search_space(high_profit()).candidates} == {
        "BT Employee", "BT Sales", "BT Product", "BT Store", "AG Salary", "AG Profit",
        "LV Profit", "SLT Profit", "LV HighProfit", "SLT HighProfit",
    }  # fmt: skip


def test_lineage_view_and_split_lineage_tables_exclude_each_other() -> None:
    space = search_space(high_profit())
    lineage, split = space.lineage_choices[0]
    assert not space.admits(frozenset({lineage}), split)
    assert space.admits(frozenset(), split)
    assert not any({lineage, split} <= kept for kept in space.sets())


def test_what_is_read_twice_is_kept_once() -> None:
    structure = tpc_d_views()["Q11"]
    assert structure.shared_names == {"PartSupp", "Supplier", "Nation"}
    assert search_space(structure).size == 2**3 * 2**2 * 3**3


def test_a_regular_tree_has_its_levels_and_fan_out() -> None:
    structure = regular_view(3, 2, 1.0)
    assert structure.levels == 3
    assert len(structure.segments) == 7
    assert len(structure.relations) == 8
    assert {segment.fan_out for segment in structure.segments} == {2}


def test_pricing_every_set_of_a_large_view_is_refused() -> None:
    with pytest.raises(HeadwaterError, match="cannot price every set") as refused:
        exhaustive(CostModel(regular_view(2, 5, 10)))
    assert refused.value.code == "HW-730"
