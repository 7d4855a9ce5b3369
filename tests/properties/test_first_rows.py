"""The first rows of a bag while it changes: what can show in a batch decides the first rows at every tick of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest
from volume import volume

from headwater.deltas import first_rows
from headwater.deltas.first_rows import FirstRows
from headwater.deltas.lookup import RowRequest, look_up
from headwater.deltas.order import By, Order, can_order
from headwater.engine.state.segment_reader import SegmentReader
from headwater.model.position import Tick
from headwater.model.relation import Column, Relation, SegmentName
from headwater_lab.in_memory.bag import Row

SCHEMA = pa.schema([("a", pa.int32()), ("d", pa.decimal128(9, 2)), ("s", pa.string()), ("f", pa.float64())])
VALUES: tuple[tuple[object, ...], ...] = (
    (None, *range(8)),
    (None, Decimal("-1.50"), Decimal("2.00")),
    (None, "", "a", "ä", "\U0001f600", "\ufffd"),
    (None, 0.5, -1e300, math.inf),
)
STAMPED = pa.schema([*SCHEMA, ("_tick", pa.int64()), ("_count", pa.int64())])
COUNTED = pa.schema([*SCHEMA, ("_count", pa.int64())])


def random_order(random: Random) -> Order:
    names = random.sample(SCHEMA.names, len(SCHEMA.names))
    return tuple(By(name, is_descending=random.random() < 0.5, are_nulls_first=random.random() < 0.5) for name in names)


def sorted_by(rows: list[Row], order: Order) -> list[Row]:
    """Sort as SQL says, one column after the other, the last one first."""
    for by in reversed(order):
        place = SCHEMA.names.index(by.column)
        none = [row for row in rows if row[place] is None]
        some = [row for row in rows if row[place] is not None]
        some.sort(key=lambda row: _sortable(row[place]), reverse=by.is_descending)
        rows = none + some if by.are_nulls_first else some + none
    return rows


def _sortable(value: object) -> object:
    return value.encode() if isinstance(value, str) else value


def elements(bag: Counter[Row], order: Order) -> list[Row]:
    return sorted_by(list(bag.elements()), order)


def table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(schema)]
    return pa.table(columns, schema)


def bag_of(rows: pa.Table) -> Counter[Row]:
    found: Counter[Row] = Counter()
    for row in rows.to_pylist():
        found[tuple(row[name] for name in SCHEMA.names)] += row["_count"]
    return found


def random_batch(random: Random, bag: Counter[Row], tick_count: int) -> list[Counter[Row]]:
    """Change a bag, and return by what: the signed rows of each tick."""
    ticks = []
    for _ in range(tick_count):
        change: Counter[Row] = Counter()
        for _ in range(random.randrange(4)):
            if bag and random.random() < 0.6:
                row, step = random.choice(list(bag.elements())), -1
            else:
                row, step = tuple(random.choice(values) for values in VALUES), random.choice((1, 1, 2))
            change[row] += step
            bag[row] += step
            bag = +bag
        ticks.append(Counter({row: count for row, count in change.items() if count}))
    return ticks


@pytest.mark.parametrize("seed", range(volume(60, 3_000)))
def test_oracle_first_rows_at_every_tick(seed: int) -> None:
    random = Random(seed)
    order, limit = random_order(random), random.choice((0, 1, 2, 5, 20))
    state: Counter[Row] = Counter()
    for row in random_batch(random, Counter(), random.choice((3, 60))):
        state.update(row)
    state = +state
    first = FirstRows.of(table([(*row, n) for row, n in state.items()], COUNTED), order, limit + random.randrange(6))
    for _ in range(6):
        ticks = random_batch(random, Counter(state), random.choice((1, 5, 20)))
        entries = [(*row, tick, count) for tick, change in enumerate(ticks, 1) for row, count in change.items()]
        changes = table(entries, STAMPED)
        showing = first.showing(changes, limit)
        if showing is None:
            whole = table([(*row, n) for row, n in state.items()], COUNTED)
            first = FirstRows.of(whole, order, limit + changes.num_rows)
            showing = first.showing(changes, limit)
        assert showing is not None
        seen = bag_of(showing.old)
        shown = {tick: bag_of(showing.changes.filter(pa.compute.field("_tick") == tick)) for tick in range(21)}
        for tick, change in enumerate(ticks, 1):
            state.update(change)
            state = Counter({row: count for row, count in state.items() if count})
            seen.update(shown[tick])
            assert elements(seen, order)[:limit] == elements(state, order)[:limit]
        first = first.after(changes)
        rows = list(first.rows.to_pylist())
        kept = [tuple(row[name] for name in SCHEMA.names) for row in rows for _ in range(row["_count"])]
        everything = elements(state, order)
        assert kept == everything[: len(kept)]
        assert len(kept) == len(everything) or not first.is_whole


def test_whatever_comes_behind_shows_nothing() -> None:
    order = (By("a"), By("d"), By("s"), By("f"))
    rows = table([(n, None, "", 0.5, 1) for n in range(100)], COUNTED)
    first = FirstRows.of(rows, order, 20)
    changes = table([(n, None, "", 0.5, 1, -1) for n in range(10, 100)], STAMPED)
    showing = first.showing(changes, 5)
    assert showing is not None
    assert (showing.changes.num_rows, showing.old.num_rows) == (0, 5)


def test_rows_that_go_leave_too_few_to_tell() -> None:
    order = (By("a"), By("d"), By("s"), By("f"))
    rows = table([(n, None, "", 0.5, 1) for n in range(100)], COUNTED)
    gone = table([(n, None, "", 0.5, 1, -1) for n in range(17)], STAMPED)
    assert FirstRows.of(rows, order, 20).showing(gone, 5) is None
    assert FirstRows.of(rows, order, 20).after(gone).rows["a"].to_pylist() == [17, 18, 19]


def test_what_is_kept_does_not_grow_without_end() -> None:
    order = (By("a"), By("d"), By("s"), By("f"))
    first = FirstRows.of(table([(50, None, "", 0.5, 1)], COUNTED), order, 5)
    assert first.is_whole
    first = first.after(table([(n, None, "", 0.5, 1, 1) for n in range(30)], STAMPED))
    assert not first.is_whole
    assert first.rows["a"].to_pylist() == list(range(10))


@pytest.mark.parametrize("seed", range(volume(80, 3_000)))
def test_oracle_first_rows_of_entries_that_come_in_parts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows are sought at a time, and however many of them went."""
    random = Random(seed)
    monkeypatch.setattr(first_rows, "_FEWEST_ROWS", random.choice((1, 3, 100)))
    monkeypatch.setattr(first_rows, "_MOST_ROWS", random.choice((2, 100)))
    order, count = random_order(random), random.choice((1, 2, 5, 20))
    entries: list[Row] = []
    state: Counter[Row] = Counter()
    for change in random_batch(random, Counter(), random.choice((3, 60))):
        entries += [(*row, n) for row, n in change.items()]
        state.update(change)
        state = Counter({row: n for row, n in state.items() if n})
    random.shuffle(entries)
    cuts = [0, *sorted(random.randrange(len(entries) + 1) for _ in range(random.choice((3, 40)))), len(entries)]
    parts = [table(entries[start:end], COUNTED) for start, end in pairwise(cuts)]
    found = FirstRows.of_parts(COUNTED, lambda: parts, order, count)
    distinct = sorted_by(list(state), order)
    expected = [(*row, state[row]) for row in distinct[:count]]
    assert [tuple(row.values()) for row in found.rows.to_pylist()] == expected
    assert found.is_whole <= (len(distinct) <= count)
    assert found.is_whole or len(distinct) >= count
    assert found.read_rows <= len(entries) * (len(entries) + 1)


def test_first_rows_are_found_without_holding_the_rest() -> None:
    part = table([(n, None, "some text", 0.5, 1) for n in range(20_000)], COUNTED)
    held: list[int] = []

    def parts() -> Iterator[pa.Table]:
        for number in range(60):
            values = pa.array(range(number * 20_000, (number + 1) * 20_000), pa.int32())
            yield part.set_column(0, "a", values)
            held.append(pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    order = (By("a", is_descending=True), By("d"), By("s"), By("f"))
    found = FirstRows.of_parts(COUNTED, parts, order, 5)
    assert found.rows["a"].to_pylist() == list(range(1_199_999, 1_199_994, -1))
    assert max(held) - before < 6 * part.nbytes


def test_arrays_cannot_be_ordered_here() -> None:
    assert can_order(SCHEMA, tuple(map(By, SCHEMA.names)))
    assert not can_order(pa.schema([("a", pa.list_(pa.int32()))]), (By("a"),))


def test_a_negative_zero_is_the_zero_that_changes_tell_of() -> None:
    relation = Relation(name=SegmentName(name="losses"), columns=(Column(name="f", type="double", native="double"),))
    reader = SegmentReader.of_parts(relation, [pa.table({"f": [-0.0, 5.0], "_count": [1, 1]})], Tick(7))
    request = RowRequest(relation=relation.name, wanted=("f",), order=(By("f"),), limit=1)

    def first_one() -> FirstRows:
        return FirstRows.of_result(look_up(reader, request), request.order)

    changes = pa.table({"f": [0.0], "_tick": [8], "_count": [-1]})
    showing = first_one().showing(changes, 1)
    assert showing is not None
    assert (showing.old["f"].to_pylist(), showing.changes["f"].to_pylist()) == ([0.0, 5.0], [0.0])
    reader.absorb([changes], Tick(8))
    assert first_one().rows.to_pylist() == [{"f": 5.0, "_count": 1}]
