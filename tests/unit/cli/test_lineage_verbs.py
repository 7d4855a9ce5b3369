"""`trace`, `impact` and `why-not` in a terminal and as JSON, over a project that answers what it is told to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pyarrow as pa
from typer.testing import CliRunner

from headwater.cli.app import app
from headwater.deltas.lookup import Origin
from headwater.lineage.obstacles import Obstacle, ObstacleKind
from headwater.lineage.result import (
    ChangedRows,
    DerivedRows,
    ImpactResult,
    Pending,
    RowImpactResult,
    TracedRelation,
    TraceResult,
    WhyNotResult,
)
from headwater.lineage.traced import Traced
from headwater.model.moment import AtPosition, AtTick, Moment
from headwater.model.position import Position, Tick
from headwater.model.relation import RelationName, SegmentName
from headwater.observe.events import Listener
from headwater.observe.status import Stop

SALES = RelationName(source="shop", name="sales")
POSITION = Position(source="shop", history="1:1", offset=0x16B3748)


def ints(**columns: list[int | None]) -> pa.Table:
    return pa.table({name.replace("of_", "#of"): pa.array(values, pa.int64()) for name, values in columns.items()})


LEAF = Traced(
    name=SALES,
    title="shop.sales",
    origin=Origin.REPLICA,
    rows=ints(store=[1, 1, 2], amount=[5, 7, 9], _count=[2, 1, 1], of_=[0, 0, 1]),
)
GROUP = Traced(
    name=SegmentName(name="group_1"),
    title="group by sales.store",
    origin=Origin.AUXILIARY_TABLE,
    rows=pa.table({"sales.store": [1, 2], "COUNT(*)": [3, 1], "_count": [1, 1], "#of": [0, 1]}),
    below=(LEAF,),
)
TRACED = TraceResult(
    view="by_store",
    tick=Tick(41),
    rows=pa.table({"store": [1, 2], "sold": [3, 1], "_count": [1, 1]}),
    relations=(TracedRelation(relation="shop.sales", origin=Origin.REPLICA, rows=LEAF.rows.drop_columns(["#of"])),),
    tree=(GROUP,),
)


@dataclass
class MadeUp:
    """What the verbs ask for, and what they get."""

    asked: list[object] = field(default_factory=list)

    def trace(self, view: str, *, where: str | None, at: Moment | None, whole_rows: bool) -> TraceResult:
        self.asked.append((view, where, at, whole_rows))
        return TRACED

    def impact(self, position: AtPosition) -> ImpactResult:
        self.asked.append(position)
        rows = pa.table({"store": [1, 1], "sold": [2, 3], "_count": [-1, 1]})
        return ImpactResult(
            tick=Tick(41),
            asked=position,
            positions=(POSITION,),
            committed_at=datetime(2026, 11, 15, 10, 30, tzinfo=UTC),
            relations=(
                ChangedRows(name="shop.sales", after=Tick(40), upto=Tick(41), rows=ints(amount=[7], _count=[1])),
            ),
            views=(
                ChangedRows(name="by_store", after=Tick(40), upto=Tick(41), rows=rows),
                ChangedRows(name="lately", after=Tick(30), upto=Tick(45), rows=rows),
                ChangedRows(name="quiet", after=Tick(40), upto=Tick(41), rows=rows.slice(0, 0)),
            ),
            not_yet=("slow",),
        )

    def row_impact(self, relation: str, row: str, *, at: Moment | None) -> RowImpactResult:
        self.asked.append((relation, row, at))
        return RowImpactResult(
            relation=relation,
            row={"amount": 7},
            views=(
                DerivedRows(view="by_store", tick=Tick(41), rows=TRACED.rows.slice(0, 1), of=ints(_count=[1])),
                DerivedRows(view="other", tick=Tick(41), rows=TRACED.rows.slice(0, 0), of=ints(_count=[])),
            ),
        )

    def why_not(self, view: str, row: str, *, at: Moment | None) -> WhyNotResult:
        self.asked.append((view, row, at))
        return WhyNotResult(
            view=view,
            tick=Tick(41),
            row={"store": 9, "city": None},
            obstacles=()
            if row == "there"
            else (Obstacle(kind=ObstacleKind.NO_ROW, text="no row of shop.sales has store = 9"),),
            pending=(Pending(tick=Tick(43), position=POSITION, text="shop.sales gets such a row"),),
            stopped=Stop(tick=Tick(41), code="HW-521", summary="it cannot go on", hint="rebuild it"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def shown(project: MadeUp, *arguments: str) -> str:
    def opener(path: Path, listener: Listener) -> MadeUp:
        del path, listener
        return project

    result = CliRunner().invoke(app, list(arguments), obj=opener)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_trace_is_a_tree_from_the_view_s_row_to_source_rows() -> None:
    project = MadeUp()
    assert shown(project, "trace", "by_store", "--where", "sold > 0", "--at", "41") == (
        "by_store at tick 41\n"
        "├── store 1, sold 3\n"
        "│   └── group by sales.store, read from an auxiliary table\n"
        "│       └── sales.store 1, COUNT(*) 3\n"
        "│           └── shop.sales: 3 rows\n"
        "│               ├── store 1, amount 5  × 2\n"
        "│               └── store 1, amount 7\n"
        "└── store 2, sold 1\n"
        "    └── group by sales.store, read from an auxiliary table\n"
        "        └── sales.store 2, COUNT(*) 1\n"
        "            └── shop.sales: 1 row\n"
        "                └── store 2, amount 9\n"
        "shop.sales: 4 rows, read from a replica\n"
    )
    assert project.asked == [("by_store", "sold > 0", AtTick(tick=Tick(41)), False)]


def test_a_long_trace_is_cut_and_says_so() -> None:
    lines = shown(MadeUp(), "trace", "by_store", "--limit", "1").splitlines()
    assert "│               └── … and 1 more (--limit)" in lines
    assert "└── … and 1 more (--limit)" in lines


def test_a_trace_as_json_has_rows_relations_and_the_tree() -> None:
    told = json.loads(shown(MadeUp(), "trace", "by_store", "--json"))
    assert told["relations"][0]["relation"] == "shop.sales"
    assert told["relations"][0]["origin"] == "a replica"
    assert told["tree"][0]["below"][0]["name"] == "shop.sales"
    assert told["tree"][0]["below"][0]["rows"]["rows"][0] == [1, 5, 2, 0]


def test_an_impact_shows_what_went_and_what_came() -> None:
    project = MadeUp()
    text = shown(project, "impact", "shop:0/16B3748")
    assert project.asked == [AtPosition(source="shop", text="0/16B3748")]
    assert text.splitlines()[1:] == [
        "shop.sales",
        "└── + amount 7",
        "view by_store",
        "├── − store 1, sold 2",
        "└── + store 1, sold 3",
        "view lately (with ticks 31 to 45, which it shows as one)",
        "├── − store 1, sold 2",
        "└── + store 1, sold 3",
        "view quiet: nothing changed",
        "not yet there: slow",
    ]


def test_an_impact_says_which_transaction_is_the_newest_before_a_position() -> None:
    lines = shown(MadeUp(), "impact", "shop:0/16B3799").splitlines()
    assert lines[0] == "no transaction ends at shop:0/16B3799; the newest one before it is:"
    assert lines[1].startswith("tick 41, shop:0/16B3748, ")
    assert json.loads(shown(MadeUp(), "impact", "shop:0/16B3799", "--json"))["asked"] == "shop:0/16B3799"


def test_what_derives_from_a_source_row() -> None:
    assert shown(MadeUp(), "impact", "shop.sales", "--where", "amount = 7").splitlines() == [
        "shop.sales with amount = 7",
        "├── view by_store at tick 41",
        "│   └── store 1, sold 3",
        "└── view other at tick 41: there is no such row",
    ]


def test_why_not_names_the_obstacle_and_what_is_on_its_way() -> None:
    assert shown(MadeUp(), "why-not", "by_store", "--where", "store = 9").splitlines() == [
        'view "by_store" does not have store = 9, city = NULL at tick 41, because',
        "  no row of shop.sales has store = 9",
        "pending: shop.sales gets such a row at tick 43 (shop:0/16B3748), which the view has not come to",
        "the view stopped at tick 41: it cannot go on",
        "  do:  rebuild it",
    ]
    assert shown(MadeUp(), "why-not", "by_store", "--where", "there").startswith('view "by_store" has store = 9')
