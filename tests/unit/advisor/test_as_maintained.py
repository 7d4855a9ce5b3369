"""What may be chosen of a compiled view, and what the engine decides itself."""

from __future__ import annotations

from in_duckdb import World, relation

from headwater.advisor.algorithms.choose import ALGORITHMS
from headwater.advisor.as_maintained import as_maintained
from headwater.advisor.candidates import NOTHING, Auxiliary, AuxiliaryKind, search_space
from headwater.advisor.cost_model import CostModel
from headwater.advisor.flow import Question
from headwater.advisor.from_segments import Measured, structure_of
from headwater.advisor.statistics import RelationStatistics, SystemStatistics, UsageStatistics
from headwater.advisor.structure import GroupTable, ReadsBehind, SegmentNode, Structure
from headwater.model.keeping import TheseGroupTables
from headwater.views.steps.group_tables import keep_group_tables
from headwater.views.steps.segments import SegmentedView

WORLD = World(
    [
        relation("shop", "sales", key=("no",), no="int!", product="int", amount="int"),
        relation("shop", "products", key=("id",), id="int!", kind="string"),
        relation("shop", "visits", product="int", visitor="int"),
    ]
)
BY_KIND = "SELECT p.kind, SUM(s.amount) AS a FROM shop.sales s JOIN shop.products p ON s.product = p.id GROUP BY p.kind"


GROUPS = AuxiliaryKind.GROUP_TABLE


def structure(view: SegmentedView, traces: float = 1.0, updates: float = 1.0, compute: float = 0.0) -> Structure:
    source = SystemStatistics(block_size=8192, disk_cost=1, net_cost=0.001, trip_cost=1)
    one = RelationStatistics(tuple_num=10_000, tuple_size=20, update_rate=updates, update_size=1, source=source)
    measured = Measured(
        relations=dict.fromkeys(view.relations, one),
        segment_rows={segment.name: 10_000.0 if "join" in segment.name.name else 10.0 for segment in view.segments},
        segment_row_sizes={segment.name: 16.0 for segment in view.segments},
        usage=UsageStatistics(query_rate=traces),
        warehouse=SystemStatistics(block_size=8192, disk_cost=1, compute_cost=compute),
    )
    return as_maintained(structure_of(view, measured), view)


def of_kind(found: Structure, kind: str) -> SegmentNode:
    [one] = (segment for segment in found.segments if segment.name.startswith(f"segments.{kind}_"))
    return one


def test_a_group_table_is_a_choice() -> None:
    found = structure(WORLD.compile(BY_KIND))
    group = of_kind(found, "group")
    assert (group.group_table, group.reads_behind) == (GroupTable.CHOSEN, ReadsBehind.UNLESS_KEPT)
    assert (found.top.group_table, found.top.reads_behind) == (GroupTable.NEVER, ReadsBehind.NEVER)
    assert [table.of for table in search_space(found).candidates if table.kind is GROUPS] == [group.name]
    assert search_space(found).size == 2 * 2 * 2 * 3


def test_what_is_chosen_now_does_not_change_what_may_be() -> None:
    view = WORLD.compile(BY_KIND)
    assert structure(keep_group_tables(view, TheseGroupTables(()))) == structure(view)


def test_one_group_of_all_rows_is_no_choice() -> None:
    found = structure(WORLD.compile("SELECT COUNT(*) AS n FROM shop.sales s"))
    assert of_kind(found, "group").group_table is GroupTable.ALWAYS
    assert not [table for table in search_space(found).candidates if table.kind is GROUPS]


def test_a_regroup_reads_what_is_behind_and_its_input_may_be_kept() -> None:
    found = structure(WORLD.compile(BY_KIND.replace("SUM(", "MEDIAN(")))
    regroup, join = of_kind(found, "regroup"), of_kind(found, "join")
    assert (regroup.group_table, regroup.reads_behind) == (GroupTable.NEVER, ReadsBehind.ALWAYS)
    assert (join.group_table, join.reads_behind) == (GroupTable.CHOSEN, ReadsBehind.NEVER)
    model = CostModel(found)
    kept = frozenset({Auxiliary(join.name, GROUPS)})
    assert model.fetch(join, kept, Question(1, 10)) < model.fetch(join, NOTHING, Question(1, 10))


def test_a_group_table_saves_computing() -> None:
    view = WORLD.compile(BY_KIND)
    for compute in (0.0, 150.0):
        model = CostModel(structure(view, traces=0, updates=100, compute=compute))
        kept = frozenset({Auxiliary(of_kind(model.structure, "group").name, GROUPS)})
        saved = model.total(NOTHING) - model.total(kept)
        assert saved > 0, "a tenth of all sales is behind every kind"
        assert saved >= 2 * 100 * compute, "both relations change, and every change computes a group"
        assert kept <= ALGORITHMS["exact"](model).kept


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
        assert not {table.kind for table in never} - {AuxiliaryKind.REPLICA, GROUPS}, name


def test_group_tables_are_written_though_nobody_chose_them() -> None:
    inner = "SELECT product, COUNT(*) AS n FROM shop.sales s GROUP BY product"
    view = WORLD.compile(f"SELECT q.n, COUNT(*) AS m FROM ({inner}) q GROUP BY q.n")
    model = CostModel(structure(view, traces=0))
    assert model.cost(NOTHING).maintaining > 0
    assert model.cost(NOTHING).tracing == 0
