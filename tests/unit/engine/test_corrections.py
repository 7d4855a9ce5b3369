"""What was staged in chunks that each saw something else is brought to a tick, whatever the type of their keys."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.extent import WHOLE, Content, Extent, Remainder
from headwater.deltas.selection import Selection
from headwater.engine.bootstrap.corrections import Corrections, MissedTicks
from headwater.engine.bootstrap.make_replica import is_made_of_chunks, keep_chunks
from headwater.engine.bootstrap.recompute import rows_at
from headwater.engine.bootstrap.staging import StagedChunk, StagedRelation
from headwater.errors import SourceUnavailable
from headwater.model.position import Position, Tick
from headwater.model.relation import COUNT, Column, Relation, RelationName
from headwater.model.transaction import Capture, SeenUpTo, Transaction
from headwater.sources.source import Chunk
from headwater.warehouse.query import Warehouse

Row = tuple[Any, Any]
NAME = RelationName(source="shop", name="sales")
LAST, TICK = 30, 20
DAY = datetime(1890, 5, 17, 23, 30, 0, 7)  # noqa: DTZ001 - of a timestamp without a zone
KEYS: Mapping[str, tuple[list[Any], str]] = {
    "int": ([*range(-6, 12)], "integer"),
    "date": ([date(1582, 10, 1) + timedelta(days=2 * n) for n in range(18)], "date"),
    "timestamp": ([(DAY + timedelta(hours=n)).replace(tzinfo=UTC) for n in range(18)], "timestamptz"),
    "timestamp_ntz": ([DAY + timedelta(hours=n) for n in range(18)], "timestamp"),
}
SIGHTS = (
    SeenUpTo(last=TICK),
    SeenUpTo(last=8),
    SeenUpTo(last=TICK + 4),
    SeenUpTo(last=14, hidden=frozenset({13})),
    SeenUpTo(last=TICK + 6, hidden=frozenset({TICK + 5})),
)


class Story:
    """A table whose rows come, go and change, one transaction after another, and the log of it.

    Two transactions that follow each other touch different rows.
    """

    def __init__(self, log: ChangeLog, kind: str) -> None:
        values, native = KEYS[kind]
        self.keys = [*values, None]
        columns = (Column(name="key", type=kind, native=native), Column(name="n", type="bigint", native="bigint"))
        self.relation = Relation(name=NAME, columns=columns, key=("key",))
        chance, state = random.Random(5), dict[Any, Row]()
        self.changes: list[list[tuple[Row, int]]] = [[]]
        for number in range(1, LAST + 1):
            done = []
            for key in chance.sample(self.keys[number % 2 :: 2], 4):
                if (old := state.pop(key, None)) is not None:
                    done.append((old, -1))
                if chance.random() < 0.8:
                    state[key] = (key, number)
                    done.append((state[key], 1))
            self.changes.append(done)
        log.declare([self.relation])
        self.append(log, range(1, LAST + 1))

    def append(self, log: ChangeLog, numbers: range, *, is_truncated: bool = False) -> None:
        rows = [
            (row, place, count) for place, one in enumerate(numbers) for row, count in self.changes[one : one + 1][0]
        ]
        rows += [((None, None), 0, 0)] if is_truncated else []
        schema = self.relation.arrow_schema()
        columns = {field.name: pa.array([row[i] for row, _, _ in rows], field.type) for i, field in enumerate(schema)}
        columns["_ordinal"] = pa.array([place for _, place, _ in rows], pa.int32())
        columns["_count"] = pa.array([count for *_, count in rows], pa.int64())
        log.append([Capture(transactions=tuple(map(transaction, numbers)), rows={NAME: pa.table(columns)})])

    def shown(self, seen: SeenUpTo) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for number, done in enumerate(self.changes):
            for row, count in done if seen.sees(number, "") else ():
                found[row] += count
        return Counter({row: count for row, count in found.items() if count})


def transaction(number: int) -> Transaction:
    return Transaction(
        position=Position(source="shop", history="1:1", offset=10 + number),
        identity=number,
        committed_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def staged(story: Story, folder: Path, sights: tuple[SeenUpTo, ...], remainder: Remainder) -> StagedRelation:
    """Return chunks of three keys each, that saw these one after the other."""
    bounds = [str(story.keys[place]) for place in range(2, len(story.keys) - 2, 3)]
    chunks = []
    for number, (low, high) in enumerate(zip((None, *bounds), (*bounds, None), strict=True)):
        seen = sights[number % len(sights)]
        own = story.keys[3 * number : 3 * number + 3] if high is not None else story.keys[3 * number : -1]
        own = own if low is not None else [*own, None]
        rows = [row for row in story.shown(seen).elements() if row[0] in own and passes(row, remainder)]
        path = folder / f"{number}.parquet"
        schema = story.relation.arrow_schema()
        columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(schema)]
        counts = pa.array([1] * len(rows), pa.int64())
        pq.write_table(pa.table(columns, schema=schema).append_column(COUNT, counts), path)
        chunk = Chunk(number=number, column="key", low=low, high=high)
        chunks.append(StagedChunk(chunk=chunk, path=str(path), seen=seen, row_count=len(rows)))
    assert len(chunks) > len(sights)
    return StagedRelation(relation=story.relation, wanted=("key", "n"), rows=remainder, chunks=tuple(chunks))


def passes(row: Row, remainder: Remainder) -> bool:
    named = {"key": row[0], "n": row[1]}
    return remainder.of.passes(named) and not remainder.without.passes(named)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse.create(str(tmp_path / "w"))


@pytest.mark.parametrize("few", [0, 10**6], ids=["by Spark", "here"])
@pytest.mark.parametrize("sights", [SIGHTS, SIGHTS[1:2], SIGHTS[4:]], ids=["five", "one", "another"])
@pytest.mark.parametrize("kind", KEYS)
def test_chunks_that_each_saw_something_else(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path, kind: str, sights: tuple[SeenUpTo, ...], few: int
) -> None:
    story = Story(warehouse.log, kind)
    late, middle = (
        Extent.of([Selection(column="n", compare=compare, values=(value,))])
        for compare, value in (("greater", 3), ("equal", 15))
    )
    for remainder in (WHOLE, Remainder(of=late, without=middle)):
        one = staged(story, tmp_path, sights, remainder)
        corrections = Corrections.find(spark, one, MissedTicks(log=warehouse.log, tick=Tick(TICK)), few)
        assert corrections.is_few is (few > 0)
        corrections.require_untruncated()
        found = rows_at(spark, one, corrections).toArrow()
        bag = Counter(zip(found["key"].to_pylist(), found["n"].to_pylist(), strict=True))
        shown = story.shown(SeenUpTo(last=TICK))
        assert bag == {row: count for row, count in shown.items() if passes(row, remainder)}


@pytest.mark.parametrize("few", [0, 10**6], ids=["by Spark", "here"])
@pytest.mark.parametrize("sights", [SIGHTS, SIGHTS[:1], SIGHTS[1:2], (SeenUpTo(last=TICK - 1),)], ids=len)
def test_files_of_chunks_become_those_of_a_replica(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path, sights: tuple[SeenUpTo, ...], few: int
) -> None:
    """Only chunks whose rows changed meanwhile are written again."""
    story = Story(warehouse.log, "int")
    late = Extent.of([Selection(column="n", compare="greater", values=(3,))])
    one = staged(story, tmp_path, sights, Remainder(of=late))
    content = Content(columns=("key", "n"), rows=late)
    assert is_made_of_chunks(one, content)
    assert not is_made_of_chunks(one, Content(columns=("key", "n")))
    assert not is_made_of_chunks(one, Content(columns=("n",), rows=late))
    corrections = Corrections.find(spark, one, MissedTicks(log=warehouse.log, tick=Tick(TICK)), few)
    untouched = corrections.untouched()
    reader = keep_chunks(spark, warehouse.path, content, one, corrections, Tick(TICK))
    shown = story.shown(SeenUpTo(last=TICK))
    expected = {row: count for row, count in shown.items() if passes(row, one.rows)}
    for found in (reader.dataframe_at(warehouse.log, Tick(TICK)).toArrow(), reader.rows.entries()):
        rows = zip(found["key"].to_pylist(), found["n"].to_pylist(), strict=True)
        assert dict(zip(rows, found[COUNT].to_pylist(), strict=True)) == expected
    assert [chunk for chunk in one.chunks if not Path(chunk.path).exists()] == list(untouched), (
        "they were moved, not copied"
    )
    if sights == SIGHTS[:1]:
        assert untouched == one.chunks, "what lacks nothing is kept"
    elif few:
        assert bool(untouched) == (len(sights) > 1 or sights[0].last == TICK - 1)
        assert len(untouched) < len(one.chunks)
    else:
        assert not untouched
    reader.release()


@pytest.mark.parametrize("few", [0, 10**6], ids=["by Spark", "here"])
def test_a_truncate_that_was_not_seen_spoils_what_was_read(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path, few: int
) -> None:
    story = Story(warehouse.log, "int")
    story.changes.append([])
    story.append(warehouse.log, range(LAST + 1, LAST + 2), is_truncated=True)
    tick = warehouse.log.last_tick
    for seen, is_spoilt in ((SeenUpTo(last=LAST), True), (SeenUpTo(last=LAST + 1, hidden=frozenset({3})), False)):
        one = staged(story, tmp_path, (seen,), WHOLE)
        corrections = Corrections.find(spark, one, MissedTicks(log=warehouse.log, tick=tick), few)
        if not is_spoilt:
            corrections.require_untruncated()
            continue
        with pytest.raises(SourceUnavailable, match=r"shop\.sales was truncated") as refused:
            corrections.require_untruncated()
        assert refused.value.code == "HW-535"


def test_what_saw_everything_needs_no_correction(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> None:
    story = Story(warehouse.log, "int")
    one = staged(story, tmp_path, (SeenUpTo(last=LAST),), WHOLE)
    corrections = Corrections.find(spark, one, MissedTicks(log=warehouse.log, tick=warehouse.log.last_tick), 0)
    assert corrections.rows() is None
