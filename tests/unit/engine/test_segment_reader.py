"""Kept rows in memory: looked up by keys in which NULL is a value, with changes laid on top."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.deltas.lookup import RowRequest, look_up, restricted
from headwater.deltas.on_arrow import ArrowBag, ArrowKeys
from headwater.engine.state.segment_reader import SegmentReader
from headwater.model.memory_budget import Share
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Column, Relation, SegmentName
from headwater.storage.mapped_rows import MappedFolder

TYPES = {"a": "int", "b": "string", "c": "decimal(10,2)", "d": "date"}
RELATION = Relation(
    name=SegmentName(name="s1"),
    columns=tuple(Column(name=name, type=kind, native=kind) for name, kind in TYPES.items()),
)
Row = tuple[int | None, str | None, Decimal | None, None]


def some_row(chance: random.Random) -> Row:
    number = chance.choice((None, 1, 2, 3))
    return number, chance.choice((None, "x", "y")), chance.choice((None, Decimal("1.50"), Decimal("2.00"))), None


def rows_of(reader: SegmentReader, columns: tuple[str, ...], keys: pa.Table | None) -> ArrowBag:
    within = None if keys is None else restricted(columns, ArrowKeys(keys))
    return look_up(reader, RowRequest(relation=RELATION.name, wanted=tuple(TYPES), within=within)).rows


def table(rows: list[Row]) -> pa.Table:
    schema = RELATION.arrow_schema()
    columns = zip(*rows, strict=True) if rows else ([] for _ in schema)
    return pa.table([pa.array(list(v), f.type) for v, f in zip(columns, schema, strict=True)], schema=schema)


def counted(bag: ArrowBag) -> Counter[Row]:
    plain = bag.table.select(list(TYPES))
    rows = zip(*(column.to_pylist() for column in plain.columns), strict=True)
    return Counter(dict(zip(rows, bag.table[COUNT].to_pylist(), strict=True)))


@pytest.mark.parametrize("keys", [("a",), ("a", "b"), ("a", "b", "c"), ("d", "a")])
def test_lookups_find_the_rows_of_the_keys_whatever_was_laid_on_top(keys: tuple[str, ...], tmp_path: Path) -> None:
    chance = random.Random(3)
    rows = [some_row(chance) for _ in range(60)]
    state = Counter(rows)
    base = [ArrowBag.of_plain(table(part), Tick(7)).counted for part in (rows[:25], rows[25:])]
    reader = SegmentReader.of_parts(RELATION, base, Tick(7), MappedFolder(tmp_path / "mapped", Share(0)))
    reader.rows.tail_rows = 10
    places = [list(TYPES).index(key) for key in keys]
    for tick in range(8, 40):
        changes = [(some_row(chance), 1) for _ in range(3)] + [(chance.choice(list(+state)), -1) for _ in range(1)]
        for row, count in changes:
            state[row] += count
        delta = table([row for row, _ in changes])
        ticks = pa.array([tick] * delta.num_rows, pa.int64())
        counts = pa.array([count for _, count in changes], pa.int64())
        signed = delta.append_column(TICK, ticks).append_column(COUNT, counts)
        reader.absorb([signed.slice(0, 2), signed.slice(2)], Tick(tick))
        wanted = [some_row(chance) for _ in range(2)]
        found = rows_of(reader, keys, table(wanted).select(keys))
        asked = {tuple(row[place] for place in places) for row in wanted}
        right = {row: count for row, count in state.items() if count and tuple(row[p] for p in places) in asked}
        assert counted(found) == right
        assert set(found.table[TICK].to_pylist()) <= {tick}
    assert counted(rows_of(reader, (), None)) == +state
    assert reader.rows.change_count > 0
