"""Compiled views as structures: HighProfit becomes the paper's, unions and shared parts keep their shape."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from in_duckdb import World, relation

from headwater.advisor.algorithms.exact import exact
from headwater.advisor.candidates import search_space
from headwater.advisor.cost_model import CostModel
from headwater.advisor.flow import rows_of
from headwater.advisor.from_segments import Measured, structure_of
from headwater.advisor.statistics import RelationStatistics, SystemStatistics, UnionStatistics, UsageStatistics
from headwater.advisor.structure import Structure
from headwater.errors import UnsupportedView
from headwater.views.steps.group_step import GroupStep
from headwater.views.steps.recompute_step import RecomputeStep
from headwater.views.steps.segments import SegmentedView
from headwater_lab.papers.views import high_profit

WORLD = World(
    [
        relation("shop", "store", key=("store_id",), store_id="int!", city="string", expenses="decimal(12,2)"),
        relation(
            "shop", "product", key=("product_id",), product_id="int!", price="decimal(12,2)", cost="decimal(12,2)"
        ),
        relation("shop", "sales", store_id="int!", product_id="int!", num="int"),
        relation("shop", "employee", key=("emp_id",), emp_id="int!", store_id="int", salary="decimal(12,2)"),
    ]
)
HIGH_PROFIT = """
    SELECT city
    FROM (SELECT store_id, SUM(salary) AS salaries FROM shop.employee AS em GROUP BY store_id) AS e,
         (SELECT store_id, SUM(num * (price - cost)) AS profit
          FROM shop.sales AS sa, shop.product AS pr WHERE sa.product_id = pr.product_id GROUP BY store_id) AS p,
         shop.store AS st
    WHERE st.store_id = e.store_id AND e.store_id = p.store_id AND p.profit - e.salaries - st.expenses > 100000
"""
AS_PUBLISHED = {relation.name.lower(): relation.statistics for relation in high_profit().relations}


def structure(sql: str, rows: Mapping[str, float], sizes: Mapping[str, float] | None = None) -> Structure:
    """Return the structure of a view; rows and bytes of segments are told by the beginning of their names."""
    view = WORLD.compile(sql)
    return structure_of(view, measured(view, rows, sizes or {}))


def measured(view: SegmentedView, rows: Mapping[str, float], sizes: Mapping[str, float]) -> Measured:
    def told(values: Mapping[str, float], name: str, otherwise: float) -> float:
        return next((value for start, value in values.items() if name.startswith(start)), otherwise)

    names = [segment.name for segment in view.segments]
    return Measured(
        relations={name: AS_PUBLISHED[name.name] for name in view.relations},
        segment_rows={name: told(rows, name.name, 100.0) for name in names},
        segment_row_sizes={name: told(sizes, name.name, 16.0) for name in names},
        usage=UsageStatistics(query_rate=19),
        warehouse=SystemStatistics(block_size=8192, disk_cost=10),
    )


def test_high_profit_becomes_the_papers_structure_and_has_its_optimum() -> None:
    found = structure(HIGH_PROFIT, {"join": 1_000_000, "selection": 6_000, "group": 100, "v": 5}, {"v": 23.2})
    published = high_profit()
    assert found.levels == 2
    assert search_space(found).size == 576
    assert sorted(segment.fan_out for segment in found.segments) == [1, 2, 3]
    assert sorted(rows_of(segment) for segment in found.segments) == sorted(rows_of(one) for one in published.segments)
    best = exact(CostModel(found))
    assert best.total == pytest.approx(exact(CostModel(published)).total)
    assert sorted(table.kind.value for table in best.kept) == ["AG", "AG", "BT", "LV", "SLT"]
    assert "BT shop.store" in {str(table) for table in best.kept}


def test_a_join_that_is_read_by_others_too_stays_a_segment_of_its_own() -> None:
    sql = """
        WITH sold AS (SELECT sa.store_id, pr.price FROM shop.sales AS sa JOIN shop.product AS pr USING (product_id))
        SELECT a.store_id, a.n, s.price
        FROM (SELECT store_id, COUNT(*) AS n FROM sold GROUP BY store_id) AS a JOIN sold AS s ON s.store_id = a.store_id
    """
    view = WORLD.compile(sql)
    found = structure_of(view, measured(view, {"join": 5_000, "group": 100, "v": 5_000}, {}))
    groups = {str(segment.name) for segment in view.segments if isinstance(segment.step, GroupStep)}
    shared = found.shared_names - {"shop.sales", "shop.product"}
    assert len(shared) == 1
    assert {segment.name for segment in found.segments if segment.fan_out == 1} == groups


def test_an_outer_join_is_a_union_that_joins_nothing() -> None:
    sql = "SELECT st.city, e.salary FROM shop.store AS st LEFT JOIN shop.employee AS e ON e.store_id = st.store_id"
    found = structure(sql, {"join": 6_000, "selection": 6_000, "group": 90, "union": 6_010, "v": 6_010})
    (union,) = (segment for segment in found.segments if isinstance(segment.statistics, UnionStatistics))
    flow = CostModel(found).flows[union.name]
    assert flow.lineage_rows == pytest.approx(sum(flow.operand_rows))
    assert not any(flow.joined)
    assert not [
        table for table in search_space(found).candidates if table.of == union.name and table.kind.value != "AG"
    ]
    assert exact(CostModel(found)).total > 0


def test_what_is_computed_anew_is_refused() -> None:
    view = WORLD.compile("SELECT sa.num FROM shop.sales AS sa JOIN VALUES (1), (2) AS few(n) ON sa.num = few.n")
    assert any(isinstance(segment.step, RecomputeStep) for segment in view.segments)
    with pytest.raises(UnsupportedView, match="no choice of auxiliary tables") as refused:
        structure_of(view, measured(view, {}, {}))
    assert refused.value.code == "HW-731"


def test_an_empty_join_has_ratios_too() -> None:
    found = structure(HIGH_PROFIT, {"join": 0, "selection": 6_000, "group": 0, "v": 0})
    assert exact(CostModel(found)).total > 0


def test_statistics_are_those_of_the_source() -> None:
    found = structure(HIGH_PROFIT, {"join": 1_000_000, "selection": 6_000, "group": 100, "v": 5})
    known: dict[str, RelationStatistics] = {one.name: one.statistics for one in found.relations}
    assert known["shop.sales"] == AS_PUBLISHED["sales"]
