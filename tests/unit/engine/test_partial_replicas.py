"""A replica that holds some rows: brought forward, back, rolled, truncated and widened, it is what it should be."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.extent import EVERYTHING, Content, Extent, Remainder
from headwater.deltas.lookup import RowRequest, look_up, restricted
from headwater.deltas.on_arrow import ArrowKeys, ArrowRequest, remaining
from headwater.deltas.on_spark import to_arrow, to_dataframe
from headwater.deltas.selection import Selection
from headwater.deltas.stored_bag import Bag
from headwater.engine.bootstrap.corrections import Corrections, MissedTicks
from headwater.engine.bootstrap.make_replica import filled, make_replica
from headwater.engine.bootstrap.recompute import rows_at
from headwater.engine.bootstrap.staging import StagedChunk, StagedRelation
from headwater.engine.state.replica_reader import ReplicaReader, refresh_replica
from headwater.engine.state.truncation import resolve_truncates
from headwater.model.memory_budget import DEFAULT_BUDGET, MemoryBudget
from headwater.model.position import Position, Tick
from headwater.model.relation import COUNT, Column, Relation, RelationName
from headwater.model.settings import DEFAULTS, BatchSettings
from headwater.model.transaction import Capture, SeenUpTo, Transaction
from headwater.project.fill import Way, fill, fill_whole
from headwater.sources.source import Chunk
from headwater.warehouse.folders import replica_folder
from headwater.warehouse.query import Warehouse
from headwater.warehouse.replica import Replica

NAME = RelationName(source="shop", name="sales")
SALES = Relation(
    name=NAME,
    columns=(
        Column(name="id", type="int", native="integer"),
        Column(name="n", type="bigint", native="bigint"),
        Column(name="city", type="string", native="text"),
        Column(name="note", type="string", native="text"),
    ),
    key=("id",),
)
Row = tuple[Any, ...]
LAST, MADE = 24, 10


def where(column: str, compare: str, *values: Any) -> Extent:
    return Extent.of([Selection(column=column, compare=compare, values=values)])


EXTENTS = {
    "everything": EVERYTHING,
    "few": where("n", "less", 2),
    "oslo": where("city", "equal", "Oslo"),
    "beyond": where("city", "greater", "Oslo"),
    "few or oslo": where("n", "less", 2).plus(where("city", "equal", "Oslo")),
    "others": where("city", "not_equal", "Oslo"),
}


def gathered(bag: Bag) -> pa.Table:
    """Return a bag's entries, wherever they are."""
    return bag.held.table if bag.stored is None else to_arrow(bag.stored.frame).select(bag.schema.names)


class History:
    """A table of ids that come, go and change, one transaction after another, and the log of it."""

    def __init__(self, log: ChangeLog, seed: int = 7) -> None:
        chance, self.states = random.Random(seed), [dict[int, Row]()]
        changes: list[tuple[int, Row, int]] = []
        for place in range(LAST):
            state = dict(self.states[-1])
            for number in chance.sample(range(40), 12):
                old = state.pop(number, None)
                if old is not None:
                    changes.append((place, old, -1))
                if chance.random() < 0.8:
                    city = chance.choice(("Oslo", "Bergen", "Zürich", None))
                    state[number] = (number, chance.choice((0, 1, 2, 3, None)), city, f"note {place}")
                    changes.append((place, state[number], 1))
            self.states.append(state)
        log.declare([SALES])
        log.append([Capture(transactions=tuple(map(transaction, range(LAST))), rows={NAME: captured(changes)})])

    def rows(self, tick: int, content: Content) -> Counter[Row]:
        """Return what a content has at a tick, row by row."""
        named = [dict(zip(SALES.column_names, row, strict=True)) for row in self.states[tick].values()]
        return Counter(tuple(row[name] for name in content.columns) for row in named if content.rows.passes(row))

    def table(self, tick: int) -> pa.Table:
        columns = zip(*self.states[tick].values(), strict=True)
        return pa.table(
            [pa.array(list(c), f.type) for c, f in zip(columns, SALES.arrow_schema(), strict=True)],
            schema=SALES.arrow_schema(),
        )


def transaction(place: int) -> Transaction:
    return Transaction(
        position=Position(source="shop", history="1:1", offset=10 + place),
        identity=place,
        committed_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def captured(changes: list[tuple[int, Row, int]]) -> pa.Table:
    columns = {
        field.name: pa.array([row[i] for _, row, _ in changes], field.type)
        for i, field in enumerate(SALES.arrow_schema())
    }
    ordinals = pa.array([place for place, _, _ in changes], pa.int32())
    return pa.table({**columns, "_ordinal": ordinals, "_count": pa.array([n for *_, n in changes], pa.int64())})


def bag(frame: DataFrame, content: Content) -> Counter[Row]:
    table = frame.toArrow()
    counts = table[COUNT].to_pylist() if COUNT in table.column_names else [1] * table.num_rows
    found: Counter[Row] = Counter()
    for row, count in zip(table.select(list(content.columns)).to_pylist(), counts, strict=True):
        found[tuple(row.values())] += count
    return found


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(str(tmp_path / "w"))


@pytest.fixture
def history(warehouse: Warehouse) -> History:
    return History(warehouse.log)


def request(wanted: tuple[str, ...], column: str, keys: ArrowKeys) -> ArrowRequest:
    return RowRequest(relation=NAME, wanted=wanted, within=restricted((column,), keys))


def replica(
    spark: SparkSession,
    warehouse: Warehouse,
    history: History,
    content: Content,
    tick: int = MADE,
    budget: MemoryBudget = DEFAULT_BUDGET,
    settings: BatchSettings = DEFAULTS.batch,
) -> ReplicaReader:
    rows = filled(fill_whole(content), to_dataframe(spark, history.table(tick)), None, SALES)
    return make_replica(spark, warehouse.path, SALES, content, rows, Tick(tick), budget=budget, settings=settings)


@pytest.mark.parametrize("held_rows", [1, DEFAULTS.batch.held_rows])
@pytest.mark.parametrize("name", EXTENTS)
def test_it_is_brought_to_any_tick(
    spark: SparkSession, warehouse: Warehouse, history: History, name: str, held_rows: int
) -> None:
    """By rows that are handed to Spark, and by rows that it reads in the files of the replica and of the log."""
    content = Content(columns=("id", "n", "city"), rows=EXTENTS[name])
    reader = replica(spark, warehouse, history, content, settings=replace(DEFAULTS.batch, held_rows=held_rows))
    for tick in (0, MADE, 17):
        assert bag(reader.dataframe_at(warehouse.log, Tick(tick)), content) == history.rows(tick, content)
    reader.absorb(reader.change_parts(warehouse.log, reader.tick, Tick(15)), Tick(15))
    assert bag(reader.dataframe_at(warehouse.log, Tick(15)), content) == history.rows(15, content)
    keys = ArrowKeys(pa.table({"id": pa.array([3, 4], pa.int32())}))
    found = look_up(reader, request(("id", "n", "city"), "id", keys))
    under = Counter({row: n for row, n in history.rows(15, content).items() if row[0] in (3, 4)})
    assert Counter(tuple(row.values())[:3] for row in gathered(found.rows.net()).to_pylist()) == under
    stored = Replica.open(replica_folder(warehouse.path, NAME, reader.entry.generation))
    fresh = refresh_replica(reader, stored, warehouse.log)
    assert fresh.tick == 15
    assert bag(fresh.dataframe_at(warehouse.log, Tick(15)), content) == history.rows(15, content)


@pytest.mark.parametrize("memory_bytes", [0, 2**22])
def test_it_is_looked_up_in_memory_or_mapped(
    spark: SparkSession, warehouse: Warehouse, history: History, memory_bytes: int
) -> None:
    content = Content(columns=("id", "n", "city"))
    budget = MemoryBudget.of(memory_bytes)
    reader = replica(spark, warehouse, history, content, budget=budget)
    reader.rows.tail_rows = 20
    sought = {"id": list(range(5)), "city": ["Oslo"], "n": [1, 2]}
    for tick in range(MADE + 1, LAST + 1):
        reader.absorb(reader.change_parts(warehouse.log, reader.tick, Tick(tick)), Tick(tick))
        for place, name in enumerate(content.columns):
            keys = ArrowKeys(pa.table({name: pa.array(sought[name], SALES.arrow_schema().field(name).type)}))
            found = gathered(look_up(reader, request(("city", "id"), name, keys)).rows.net())
            assert set(found["_tick"].to_pylist()) <= {tick}
            under = Counter[Row]()
            for row, count in history.rows(tick, content).items():
                if row[place] in sought[name]:
                    under[row[2], row[0]] += count
            assert Counter({(row["city"], row["id"]): row[COUNT] for row in found.to_pylist()}) == under
    assert reader.rows.is_held is (memory_bytes > 0)
    folder = replica_folder(warehouse.path, NAME, reader.entry.generation)
    before = {*Path(folder).rglob("*.parquet")}
    fresh = refresh_replica(reader, Replica.open(folder), warehouse.log, budget)
    assert fresh.rows.indexed() == reader.rows.indexed() == (("id",), ("n",), ("city",))
    for one in (fresh, reader):
        assert bag(one.dataframe_at(warehouse.log, Tick(LAST)), content) == history.rows(LAST, content)
    for file in before if memory_bytes else ():
        file.unlink()  # as housekeeping does, while the older reader is in use
    assert bag(reader.dataframe_at(warehouse.log, Tick(LAST)), content) == history.rows(LAST, content)


@pytest.mark.parametrize("few", [0, 10**6], ids=["by Spark", "here"])
@pytest.mark.parametrize("name", EXTENTS)
def test_what_is_read_of_it_is_rebased_by_the_same_rows(
    spark: SparkSession, warehouse: Warehouse, history: History, tmp_path: Path, name: str, few: int
) -> None:
    """Rows move in and out of what is read after it was: the log's rows are tested as those were."""
    remainder = Remainder(of=EXTENTS[name], without=where("n", "equal", 0))
    path = tmp_path / "chunk.parquet"
    pq.write_table(remaining(history.table(MADE), remainder), path)
    seen = SeenUpTo(last=MADE - 1)
    chunk = StagedChunk(chunk=Chunk(number=0), path=str(path), seen=seen, row_count=0)
    staged = StagedRelation(relation=SALES, wanted=SALES.column_names, rows=remainder, chunks=(chunk,))
    every = Content(columns=SALES.column_names)
    corrections = Corrections.find(spark, staged, MissedTicks(log=warehouse.log, tick=Tick(LAST)), few)
    found = bag(rows_at(spark, staged, corrections), every)
    assert found == bag(to_dataframe(spark, remaining(history.table(LAST), remainder)), every)


def test_a_truncate_takes_out_what_it_holds(spark: SparkSession, warehouse: Warehouse, history: History) -> None:
    content = Content(columns=("id", "n", "city"), rows=EXTENTS["few or oslo"])
    reader = replica(spark, warehouse, history, content)
    inserted = captured([(0, (90, 0, "Bergen", ""), 1), (0, (91, 9, "Bergen", ""), 1), (0, (92, 9, "Oslo", ""), 1)])
    capture = Capture(transactions=(transaction(98), transaction(99)), rows={NAME: inserted}, truncated={1: (NAME,)})
    resolved = resolve_truncates(capture, warehouse.log, {NAME: reader}).rows[NAME]
    gone = Counter[Row]()
    for row in resolved.filter(pc.equal(resolved["_ordinal"], 1)).to_pylist():
        gone[row["id"], row["n"], row["city"]] -= row[COUNT]
    held = history.rows(LAST, content) + Counter({(90, 0, "Bergen"): 1, (92, 9, "Oslo"): 1})
    assert +gone == held, "and nothing of what it does not hold"


CASES: Mapping[str, tuple[Content, Content, Way | None]] = {
    "nothing lacks": (
        Content(columns=("id", "n", "city"), rows=EXTENTS["few or oslo"]),
        Content(columns=("n",), rows=EXTENTS["few"]),
        None,
    ),
    "more rows": (
        Content(columns=("id", "n", "city"), rows=EXTENTS["oslo"]),
        Content(columns=("n", "city"), rows=EXTENTS["few or oslo"]),
        Way.MORE_ROWS,
    ),
    "other rows": (
        Content(columns=("id", "n", "city"), rows=EXTENTS["oslo"]),
        Content(columns=("id", "n"), rows=EXTENTS["few"]),
        Way.MORE_ROWS,
    ),
    "all rows": (
        Content(columns=("id", "n", "city"), rows=EXTENTS["others"]),
        Content(columns=("id", "n")),
        Way.MORE_ROWS,
    ),
    "more columns": (Content(columns=("id", "city")), Content(columns=("city", "note")), Way.MORE_COLUMNS),
    "more columns of fewer rows": (
        Content(columns=("id", "n"), rows=where("n", "less_equal", 2)),
        Content(columns=("id", "n", "note"), rows=EXTENTS["few"]),
        Way.MORE_COLUMNS,
    ),
    "no key to join by": (Content(columns=("city",)), Content(columns=("city", "note")), Way.WHOLE),
    "more of both": (
        Content(columns=("id", "city"), rows=EXTENTS["oslo"]),
        Content(columns=("id", "city", "note")),
        Way.WHOLE,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_widened_it_is_what_a_fresh_one_would_be(
    spark: SparkSession, warehouse: Warehouse, history: History, case: str
) -> None:
    held, needed, way = CASES[case]
    how = fill(SALES, needed, held)
    assert (how and how.way) == way
    if how is None:
        return
    old = replica(spark, warehouse, history, held)
    read = remaining(history.table(LAST).select(list(how.columns)), how.rows)
    rows = filled(how, to_dataframe(spark, read), old.plain_at(warehouse.log, Tick(LAST)), SALES)
    new = make_replica(spark, warehouse.path, SALES, needed, rows, Tick(LAST))
    assert bag(new.dataframe_at(warehouse.log, Tick(LAST)), needed) == history.rows(LAST, needed)
    assert new.entry.content == needed
    if way is Way.MORE_ROWS:
        every = Content(columns=SALES.column_names)
        named = [dict(zip(SALES.column_names, row, strict=True)) for row in history.rows(LAST, every)]
        lacking = [row for row in named if needed.rows.passes(row) and not held.rows.passes(row)]
        assert 0 < read.num_rows == len(lacking) < len(named), "only what lacks"
    if way is Way.MORE_COLUMNS:
        assert "city" not in how.columns, "only what lacks, and the key"
