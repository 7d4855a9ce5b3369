"""Random histories of one bag of rows, batches of them as the laws of segments take them, and what the laws give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from random import Random

import duckdb
import pyarrow as pa
import sqlglot

from headwater.model.relation import Column, Relation, SegmentName
from headwater_lab.in_memory.bag import Row

Run = Callable[[str, Mapping[str, pa.Table]], pa.Table]

INPUT = Relation(
    name=SegmentName(name="given"),
    columns=tuple(
        Column(name=name, type=kind, native=kind)
        for name, kind in (
            ("k", "int"),
            ("g", "string"),
            ("x", "int"),
            ("d", "decimal(12,2)"),
            ("w", "decimal(38,18)"),
            ("f", "double"),
        )
    ),
)
VALUES: Mapping[str, tuple[object, ...]] = {
    "k": (None, 0, 1),
    "g": (None, "", "a"),
    "x": (None, 0, 5, 5, -7),
    "d": (None, Decimal("0.00"), Decimal("1.50"), Decimal("-1.50"), Decimal("9999999999.99")),
    "w": (None, Decimal("0.000000000000000001"), Decimal("-99999999999999999.123456789012345678")),
    "f": (None, 0.1, 0.2, 0.3, 1e16, -1e16),
}


@dataclass(frozen=True)
class History:
    """Rows before a batch, and the signed rows of every tick from 1 on; a tick may change nothing."""

    before: Counter[Row]
    ticks: tuple[Counter[Row], ...]

    def at(self, tick: int) -> Counter[Row]:
        state = Counter(self.before)
        for change in self.ticks[:tick]:
            state.update(change)
        assert min(state.values(), default=0) >= 0
        return +state

    def changes(self, random: Random) -> pa.Table:
        """Return all ticks as one signed table, not netted and in no order."""
        entries = []
        for tick, change in enumerate(self.ticks, 1):
            for row, count in change.items():
                one_by_one = (1 if count > 0 else -1,) * abs(count)
                parts = random.choice(((count,), (count + 3, -3), one_by_one))
                entries += [(*row, tick, part) for part in parts]
            if random.random() < 0.3:
                row = random_row(random)
                entries += [(*row, tick, 2), (*row, tick, -2)]
        random.shuffle(entries)
        return stamped(entries)


def stamped(entries: list[Row], given: Relation = INPUT) -> pa.Table:
    schema = pa.schema([*given.arrow_schema(), pa.field("_tick", pa.int64()), pa.field("_count", pa.int64())])
    columns = [pa.array([entry[place] for entry in entries], field.type) for place, field in enumerate(schema)]
    return pa.table(columns, schema)


def counted(rows: Counter[Row], given: Relation = INPUT) -> pa.Table:
    """Return rows before a batch with their counts, stamped 0."""
    return stamped([(*row, 0, count) for row, count in rows.items()], given)


def plain(rows: Counter[Row], given: Relation = INPUT) -> pa.Table:
    """Return rows as often as they count."""
    return stamped([(*row, 0, 0) for row in rows.elements()], given).drop_columns(["_tick", "_count"])


def random_row(random: Random) -> Row:
    return tuple(random.choice(VALUES[name]) for name in INPUT.column_names)


def random_history(random: Random, tick_count: int) -> History:
    """Return a history in which rows come several at a time and groups vanish and come back."""
    pool = [random_row(random) for _ in range(6)]
    before = Counter({row: random.randint(1, 3) for row in random.sample(pool, random.randint(0, 4))})
    state = Counter(before)
    ticks = []
    for _ in range(tick_count):
        change: Counter[Row] = Counter()
        if random.random() < 0.15:
            change = Counter({row: -count for row, count in state.items()})
        for _ in range(random.choice((0, 1, 1, 2, 4))):
            present = [row for row in state if state[row] + change[row] > 0]
            if present and random.random() < 0.6:
                row = random.choice(present)
                change[row] -= random.randint(1, state[row] + change[row])
            else:
                row = random.choice(pool) if random.random() < 0.7 else random_row(random)
                change[row] += random.choice((1, 1, 4))
        state.update(change)
        ticks.append(Counter({row: count for row, count in change.items() if count}))
    return History(before, tuple(ticks))


def run_on_duckdb(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Run Spark SQL over Arrow tables in DuckDB."""
    for name, table in tables.items():
        _connection().register(name, table)
    return _connection().execute(_duckdb_text(sql)).to_arrow_table()


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE MACRO raise_error(said) AS error(said)")
    return connection


@cache
def _duckdb_text(sql: str) -> str:
    [text] = sqlglot.transpile(sql, read="spark", write="duckdb")
    return text


def check_every_tick(
    given: pa.Table, names: tuple[str, ...], expected: Callable[[int], Counter[Row]], last: int
) -> None:
    """Compare the states that the given changes lead to with the expected ones; nothing may cancel within a tick."""
    state = Counter(expected(0))
    rows = [(row["_tick"], tuple(row[name] for name in names), row["_count"]) for row in given.to_pylist()]
    assert all(1 <= tick <= last for tick, _, _ in rows)
    for tick in range(1, last + 1):
        change: Counter[Row] = Counter()
        entries = [(row, count) for stamp, row, count in rows if stamp == tick]
        for row, count in entries:
            change[row] += count
        assert len(change) == len(entries), f"equal rows at tick {tick}"
        assert all(change.values()), f"a change of nothing at tick {tick}"
        state.update(change)
        state = Counter({row: count for row, count in state.items() if count})
        assert state == expected(tick), f"tick {tick}"
