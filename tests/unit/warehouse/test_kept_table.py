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
from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.on_arrow import summed_up
from headwater.errors import NotReadable
from headwater.model.position import Tick
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
    table = KeptTable.create(folder, SCHEMA, Tick(10))
    assert table.appended_upto() == 10
    assert table.append(delta((11, 1, 1, "a"), (12, 1, 2, "b")), Tick(12))
    assert not table.append(delta((11, 1, 1, "a"), (12, 1, 2, "b")), Tick(12))
    assert not KeptTable.open(folder).append(delta((11, 1, 1, "a")), Tick(11))
    assert table.append(delta((11, 1, 1, "a"), (12, 1, 2, "b"), (13, 1, 3, "c")), Tick(14))
    assert table.appended_upto() == 14
    assert KeptTable.open(folder).appended_upto() == 14


def test_an_empty_batch_writes_nothing(folder: str) -> None:
    table = KeptTable.create(folder, SCHEMA, Tick(0))
    version = table.changes.version
    assert not table.append(delta(), Tick(5))
    assert (table.changes.version, table.appended_upto()) == (version, 0)


def test_two_maintainers_append_the_same_batch_once(folder: str, spark: SparkSession) -> None:
    one = KeptTable.create(folder, SCHEMA, Tick(0))
    two = KeptTable.open(folder)
    one.checkpoint.write(plain(), Tick(0))
    assert one.append(delta((1, 1, 1, "a")), Tick(1))
    assert not two.append(delta((1, 1, 1, "a")), Tick(1))
    assert two.append(delta((1, 1, 1, "a"), (2, 1, 1, "a")), Tick(2))
    assert not one.append(delta((2, 1, 1, "a")), Tick(2))
    assert bag(one.state_dataframe(spark, Tick(2))) == Counter({(1, "a"): 2})


def test_a_compaction_between_does_not_disturb_an_append(folder: str, spark: SparkSession) -> None:
    table = KeptTable.create(folder, SCHEMA, Tick(0))
    table.checkpoint.write(plain(), Tick(0))
    for tick in range(1, 6):
        table.append(delta((tick, 1, tick, "x")), Tick(tick))
    assert KeptTable.open(folder).changes.compact(1 << 20) == 5
    assert table.append(delta((6, 1, 6, "x")), Tick(6))
    assert bag(table.state_dataframe(spark, Tick(6))) == Counter({(number, "x"): 1 for number in range(1, 7)})
    assert bag(table.state_dataframe(spark, Tick(3))) == Counter({(number, "x"): 1 for number in range(1, 4)})


def test_states_roll_forward_and_back_from_any_checkpoint(folder: str, spark: SparkSession) -> None:
    chance = random.Random(7)
    state: Counter[tuple[int | None, str | None]] = Counter({(1, "a"): 2, (None, None): 1})
    table = KeptTable.create(folder, SCHEMA, Tick(3))
    table.checkpoint.write(plain(*state.elements()), Tick(3))
    states = {3: Counter(state)}
    for tick in range(4, 16):
        rows = []
        for _ in range(chance.randrange(4)):
            row = (chance.choice([None, 1, 2]), chance.choice([None, "a"]))
            count = chance.choice([-1, 1, 2]) if state[row] else 1
            state[row] += count
            rows.append((tick, count, *row))
        table.append(delta(*rows), Tick(tick))
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
    table = KeptTable.create(folder, schema, Tick(0))
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
    assert table.append(rows, Tick(1))
    assert not table.append(rows, Tick(1))
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
    table = KeptTable.create(folder, SCHEMA, Tick(0))
    with pytest.raises(NotReadable):
        table.state_dataframe(spark, Tick(0))
