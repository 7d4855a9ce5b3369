"""The cost model's formulas on numbers that can be followed by hand, and what must hold of it for any set."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from headwater.advisor.candidates import NOTHING, Auxiliary, AuxiliaryKind, Kept, search_space
from headwater.advisor.cost_model import CostModel, local, remote, write
from headwater.advisor.flow import Question, met
from headwater.advisor.statistics import SystemStatistics, UnionStatistics, UsageStatistics
from headwater.advisor.structure import SegmentNode, Structure
from headwater_lab.papers.views import figure_14, high_profit, tpc_d_views

SYSTEM = SystemStatistics(block_size=1000, disk_cost=10)

V8 = figure_14(0.032, 5)
BOTH_REPLICAS = frozenset({Auxiliary("R", AuxiliaryKind.REPLICA), Auxiliary("S", AuxiliaryKind.REPLICA)})
ASKED = replace(V8, top=replace(V8.top, is_joined_by_lineage=False))
LINEAGE = frozenset({Auxiliary("V", AuxiliaryKind.LINEAGE_VIEW)})


@pytest.mark.parametrize(("question", "expected"), [(Question(1, 3), 40), (Question(5, 30), 200)])
def test_local_reads_a_block_per_key_and_row_or_all_blocks(question: Question, expected: float) -> None:
    assert local(SYSTEM, 200, 100, question) == expected


def test_remote_adds_keys_there_and_rows_back() -> None:
    relation = V8.relations[0]
    assert remote(relation, Question(2, 3)) == pytest.approx(50 + (2 * 8 + 3 * 200) * 0.032)
    source = replace(relation.statistics.source, trip_cost=7, wait_cost=60)
    farther = replace(relation, statistics=replace(relation.statistics, source=source))
    assert remote(farther, Question(2, 3)) == pytest.approx(50 + (2 * 8 + 3 * 200) * 0.032 + 7)
    assert remote(farther, Question(2, 3, is_traced=True)) == pytest.approx(50 + (2 * 8 + 3 * 200) * 0.032 + 7 + 60)


def test_write_reads_and_writes_blocks() -> None:
    assert write(SYSTEM, 200, 100, 3) == 60
    assert write(SYSTEM, 200, 100, 500) == 400


def test_sizes_of_v8() -> None:
    flow = CostModel(V8).flows["V"]
    assert flow.lineage_rows == pytest.approx(1600)
    assert flow.lineage_size == 300
    assert flow.group_count == pytest.approx(2.048)
    assert flow.split_rows[0] == pytest.approx(met(1600, 320))
    assert flow.split_rows[1] == pytest.approx(met(1600, 1075))
    assert flow.behind(1) == pytest.approx(781.25)


def test_v8_with_replicas_by_hand() -> None:
    """A row of R finds 5 of S, one of S 1.488 of R; 8 and 14 blocks are scanned for a group; a write is 2."""
    r_joins, s_joins = 10 * (1 + met(5, 1075)), 10 * (1 + met(320 * 5 / 1075, 320))
    by_hand = 50 * (r_joins + 20 + 20) + 43 * (s_joins + 20 + 20) + 5 * 10 * (8 + 14)
    assert CostModel(V8).total(BOTH_REPLICAS) == pytest.approx(by_hand)


def test_v8_with_a_lineage_view_by_hand() -> None:
    """Joins go to the sources, a change of R writes 5 rows of the lineage view, tracing scans its 59 blocks."""
    s_rows, r_rows = met(5, 1075), met(320 * 5 / 1075, 320)
    r_change = 10 * (1 + s_rows) + 0.032 * (8 + 100 * s_rows) + 100
    s_change = 10 * (1 + r_rows) + 0.032 * (8 + 200 * r_rows) + 20 * 320 * 5 / 1075
    by_hand = 50 * (r_change + 20) + 43 * (s_change + 20) + 5 * 10 * 59
    assert CostModel(V8).total(LINEAGE) == pytest.approx(by_hand)


def with_fixed_costs(batch_rate: float) -> CostModel:
    warehouse = replace(V8.warehouse, trip_cost=100, read_cost=20, write_cost=30)
    return CostModel(replace(ASKED, warehouse=warehouse, usage=replace(V8.usage, batch_rate=batch_rate)))


def test_questions_and_writes_have_fixed_costs() -> None:
    """93 updates look up a replica and write it and the view; 5 traces look up two replicas, or read a lineage view."""
    model, plain = with_fixed_costs(inf), CostModel(ASKED)
    replicas = model.cost(BOTH_REPLICAS)
    assert replicas.tracing == pytest.approx(plain.cost(BOTH_REPLICAS).tracing + 5 * 2 * 100)
    assert replicas.maintaining == pytest.approx(plain.cost(BOTH_REPLICAS).maintaining + 93 * (100 + 30 + 30))
    lineage = model.cost(LINEAGE)
    assert lineage.tracing == pytest.approx(plain.cost(LINEAGE).tracing + 5 * 20)
    assert lineage.maintaining == pytest.approx(plain.cost(LINEAGE).maintaining + 93 * (30 + 30))
    split = frozenset({Auxiliary("V", AuxiliaryKind.SPLIT_LINEAGE)})
    assert model.cost(split).tracing == pytest.approx(plain.cost(split).tracing + 5 * 2 * 20)
    assert model.cost(split).maintaining == pytest.approx(plain.cost(split).maintaining + 93 * 3 * 30)


def test_a_replica_in_memory_is_looked_up_without_a_job() -> None:
    """R's 64,000 bytes are held, S's 107,500 are not: 43 updates of S look R up, and 50 of R write it, for nothing."""
    model = with_fixed_costs(inf)
    warehouse = replace(model.structure.warehouse, memory_size=100_000)
    held = CostModel(replace(model.structure, warehouse=warehouse)).cost(BOTH_REPLICAS)
    known = model.cost(BOTH_REPLICAS)
    assert held.tracing == pytest.approx(known.tracing)
    assert held.maintaining == pytest.approx(known.maintaining - 43 * 100 - 50 * 30)


def test_the_updates_of_a_batch_are_one() -> None:
    """In each of 10 batches, 5 rows of R and 4.3 of S; each asks the other side once, all write the view once."""
    model = with_fixed_costs(10)
    asked = [(question.keys, question.rows, rate) for one in model.flows["V"].joined for question, rate in one.items()]
    assert asked == [pytest.approx((4.3, met(4.3 * 1600 / 1075, 320), 10)), pytest.approx((5, met(25, 1075), 10))]
    known = CostModel(replace(ASKED, usage=replace(V8.usage, batch_rate=10))).cost(BOTH_REPLICAS)
    fixed = 10 * (100 + 100 + 30 + 30 + 30)
    assert model.cost(BOTH_REPLICAS).maintaining == pytest.approx(known.maintaining + fixed)


def test_what_is_kept_has_its_size() -> None:
    cost = CostModel(V8).cost(BOTH_REPLICAS | LINEAGE)
    assert cost.stored_bytes == pytest.approx(320 * 200 + 1075 * 100 + 1600 * 300)
    assert cost.total == cost.tracing + cost.maintaining


def test_without_updates_and_queries_nothing_costs() -> None:
    structure = high_profit()
    still = replace(structure, usage=replace(structure.usage, query_rate=0))
    assert CostModel(still).cost(NOTHING).tracing == 0
    assert CostModel(still).cost(NOTHING).maintaining > 0


def _everything(structure: Structure) -> Kept:
    return frozenset(search_space(structure).candidates)


@pytest.mark.parametrize("structure", [high_profit(), *tpc_d_views().values()], ids=lambda one: one.top.name)
def test_more_tables_never_make_tracing_dearer(structure: Structure) -> None:
    model = CostModel(structure)
    for kept in search_space(structure).sets():
        assert model.cost(kept).tracing >= model.cost(_everything(structure)).tracing - 1e-9
        for more in search_space(structure).candidates[:3]:
            assert model.cost(kept | {more}).tracing <= model.cost(kept).tracing + 1e-9


def test_the_change_of_a_relation_that_is_read_twice_arrives_through_both() -> None:
    """Four changed rows of Lineitem change four averages; both join Part, and each joins the other."""
    flows = CostModel(tpc_d_views()["Q17"]).flows
    lines, parts, averages = flows["Q17"].joined
    assert [question.keys for question in parts] == pytest.approx([4, 4], rel=1e-3)
    assert [question.keys for question in lines] == pytest.approx([4, 1e-3], rel=1e-3)
    assert [question.keys for question in averages] == pytest.approx([4, 1e-3], rel=1e-3)
    assert len(flows["average"].touches) == 1


def test_a_union_passes_changes_on_and_shares_what_is_traced() -> None:
    """320 rows beside 1,075: a changed row stays one row, and tracing 10 rows asks each side for its share of them."""
    union = SegmentNode(name="U", operands=V8.relations, statistics=UnionStatistics())
    structure = Structure(top=union, usage=UsageStatistics(query_rate=1, query_size=10), warehouse=V8.warehouse)
    flow = CostModel(structure).flows["U"]
    assert [touch.lineage_rows for touch in flow.touches] == [1]
    assert sum(flow.touches.values()) == 50 + 43
    assert [flow.question_behind(place, Question(10, 10)).rows for place in (0, 1)] == pytest.approx(
        [3200 / 1395, 10750 / 1395]
    )
    assert flow.group_size == 200
