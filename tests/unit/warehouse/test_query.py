from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag
from headwater.errors import NotReadable, WarehouseRefused
from headwater.lineage.impact import find_impact
from headwater.model.moment import AtPosition, AtTick, AtTime, Moment
from headwater.model.position import LSN, Position, Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture, Transaction
from headwater.storage.notes import write_text
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.commit_record import BatchStatistics, CommitKind, CommitRecord, Stopped, ViewDelta
from headwater.warehouse.folders import STATUS, view_folder
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.log_rows import spark_rows
from headwater.warehouse.query import Warehouse

SALES = RelationName(source="shop", name="sales")
SCHEMA = pa.schema([("id", pa.int64())])


def capture(offset: int) -> Capture:
    position = Position(source="shop", history="1:1", offset=offset)
    one = Transaction(position=position, identity=offset, committed_at=datetime(2026, 1, 1, tzinfo=UTC))
    rows = pa.table({"id": [offset], "_ordinal": pa.array([0], pa.int32()), "_count": [1]})
    return Capture(transactions=(one,), rows={SALES: rows})


def batch(tick: int) -> CommitRecord:
    rows = {"v": ViewDelta(rows_added=1, rows_removed=0)}
    statistics = BatchStatistics(lo=Tick(tick - 1), hi=Tick(tick), seconds={"spark": 0.1}, rows=rows)
    return CommitRecord(frontiers={"v": Tick(tick)}, statistics=statistics)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A warehouse whose view `v` was born at tick 2 and is committed to tick 5; tick 6 is in the log only."""
    warehouse = Warehouse.create(str(tmp_path / "warehouse"))
    epoch = warehouse.commits.take_lease("here:1")
    warehouse.log.take_over(epoch)
    for offset in range(1, 7):
        warehouse.log.append([capture(offset * 100)])
    table = KeptTable.create(view_folder(warehouse.path, "v", 1), warehouse.commits.journal, SCHEMA, Tick(2))
    table.checkpoint.write(pa.table({"id": [100, 200]}), Tick(2))
    view = ViewEntry(name="v", generation=1, sql="…", birth=Tick(2), guarantee="complete", schema=(("id", "bigint"),))
    record = CommitRecord(frontiers={"v": Tick(2)})
    warehouse.commits.commit(CommitKind.CATALOG, Tick(2), record, epoch=epoch, catalog=Catalog(views={"v": view}))
    for tick in range(3, 6):
        change = table.change(ArrowBag(warehouse.log.rows(SALES, ("id",), Tick(tick - 1), Tick(tick))), Tick(tick))
        assert change is not None
        warehouse.commits.commit(CommitKind.BATCH, Tick(tick), batch(tick), epoch=epoch, changes=[change])
    return warehouse.path


def test_a_reader_sees_every_committed_state_and_nothing_else(path: str, spark: SparkSession) -> None:
    warehouse = Warehouse.open(path)
    for tick in range(2, 6):
        rows = warehouse.view_dataframe(spark, "v", Tick(tick)).toArrow()["id"].to_pylist()
        assert sorted(rows) == [100 * number for number in range(1, tick + 1)]
    assert warehouse.frontier("v") == 5
    changes = warehouse.changes_dataframe(spark, "v", Tick(3), Tick(5)).toArrow()
    assert sorted(changes["_tick"].to_pylist()) == [4, 5]
    assert [(one.lo, one.hi, one.rows_added) for one in warehouse.history("v")] == [(2, 3, 1), (3, 4, 1), (4, 5, 1)]


@pytest.mark.parametrize(("tick", "code"), [(1, "HW-414"), (6, "HW-415")])
def test_other_ticks_are_refused(path: str, spark: SparkSession, tick: int, code: str) -> None:
    with pytest.raises(NotReadable) as refused:
        Warehouse.open(path).view_dataframe(spark, "v", Tick(tick))
    assert refused.value.code == code


def test_a_stopped_view_says_why(path: str) -> None:
    warehouse = Warehouse.open(path)
    stopped = {"v": Stopped(code="HW-900", summary="division by zero", hint="fix the row")}
    record = CommitRecord(frontiers={"v": Tick(5)}, stopped=stopped)
    warehouse.commits.commit(CommitKind.BATCH, Tick(6), record, epoch=warehouse.head().epoch)
    with pytest.raises(NotReadable, match="cannot be read") as refused:
        warehouse.resolve_at("v", AtTick(tick=Tick(6)))
    assert "division by zero [HW-900]" in refused.value.detail
    with pytest.raises(NotReadable) as unknown:
        warehouse.frontier("w")
    assert unknown.value.code == "HW-416"


def test_moments_have_ticks(path: str) -> None:
    warehouse = Warehouse.open(path)
    assert warehouse.resolve_at("v", None) == 5
    assert warehouse.resolve_at("v", AtPosition(source="shop", text=LSN.text(450))) == 4
    at = warehouse.commits.read()[-2].committed_at
    assert warehouse.resolve_at("v", AtTime(time=at)) == 4
    with pytest.raises(NotReadable) as too_new:
        warehouse.resolve_at("v", AtPosition(source="shop", text=LSN.text(999)))
    assert too_new.value.code == "HW-417"


@pytest.mark.parametrize(
    ("moment", "code"),
    [
        (AtTime(time=datetime(1999, 1, 1, tzinfo=UTC)), "HW-152"),
        (AtTime(time=datetime(2999, 1, 1, tzinfo=UTC)), "HW-151"),
        (AtPosition(source="shop", text=LSN.text(0)), "HW-150"),
        (AtPosition(source="shop", text=LSN.text(601)), "HW-417"),
        (AtPosition(source="nosuch", text=LSN.text(100)), "HW-417"),
        (AtTick(tick=Tick(-1)), "HW-414"),
    ],
)
def test_moments_outside_history_are_refused(path: str, moment: Moment, code: str) -> None:
    with pytest.raises(NotReadable) as refused:
        Warehouse.open(path).resolve_at("v", moment)
    assert refused.value.code == code


def test_a_time_after_the_newest_commit_shows_what_readers_saw_then(path: str) -> None:
    warehouse = Warehouse.open(path)
    assert warehouse.resolve_at("v", AtTime(time=datetime.now(UTC))) == 5
    born = warehouse.commits.read()[1].committed_at
    assert warehouse.resolve_at("v", AtTime(time=born)) == 2
    with pytest.raises(NotReadable):
        warehouse.resolve_at("v", AtTime(time=born - timedelta(microseconds=1)))


def test_a_view_cannot_be_read_at_a_time_when_it_was_another(path: str) -> None:
    warehouse = Warehouse.open(path)
    before = warehouse.head().committed_at
    entry = replace(warehouse.view("v"), generation=2, birth=Tick(5))
    record = CommitRecord(frontiers={"v": Tick(5)})
    time.sleep(0.001)
    epoch = warehouse.head().epoch
    warehouse.commits.commit(CommitKind.CATALOG, Tick(5), record, epoch=epoch, catalog=Catalog(views={"v": entry}))
    with pytest.raises(NotReadable) as refused:
        warehouse.resolve_at("v", AtTime(time=before))
    assert refused.value.code == "HW-152"
    assert warehouse.resolve_at("v", AtTime(time=datetime.now(UTC))) == 5


def say_followed(path: str, offset: int) -> None:
    shop = {"position": ["1:1", offset], "state": "following", "retry_at": None, "error": ""}
    said = {"sources": {"shop": shop}, "messages": {"since": "2026-11-18T04:00:00+00:00", "counts": [], "tested": []}}
    write_text(path, STATUS, json.dumps(said))


def test_what_was_followed_has_come(path: str) -> None:
    """A log goes on past its newest transaction: what the maintainer followed has come, only what is beyond has not."""
    warehouse = Warehouse.open(path)
    with pytest.raises(NotReadable) as not_yet:
        warehouse.newest_tick_upto(AtPosition(source="shop", text=LSN.text(650)))
    assert not_yet.value.code == "HW-417"
    say_followed(path, 700)
    assert warehouse.newest_tick_upto(AtPosition(source="shop", text=LSN.text(650))) == 6
    with pytest.raises(NotReadable) as beyond:
        warehouse.newest_tick_upto(AtPosition(source="shop", text=LSN.text(701)))
    assert (beyond.value.code, beyond.value.detail) == ("HW-417", "it has come to shop:0/2BC")


def test_a_source_that_was_followed_and_quiet_has_the_first_state(tmp_path: Path) -> None:
    warehouse = Warehouse.create(str(tmp_path / "warehouse"))
    epoch = warehouse.commits.take_lease("here:1")
    followed = {"shop": Position(source="shop", history="1:1", offset=50)}
    warehouse.commits.commit(CommitKind.CATALOG, Tick(0), CommitRecord(positions=followed), epoch=epoch)
    say_followed(warehouse.path, 70)
    assert warehouse.tick_at(AtPosition(source="shop", text=LSN.text(60))) == 0
    with pytest.raises(NotReadable) as before:
        warehouse.tick_at(AtPosition(source="shop", text=LSN.text(49)))
    assert (before.value.code, before.value.hint) == ("HW-150", "ask for a position from shop:0/32 to shop:0/46")


def no_spark() -> NoReturn:
    raise AssertionError("Spark is not needed for this")


def test_the_impact_of_a_position_is_that_of_the_newest_transaction_up_to_it(path: str) -> None:
    warehouse = Warehouse.open(path)
    found = find_impact(no_spark, warehouse, AtPosition(source="shop", text=LSN.text(550)))
    assert (found.tick, str(found.asked), [str(one) for one in found.positions]) == (5, "shop:0/226", ["shop:0/1F4"])
    assert [(one.name, one.rows.to_pylist()) for one in found.views] == [("v", [{"id": 500, "_count": 1}])]
    say_followed(path, 700)
    assert find_impact(no_spark, warehouse, AtPosition(source="shop", text=LSN.text(700))).not_yet == ("v",)
    for offset, code in ((701, "HW-417"), (99, "HW-419")):
        with pytest.raises(NotReadable) as refused:
            find_impact(no_spark, warehouse, AtPosition(source="shop", text=LSN.text(offset)))
        assert refused.value.code == code


def test_a_view_that_is_misspelt(path: str) -> None:
    with pytest.raises(NotReadable) as refused:
        Warehouse.open(path).view("vv")
    assert (refused.value.code, refused.value.hint) == ("HW-416", 'did you mean "v"?')


def test_large_reads_of_the_log_go_through_spark(path: str, spark: SparkSession) -> None:
    warehouse = Warehouse.open(path)
    rows = spark_rows(spark, warehouse.log, SALES, ("id",), after=Tick(2), upto=Tick(5)).toArrow().sort_by("_tick")
    assert rows.equals(warehouse.log.rows(SALES, ("id",), Tick(2), Tick(5)))


def test_a_half_made_warehouse_is_completed_and_a_foreign_folder_refused(tmp_path: Path) -> None:
    whole = Warehouse.create(str(tmp_path / "w"))
    (tmp_path / "w" / "format.json").unlink()
    with pytest.raises(WarehouseRefused):
        Warehouse.open(whole.path)
    assert Warehouse.create(whole.path).head().sequence == 0
