from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from journaled import append, fold, journal_in, rows_at, tell
from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.on_arrow import ArrowBag, summed_up
from headwater.deltas.on_spark import to_dataframe
from headwater.errors import LeaseLost, NotReadable
from headwater.model.position import Tick
from headwater.storage.spark_files import write_files
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.commits import Commits
from headwater.warehouse.journal import TableChange
from headwater.warehouse.kept_table import KeptTable

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def delta(*rows: tuple[int, int, int | None, str | None]) -> pa.Table:
    """Rows are (tick, count, id, name)."""
    return pa.table(
        {
            "id": pa.array([row[2] for row in rows], pa.int64()),
            "name": pa.array([row[3] for row in rows], pa.string()),
            "_tick": pa.array([row[0] for row in rows], pa.int64()),
            "_count": pa.array([row[1] for row in rows], pa.int64()),
        }
    )


def plain(*rows: tuple[int | None, str | None]) -> pa.Table:
    return pa.table({"id": [row[0] for row in rows], "name": [row[1] for row in rows]}, schema=SCHEMA)


def bag(frame: DataFrame) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in frame.collect())


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "views" / "v" / "1")


def test_an_append_is_skipped_when_the_table_has_it_and_cut_where_it_has_a_part(folder: str) -> None:
    table = KeptTable.create(folder, journal_in(folder), SCHEMA, Tick(10))
    assert table.committed_upto() == 10
    assert append(table, delta((11, 1, 1, "a"), (12, 1, 2, "b")), 12)
    assert not append(table, delta((11, 1, 1, "a"), (12, 1, 2, "b")), 12)
    assert not append(KeptTable.open(folder, journal_in(folder)), delta((11, 1, 1, "a")), 11)
    assert append(table, delta((11, 1, 1, "a"), (12, 1, 2, "b"), (13, 1, 3, "c")), 14)
    assert table.committed_upto() == 14
    assert KeptTable.open(folder, journal_in(folder)).committed_upto() == 14


def test_an_empty_batch_writes_nothing(folder: str) -> None:
    table = KeptTable.create(folder, journal_in(folder), SCHEMA, Tick(0))
    version = table.changes.version
    assert not append(table, delta(), 5)
    assert (table.changes.version, table.committed_upto()) == (version, 0)


def test_a_maintainer_that_was_overtaken_tells_nothing_more(folder: str, spark: SparkSession) -> None:
    one = KeptTable.create(folder, journal_in(folder), SCHEMA, Tick(0))
    one.checkpoint.write(plain(), Tick(0))
    assert tell(one, delta((1, 1, 1, "a")), 1)
    commits = Commits(one.journal)
    two = KeptTable.open(folder, journal_in(folder))
    Commits(two.journal).take_lease("there:2")
    assert not tell(two, delta((1, 1, 1, "a")), 1)
    assert tell(two, delta((1, 1, 1, "a"), (2, 1, 1, "a")), 2)
    late = one.change(ArrowBag(delta((2, 1, 1, "a"))), Tick(2))
    assert late is not None
    with pytest.raises(LeaseLost):
        commits.commit(CommitKind.BATCH, Tick(2), CommitRecord(), epoch=0, changes=[late])
    for table in (KeptTable.open(folder, journal_in(folder)), two):
        assert bag(table.state_dataframe(spark, Tick(2))) == Counter({(1, "a"): 2})
        fold(two)


@pytest.mark.parametrize("folds", [False, True])
def test_files_that_executors_wrote_are_committed_by_reference(
    folder: str, spark: SparkSession, *, folds: bool
) -> None:
    table = KeptTable.create(folder, journal_in(folder), SCHEMA, Tick(0))
    table.checkpoint.write(plain((7, "z")), Tick(0))
    assert tell(table, delta((1, 1, 1, "a"), (2, 1, None, None)), 2)
    rows = delta((3, -1, 7, "z"), (4, 2, 2, "b")).select(["_tick", "_count", "id", "name"])
    files = write_files(to_dataframe(spark, rows), table.changes.path)
    change = TableChange(table=table.name, after=Tick(2), upto=Tick(4), files=tuple(files))
    commits = Commits(table.journal)
    commits.commit(CommitKind.BATCH, Tick(4), CommitRecord(), epoch=commits.head().epoch, changes=[change])
    assert tell(table, delta((5, -1, 1, "a")), 5)
    if folds:
        fold(table)
    reader = KeptTable.open(folder, journal_in(folder))
    states = {
        0: {(7, "z"): 1},
        2: {(7, "z"): 1, (1, "a"): 1, (None, None): 1},
        3: {(1, "a"): 1, (None, None): 1},
        5: {(None, None): 1, (2, "b"): 2},
    }
    for tick, state in states.items():
        assert bag(reader.state_dataframe(spark, Tick(tick))) == Counter(state)
        assert rows_at(reader, tick) == Counter(state)
        assert reader.row_count(Tick(tick)) == sum(state.values())
    assert sorted(reader.changes_dataframe(spark, Tick(2), Tick(5)).toArrow()["_tick"].to_pylist()) == [3, 4, 5]
    assert reader.roll_checkpoint(spark, Tick(5))
    for tick, state in states.items():
        assert bag(reader.state_dataframe(spark, Tick(tick))) == Counter(state)


def test_a_compaction_between_does_not_disturb_an_append(folder: str, spark: SparkSession) -> None:
    table = KeptTable.create(folder, journal_in(folder), SCHEMA, Tick(0))
    table.checkpoint.write(plain(), Tick(0))
    for tick in range(1, 6):
        append(table, delta((tick, 1, tick, "x")), tick)
    assert KeptTable.open(folder, journal_in(folder)).changes.compact(1 << 20) == 5
    assert append(table, delta((6, 1, 6, "x")), 6)
    assert bag(table.state_dataframe(spark, Tick(6))) == Counter({(number, "x"): 1 for number in range(1, 7)})
    assert bag(table.state_dataframe(spark, Tick(3))) == Counter({(number, "x"): 1 for number in range(1, 4)})


def test_states_roll_forward_and_back_from_any_checkpoint(folder: str, spark: SparkSession) -> None:
    chance = random.Random(7)
    state: Counter[tuple[int | None, str | None]] = Counter({(1, "a"): 2, (None, None): 1})
    table = KeptTable.create(folder, journal_in(folder), SCHEMA, Tick(3))
    table.checkpoint.write(plain(*state.elements()), Tick(3))
    states = {3: Counter(state)}
    for tick in range(4, 16):
        rows = []
        for _ in range(chance.randrange(4)):
            row = (chance.choice([None, 1, 2]), chance.choice([None, "a"]))
            count = chance.choice([-1, 1, 2]) if state[row] else 1
            state[row] += count
            rows.append((tick, count, *row))
        tell(table, delta(*rows), tick)
        if chance.random() < 0.3:
            fold(table)
        states[tick] = +state
    for checkpoint in (3, 9, 15):
        if checkpoint > 3:
            assert table.roll_checkpoint(spark, Tick(checkpoint))
        assert not table.roll_checkpoint(spark, Tick(checkpoint))
        for tick in (3, 4, 8, 9, 10, 14, 15):
            assert bag(table.state_dataframe(spark, Tick(tick))) == states[tick], (checkpoint, tick)
            entries = summed_up(table.entries_dataframe(spark, Tick(tick)).toArrow()).to_pylist()
            assert {(one["id"], one["name"]): one["_count"] for one in entries} == states[tick], (checkpoint, tick)
    with pytest.raises(NotReadable):
        table.state_dataframe(spark, Tick(2))


def test_executors_write_checkpoints_and_timestamps_stay_what_they_are(folder: str, spark: SparkSession) -> None:
    schema = pa.schema(
        [("at", pa.timestamp("us", tz="UTC")), ("local", pa.timestamp("us")), ("sum(x)", pa.decimal128(12, 2))]
    )
    far = datetime(9999, 12, 31, tzinfo=UTC)
    table = KeptTable.create(folder, journal_in(folder), schema, Tick(0))
    table.checkpoint.write(schema.empty_table(), Tick(0))
    rows = pa.table(
        {
            "at": pa.array([far], schema.field("at").type),
            "local": pa.array([far.replace(tzinfo=None)], schema.field("local").type),
            "sum(x)": pa.array([Decimal("1.50")], schema.field("sum(x)").type),
            "_tick": [1],
            "_count": [2],
        }
    )
    assert append(table, rows, 1)
    assert not append(table, rows, 1)
    assert table.changes.files(after=1) == []
    assert len(table.changes.files(after=0, upto=1)) >= 1
    assert table.roll_checkpoint(spark, Tick(1))
    files = list(table.checkpoint.snapshot().files)
    assert duckdb.sql(f"SELECT count(*), max(local)::text FROM read_parquet({files!r})").fetchone() == (
        2,
        "9999-12-31 00:00:00",
    )
    read = pl.read_parquet(files)
    assert read["at"].to_list() == [far, far]
    assert read["sum(x)"].sum() == Decimal("3.00")
    assert pl.read_delta(f"{folder}/checkpoint").height == 2
    assert table.state_dataframe(spark, Tick(1)).toArrow().column("at").to_pylist() == [far, far]


def test_a_view_without_a_checkpoint_is_not_readable(folder: str, spark: SparkSession) -> None:
    table = KeptTable.create(folder, journal_in(folder), SCHEMA, Tick(0))
    with pytest.raises(NotReadable):
        table.state_dataframe(spark, Tick(0))
