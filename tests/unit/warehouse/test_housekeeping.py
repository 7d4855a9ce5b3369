from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag
from headwater.errors import LeaseLost, NotReadable
from headwater.model.position import Position, Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture, Transaction
from headwater.storage.object_store import store_at
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.chores import CleanLog, Compact, DropRows, Fold, Policy, Trim, Vacuum
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.folders import RESERVED, replica_folder, reserve_generation, view_folder
from headwater.warehouse.generations import abandoned, clear_unnamed
from headwater.warehouse.housekeeping import Housekeeper
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

SALES = RelationName(source="shop", name="sales")
START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64())])
VIEW = ViewEntry(name="v", generation=1, sql="…", birth=Tick(0), guarantee="complete", schema=(("id", "bigint"),))


class World:
    """A warehouse with one view that is a copy of one relation, moved on tick by tick."""

    def __init__(self, path: str) -> None:
        self.warehouse = Warehouse.create(path)
        self.epoch = self.warehouse.commits.take_lease("here:1")
        self.warehouse.log.take_over(self.epoch)
        self.journal = self.warehouse.commits.journal
        self.table = KeptTable.create(view_folder(path, "v", 1), self.journal, SCHEMA, Tick(0))
        self.table.checkpoint.write(pa.table({"id": pa.array([], pa.int64())}), Tick(0))
        self.catalog(Catalog(views={"v": VIEW}))

    def catalog(self, catalog: Catalog) -> None:
        head = self.warehouse.head()
        self.warehouse.commits.commit(CommitKind.CATALOG, head.tick, head.record, epoch=self.epoch, catalog=catalog)

    def step(self) -> None:
        offset = self.warehouse.log.last_tick + 1
        position = Position(source="shop", history="1:1", offset=offset)
        one = Transaction(position=position, identity=offset, committed_at=START + timedelta(seconds=offset))
        rows = pa.table({"id": [offset], "_ordinal": pa.array([0], pa.int32()), "_count": [1]})
        span = self.warehouse.log.append([Capture(transactions=(one,), rows={SALES: rows})])
        change = self.table.change(ArrowBag(self.warehouse.log.rows(SALES, ("id",), span.after, span.upto)), span.upto)
        assert change is not None
        record = CommitRecord(frontiers={"v": span.upto})
        self.warehouse.commits.commit(CommitKind.BATCH, span.upto, record, epoch=self.epoch, changes=[change])


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(str(tmp_path / "warehouse"))


def test_housekeeping_beside_a_maintainer_changes_no_state(world: World, spark: SparkSession) -> None:
    now = datetime.now(UTC)
    policy = Policy(
        fold_commits=2,
        journal_files=5,
        files_per_tier=3,
        entries_per_clean=10,
        vacuum_every=timedelta(),
        grace_hours=0,
        stray_hours=0,
    )
    keeper = Housekeeper(Warehouse.open(world.warehouse.path), policy, started_at=now)
    done = []
    for number in range(1, 25):
        world.step()
        if number % 6 == 0:
            done += list(keeper.run(datetime.now(UTC), Tick(0)))
    assert {type(one.chore) for one in done} == {Fold, Trim, Compact, Vacuum, CleanLog}
    reader = Warehouse.open(world.warehouse.path)
    assert reader.log.last_tick == 24
    assert reader.log.rows(SALES, ("id",), Tick(0), Tick(24))["id"].to_pylist() == list(range(1, 25))
    assert [commit.tick for commit in reader.commits.read()][2:] == list(range(1, 25))
    for tick in (1, 13, 24):
        rows = reader.view_dataframe(spark, "v", Tick(tick)).toArrow()["id"].to_pylist()
        assert sorted(rows) == list(range(1, tick + 1))
    left = [name for name in Path(world.table.folder, "changes").iterdir() if name.suffix == ".parquet"]
    assert len(left) < 10


def test_retention_drops_what_nobody_needs(world: World, spark: SparkSession) -> None:
    now = datetime.now(UTC)
    keeper = Housekeeper(Warehouse.open(world.warehouse.path), Policy(keep_ticks=4), started_at=now)
    for _ in range(10):
        world.step()
    assert [type(one.chore) for one in keeper.run(now, Tick(3))] == [DropRows]  # the log; nothing is folded
    world.table.roll_checkpoint(spark, Tick(8))
    keeper.fold()
    assert [type(one.chore) for one in keeper.run(now, Tick(5))] == [DropRows, DropRows]
    reader = Warehouse.open(world.warehouse.path)
    assert (reader.log.horizon(), reader.kept_table("v").horizon()) == (5, 6)
    assert reader.log.rows(SALES, ("id",), Tick(5), Tick(10))["id"].to_pylist() == [6, 7, 8, 9, 10]
    with pytest.raises(NotReadable) as dropped:
        reader.log.rows(SALES, ("id",), Tick(4), Tick(10))
    assert dropped.value.code == "HW-411"
    for tick in (6, 7, 8, 10):
        rows = reader.view_dataframe(spark, "v", Tick(tick)).toArrow()["id"].to_pylist()
        assert sorted(rows) == list(range(1, tick + 1))
    with pytest.raises(NotReadable) as gone:
        reader.view_dataframe(spark, "v", Tick(5))
    assert gone.value.code == "HW-412"
    world.step()
    assert Warehouse.open(world.warehouse.path).log.last_tick == 11


def test_old_generations_go_when_their_time_is_over(world: World) -> None:
    second = ViewEntry(name="v", generation=2, sql="…", birth=Tick(0), guarantee="complete", schema=())
    KeptTable.create(view_folder(world.warehouse.path, "v", 2), world.journal, SCHEMA, Tick(0))
    world.catalog(Catalog(views={"v": second}))
    reader = Warehouse.open(world.warehouse.path)
    now = datetime.now(UTC)
    assert abandoned(reader, now - timedelta(days=1)) == []
    assert abandoned(reader, now + timedelta(seconds=1)) == [view_folder(world.warehouse.path, "v", 1)]
    keeper = Housekeeper(reader, Policy(keep_for=timedelta(days=1)), started_at=now)
    list(keeper.run(now + timedelta(days=2), Tick(0)))
    assert not Path(view_folder(world.warehouse.path, "v", 1)).exists()
    assert Path(view_folder(world.warehouse.path, "v", 2)).exists()


def test_what_a_killed_bootstrap_left_goes_and_its_number_stays(world: World) -> None:
    path = world.warehouse.path
    second = ViewEntry(name="v", generation=2, sql="…", birth=Tick(0), guarantee="complete", schema=())
    KeptTable.create(view_folder(path, "v", 2), world.journal, SCHEMA, Tick(0))
    world.catalog(Catalog(views={"v": second}))
    left = [view_folder(path, "v", 3), replica_folder(path, SALES, 1)]
    KeptTable.create(left[0], world.journal, SCHEMA, Tick(0))
    KeptTable.create(left[1], world.journal, SCHEMA, Tick(0))
    assert clear_unnamed(Warehouse.open(path)) == sorted(left)
    assert [store_at(folder).names() for folder in left] == [[RESERVED], [RESERVED]]
    assert reserve_generation(left[0]) == 4
    assert reserve_generation(left[1]) == 2
    for generation in (1, 2):  # what a commit names, or named: readers may still be in it
        assert KeptTable.open(view_folder(path, "v", generation), world.journal).birth() == 0
    assert clear_unnamed(Warehouse.open(path)) == []


def test_a_writer_that_slept_through_a_clean_up_does_not_write_into_the_void(world: World) -> None:
    asleep = Warehouse.open(world.warehouse.path).log
    table = world.warehouse.log._table
    table._table.alter.set_table_properties({"delta.logRetentionDuration": "interval 0 seconds"})
    world.warehouse.log.refresh()
    for _ in range(8):
        world.step()
    time.sleep(0.05)
    table.clean_log()
    position = Position(source="shop", history="1:1", offset=1000)
    one = Transaction(position=position, identity=1, committed_at=START)
    with pytest.raises(LeaseLost):
        asleep.append([Capture(transactions=(one,), rows={})])
    assert Warehouse.open(world.warehouse.path).log.last_tick == 8
