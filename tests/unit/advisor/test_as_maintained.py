"""What is left to choose of a compiled view, once the engine has decided what it needs itself."""

from __future__ import annotations

from in_duckdb import World, relation

from headwater.advisor.algorithms.choose import ALGORITHMS
from headwater.advisor.as_maintained import as_maintained
from headwater.advisor.candidates import NOTHING, AuxiliaryKind, search_space
from headwater.advisor.cost_model import CostModel
from headwater.advisor.from_segments import Measured, structure_of
from headwater.advisor.statistics import RelationStatistics, SystemStatistics, UsageStatistics
from headwater.advisor.structure import GroupTable, Structure
from headwater.views.segments import SegmentedView

WORLD = World(
    [
        relation("shop", "sales", key=("no",), no="int!", product="int", amount="int"),
        relation("shop", "products", key=("id",), id="int!", kind="string"),
        relation("shop", "visits", product="int", visitor="int"),
    ]
)
BY_KIND = "SELECT p.kind, SUM(s.amount) AS a FROM shop.sales s JOIN shop.products p ON s.product = p.id GROUP BY p.kind"


def structure(view: SegmentedView, traces: float = 1.0, updates: float = 1.0) -> Structure:
    source = SystemStatistics(block_size=8192, disk_cost=1, net_cost=0.001, trip_cost=1)
    one = RelationStatistics(tuple_num=10_000, tuple_size=20, update_rate=updates, update_size=1, source=source)
    measured = Measured(
        relations=dict.fromkeys(view.relations, one),
        segment_rows={segment.name: 10_000.0 if "join" in segment.name.name else 10.0 for segment in view.segments},
        segment_row_sizes={segment.name: 16.0 for segment in view.segments},
        usage=UsageStatistics(query_rate=traces),
        warehouse=SystemStatistics(block_size=8192, disk_cost=1),
    )
    return as_maintained(structure_of(view, measured), view)


def test_group_tables_are_no_choice() -> None:
    found = structure(WORLD.compile(BY_KIND))
    kinds = {table.kind for table in search_space(found).candidates}
    assert AuxiliaryKind.GROUP_TABLE not in kinds
    assert {segment.group_table for segment in found.segments if segment is not found.top} == {GroupTable.ALWAYS}
    assert search_space(found).size == 2 * 2 * 3


def test_no_lineage_where_rows_cannot_be_told_apart() -> None:
    view = WORLD.compile("SELECT v.visitor, COUNT(*) AS n FROM shop.visits v, shop.products p GROUP BY v.visitor")
    assert {table.kind for table in search_space(structure(view)).candidates} == {AuxiliaryKind.REPLICA}


def test_lineage_pays_by_traces_and_never_by_updates() -> None:
    view = WORLD.compile(BY_KIND)
    for name, algorithm in ALGORITHMS.items():
        if name in ("naive", "none"):
            continue
        often = algorithm(CostModel(structure(view, traces=1_000_000, updates=0.001))).kept
        assert {table.kind for table in often} & {AuxiliaryKind.LINEAGE_VIEW, AuxiliaryKind.SPLIT_LINEAGE}, name
        never = algorithm(CostModel(structure(view, traces=0, updates=100))).kept
        assert not {table.kind for table in never} - {AuxiliaryKind.REPLICA}, name


def test_group_tables_are_written_though_nobody_chose_them() -> None:
    inner = "SELECT product, COUNT(*) AS n FROM shop.sales s GROUP BY product"
    view = WORLD.compile(f"SELECT q.n, COUNT(*) AS m FROM ({inner}) q GROUP BY q.n")
    model = CostModel(structure(view, traces=0))
    assert model.cost(NOTHING).maintaining > 0
    assert model.cost(NOTHING).tracing == 0
