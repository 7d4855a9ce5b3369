"""A kept table whose rows lie in the order of what they are looked up by: few rows are read, and none is missed."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from journaled import journal_in, tell
from pyspark.sql import SparkSession

from headwater.deltas.lookup import RowRequest, look_up, restricted
from headwater.deltas.on_arrow import ArrowKeys
from headwater.deltas.on_spark import to_dataframe
from headwater.engine.state.stored_segment import StoredSegment
from headwater.model.position import Tick
from headwater.model.relation import Column, Relation, SegmentName
from headwater.storage import spark_files
from headwater.warehouse.kept_table import KeptTable

SCHEMA = pa.schema([("city", pa.string()), ("no", pa.int64()), ("day", pa.date32()), ("amount", pa.decimal128(9, 2))])
TYPES = ("string", "bigint", "date", "decimal(9,2)")
RELATION = Relation(
    name=SegmentName(name="lineage"),
    columns=tuple(Column(name=name, type=kind, native=kind) for name, kind in zip(SCHEMA.names, TYPES, strict=True)),
)
CITIES = ("Oslo", "Århus", "Zürich", "a" * 200, "", None)
DAY = dt.date(2026, 1, 1)
NEXT = DAY + dt.timedelta(days=1)
ROWS = [(CITIES[n % 6], n % 50, DAY + dt.timedelta(days=n % 7), n) for n in range(600)]
KEYS = [
    {"city": ["Oslo"]},
    {"city": ["Oslo", None]},
    {"city": ["a" * 200, "Oslo"], "no": [3, 6]},
    {"city": ["Århus"], "no": [1], "day": [NEXT]},
    {"city": ["nowhere"]},
    {"day": [DAY, NEXT]},
    {"amount": [7]},
    {},
]


@pytest.fixture
def table(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> KeptTable:
    monkeypatch.setattr(spark_files, "ROWS_PER_FILE", 40)
    monkeypatch.setattr(spark_files, "ROWS_PER_GROUP", 10)
    made = KeptTable.create(str(tmp_path / "t"), journal_in(str(tmp_path)), SCHEMA, Tick(1), ordered=3)
    assert made.checkpoint.write_from_dataframe(to_dataframe(spark, rows(ROWS)), Tick(1))
    return KeptTable.open(made.folder, made.journal)


def rows(values: list[tuple[object, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, value, strict=True)) for value in values], SCHEMA)


def keyed(keys: dict[str, list[object]]) -> pa.Table:
    return pa.table({name: pa.array(values, SCHEMA.field(name).type) for name, values in keys.items()})


def found(
    table: KeptTable, spark: SparkSession, at: int, keys: dict[str, list[object]], few: int = 10_000
) -> Counter[tuple[object, ...]]:
    stored = StoredSegment(relation=RELATION, tick=Tick(at), table=table, spark=spark, few_rows=few)
    within = restricted(tuple(keys), ArrowKeys(keyed(keys))) if keys else None
    request = RowRequest(relation=RELATION.name, wanted=tuple(SCHEMA.names), within=within)
    bag = look_up(stored, request).rows.table
    return Counter({tuple(row[name] for name in SCHEMA.names): row["_count"] for row in bag.to_pylist()})


def held(values: list[tuple[object, ...]], keys: dict[str, list[object]]) -> Counter[tuple[object, ...]]:
    places = [SCHEMA.names.index(name) for name in keys]
    wanted = set(zip(*keys.values(), strict=True)) if keys else {()}
    return Counter(row for row in values if tuple(row[place] for place in places) in wanted)


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("few", [0, 10_000])
def test_no_row_is_missed(table: KeptTable, spark: SparkSession, few: int, keys: dict[str, list[object]]) -> None:
    """Neither where rows are read here nor where they are read on Spark."""
    assert found(table, spark, 1, keys, few) == held(ROWS, keys)


def read_share(table: KeptTable, keys: dict[str, list[object]]) -> float:
    """Return which part of the files may hold the keys."""
    return len(table.checkpoint.snapshot(keyed(keys)).files) / len(table.checkpoint.snapshot().files)


def test_few_files_are_read(table: KeptTable) -> None:
    assert len(table.checkpoint.snapshot().files) >= 15
    assert read_share(table, {"city": ["Oslo"]}) < 0.4
    assert read_share(table, {"city": ["Oslo"], "no": [6]}) < 0.2
    assert read_share(table, {"city": ["nowhere"]}) < 0.2
    assert read_share(table, {"amount": [7]}) == 1, "rows do not lie in the order of amounts"


def test_few_row_groups_are_read(table: KeptTable) -> None:
    names, one = tuple(SCHEMA.names), {"city": ["Oslo"], "no": [6]}
    assert table.few_rows(Tick(1), names, restricted(tuple(one), ArrowKeys(keyed(one))), 60) is not None
    city = restricted(("city",), ArrowKeys(keyed({"city": ["Oslo"]})))
    assert table.few_rows(Tick(1), names, city, 60) is None, "a hundred rows, and more"


def test_a_rolled_checkpoint_lies_in_order_too(table: KeptTable, spark: SparkSession) -> None:
    gone, come = ROWS[0], ("Oslo", 77, DAY, 1)
    both = rows([gone, come])
    both = both.append_column("_tick", pa.array([2, 2])).append_column("_count", pa.array([-1, 1]))
    assert tell(table, both, 2)
    after, oslo = [*ROWS[1:], come], {"city": ["Oslo"]}
    assert found(table, spark, 2, oslo) == held(after, oslo), "changes are laid on what is read"
    assert table.roll_checkpoint(spark, Tick(2))
    assert found(table, spark, 2, oslo) == held(after, oslo)
    assert found(table, spark, 1, oslo) == held(ROWS, oslo), "changes are taken back"
    assert read_share(table, oslo) < 0.4
