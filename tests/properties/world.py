"""A small world to play batched SWEEP in: relations at sources, a history, and answers read at awkward moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import duckdb
import pyarrow as pa

from headwater.deltas.lookup import RowRequest, RowResult, SawTransactions, Sight
from headwater.deltas.on_arrow import ArrowBag
from headwater.model.position import Tick
from headwater.model.relation import Column, Relation, RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory.bag import InMemoryBag, Row
from headwater_lab.one_join import declare

COLUMNS = ("a", "b", "c")
VALUES = (None, 0, 1, 1, 2)


def relation(source: str, name: str) -> Relation:
    columns = tuple(Column(name=column, type="int", native="int4") for column in COLUMNS)
    return Relation(name=RelationName(source=source, name=name), columns=columns)


RELATIONS = (relation("s0", "r"), relation("s0", "q"), relation("s1", "t"), relation("s2", "u"))
CATALOG = {one.name: one for one in RELATIONS}


@dataclass(frozen=True)
class Saw:
    ticks: frozenset[int]

    def sees(self, identity: int, log: str) -> bool:
        del log
        return identity in self.ticks


@dataclass
class World:
    """Transactions by tick: for each relation the signed rows; `source_of[tick]` committed it."""

    history: dict[int, dict[RelationName, Counter[Row]]] = field(default_factory=dict)
    source_of: dict[int, str] = field(default_factory=dict)

    def rows(self, name: RelationName, ticks: frozenset[int] | range) -> Counter[Row]:
        total: Counter[Row] = Counter()
        for tick in ticks:
            for row, count in self.history.get(tick, {}).get(name, {}).items():
                total[row] += count
        return Counter({row: count for row, count in total.items() if count})

    def at(self, name: RelationName, tick: int) -> Counter[Row]:
        return self.rows(name, range(tick + 1))

    def changes(self, name: RelationName, columns: tuple[str, ...], after: int, upto: int) -> InMemoryBag:
        indexes = [COLUMNS.index(column) for column in columns]
        entries = (
            (tick, tuple(row[i] for i in indexes), count)
            for tick in range(after + 1, upto + 1)
            for row, count in self.history.get(tick, {}).get(name, {}).items()
        )
        return InMemoryBag.of(columns, entries).net()

    def answer(self, probe: RowRequest, seen: frozenset[int]) -> RowResult[InMemoryBag]:
        indexes = [COLUMNS.index(column) for column in probe.wanted]
        rows = self.rows(probe.relation, seen)
        bag = InMemoryBag.of(probe.wanted, ((99, tuple(row[i] for i in indexes), count) for row, count in rows.items()))
        if probe.keys is not None:
            bag = bag.matching(probe.columns, probe.keys)
        return RowResult(rows=bag, sight=SawTransactions(seen=Saw(seen)))

    # The log, as an algorithm sees it.
    def seen_after(self, name: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> InMemoryBag:
        return self._log(name, columns, [t for t in self._of(name) if t > tick and sight.seen.sees(t, "")])

    def unseen_upto(self, name: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> InMemoryBag:
        return self._log(name, columns, [t for t in self._of(name) if t <= tick and not sight.seen.sees(t, "")])

    def _of(self, name: RelationName) -> list[int]:
        return [tick for tick in self.history if self.source_of[tick] == name.source]

    def _log(self, name: RelationName, columns: tuple[str, ...], ticks: list[int]) -> InMemoryBag:
        bag = InMemoryBag.of(columns, [])
        for tick in ticks:
            bag = bag.plus(self.changes(name, columns, tick - 1, tick))
        return bag

    def sights(self, random: Random, source: str, earliest: int) -> frozenset[int]:
        """Return what some snapshot of a source saw: a prefix of its log, sometimes without one that still waits."""
        own = [tick for tick in self.history if self.source_of[tick] == source]
        prefix = [tick for tick in own if tick <= random.randint(earliest, max(self.history, default=0))]
        if prefix and random.random() < 0.4:
            without = frozenset(prefix) - {random.choice(prefix)}
            if all(
                count >= 0
                for one in RELATIONS
                if one.name.source == source
                for count in self.rows(one.name, without).values()
            ):
                return without
        return frozenset(prefix)

    def perform(self, random: Random, requests: Sequence[RowRequest], earliest: int) -> list[RowResult[InMemoryBag]]:
        return [self.answer(probe, self.sights(random, probe.relation.source, earliest)) for probe in requests]


def to_arrow(bag: InMemoryBag) -> ArrowBag:
    """Return a bag as a maintainer holds it."""
    columns = {name: pa.array([row[i] for _, row in bag.entries], pa.int32()) for i, name in enumerate(bag.columns)}
    ticks = pa.array([tick for tick, _ in bag.entries], pa.int64())
    return ArrowBag(pa.table({**columns, "_tick": ticks, "_count": pa.array(list(bag.entries.values()), pa.int64())}))


def random_world(random: Random, ticks: int) -> World:
    world = World()
    for tick in range(1, ticks + 1):
        source = random.choice(("s0", "s0", "s1", "s2"))
        own = [one.name for one in RELATIONS if one.name.source == source]
        world.source_of[tick] = source
        world.history[tick] = {
            name: _random_change(random, world.at(name, tick - 1)) for name in own if random.random() < 0.8
        }
    return world


def _random_change(random: Random, state: Counter[Row]) -> Counter[Row]:
    change: Counter[Row] = Counter()
    for _ in range(random.randint(1, 3)):
        present = [row for row in state if state[row] + change[row] > 0]
        if present and random.random() < 0.45:
            change[random.choice(present)] -= 1
        else:
            change[tuple(random.choice(VALUES) for _ in COLUMNS)] += 1
    return Counter({row: count for row, count in change.items() if count})


TICKS_OF_A_HOT_KEY = 2000


def hot_world() -> World:
    """Return a world in which one key of `s0.r` and `s1.t` is updated in turn, over and over."""
    world = World()
    r, t = RELATIONS[0].name, RELATIONS[2].name
    for tick in range(1, TICKS_OF_A_HOT_KEY + 1):
        name = r if tick % 2 else t
        old = {(1, tick - 2, 0): -1} if tick > 2 else {}
        world.source_of[tick] = name.source
        world.history[tick] = {name: Counter({**old, (1, tick, 0): 1})}
    return world


def random_view(random: Random, name: str = "v") -> JoinView:
    return declare(name, random_sql(random), CATALOG)


def random_sql(random: Random) -> str:
    size = random.choice((1, 2, 2, 3, 3, 4))
    aliases = [f"x{i}" for i in range(size)]
    chosen = [random.choice(RELATIONS) for _ in aliases]
    conditions = []
    for i in range(1, size):
        other = random.randrange(i)
        operator = random.choice(("=", "=", "=", "=", "<", "<=>"))
        conditions.append(f"x{other}.{random.choice(COLUMNS)} {operator} x{i}.{random.choice(COLUMNS)}")
    if size > 2 and random.random() < 0.4:
        conditions.append(f"x0.{random.choice(COLUMNS)} = x{size - 1}.{random.choice(COLUMNS)}")
    if random.random() < 0.4:
        conditions.append(random.choice(("x0.a > 0", "x0.b IS NOT NULL", "x0.c + 1 > 1", "NOT (x0.a = 1 OR x0.b = 2)")))
    outputs = [f"x{random.randrange(size)}.{random.choice(COLUMNS)} AS o{k}" for k in range(random.randint(1, 3))]
    if random.random() < 0.3:
        outputs.append("x0.a + 1 AS plus")
    tables = ", ".join(f"{one.name} {alias}" for one, alias in zip(chosen, aliases, strict=True))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(outputs)} FROM {tables}{where}"


class Oracle:
    """Recomputes a view from its original text in DuckDB; shares nothing with maintenance."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()

    def state(self, world: World, view: JoinView, tick: int) -> Counter[Row]:
        run = self._connection.execute
        for source in ("s0", "s1", "s2"):
            run(f"CREATE SCHEMA IF NOT EXISTS {source}")
        for name in view.relations:
            rows = [row for row, count in world.at(name, tick).items() for _ in range(count)]
            values = ", ".join("(" + ", ".join("NULL" if v is None else str(v) for v in row) + ")" for row in rows)
            source = f"(VALUES {values})" if rows else "(SELECT NULL, NULL, NULL WHERE false)"
            run(
                f"CREATE OR REPLACE TABLE {name} AS SELECT a::INT a, b::INT b, c::INT c FROM {source} AS given(a, b, c)"
            )
        text = view.sql.replace("<=>", "IS NOT DISTINCT FROM")
        return Counter(run(text).fetchall())
