"""Timed worlds: a clock makes the three moves, so that algorithms can be compared on one and the same recording.

A recording is a setting and the transactions its sources commit: when, what, and how long the notification travels. All
of it comes from one seed. What an algorithm adds are its queries; how long those and their answers travel comes from a
generator that is seeded equally for everybody. Channels keep their order: what is sent later arrives later, however
short its way. Each source's transactions come in one fixed order, so they are valid whatever happens in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count, pairwise
from random import Random

from headwater.maintenance.published.messages import Algorithm
from headwater.model.relation import Column, Relation, RelationName
from headwater_lab.in_memory.bag import Row
from headwater_lab.ledger import Rows, added
from headwater_lab.one_join import declare
from headwater_lab.world import Installed, Received, Sent, World, WorldSetting

_COLUMNS = ("k", "a", "b")
_FIRST_ROWS = 6
_VALUES = 5
_DELAY = (0.5, 1.5)
"""How long a message travels: anything between, so that one way takes about one unit of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What is varied: how many sources, how long between transactions on average, and which share of them deletes."""

    source_count: int
    interval: float
    deletes: float
    transaction_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A transaction of a recording: when its source commits it, and how long its notification travels."""

    at: float
    source: str
    changes: Rows
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A setting and what its sources commit. `seed` is that of the delays of queries and answers."""

    setting: WorldSetting
    transactions: tuple[Recorded, ...]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A world that was played to its end: when it ended, and how many ticks the view was behind, from when on."""

    world: World
    ended_at: float
    behind: tuple[tuple[float, int], ...]
    installs_before_last_delivery: int
    gave_up: bool = False
    """Whether it was stopped, because it had sent more queries than anybody should."""


def record(conditions: Conditions, seed: int) -> Recording:
    """Return a recording: a chain of relations, one per source, whose view holds the keys of all of them.

    Another interval gives the same transactions at other times.
    """
    random = Random(f"{seed} {conditions.source_count}")  # noqa: S311 - a seed that can be given again is the point
    relations = [_relation(f"s{place}", f"r{place}") for place in range(1, conditions.source_count + 1)]
    setting = _chain(relations, {relation.name: _first_rows(random) for relation in relations})
    rows = {name: Counter(held) for name, held in setting.rows.items()}
    transactions = []
    at = 0.0
    for _ in range(conditions.transaction_count):
        at += random.expovariate(1) * conditions.interval
        name = random.choice(relations).name
        change = _change(random, rows[name], conditions.deletes)
        rows[name] = added(rows[name], change)
        delay = random.uniform(*_DELAY)
        transactions.append(Recorded(at=at, source=name.source, changes={name: change}, delay=delay))
    return Recording(setting=setting, transactions=tuple(transactions), seed=seed)


def at_one_source(recording: Recording) -> Recording:
    """Return the same relations and transactions, all at one source: for algorithms that know no other."""
    names = {name: RelationName(source="s", name=name.name) for name in recording.setting.catalog}
    relations = [replace(relation, name=names[name]) for name, relation in recording.setting.catalog.items()]
    rows = {names[name]: held for name, held in recording.setting.rows.items()}
    transactions = tuple(
        replace(one, source="s", changes={names[name]: change for name, change in one.changes.items()})
        for one in recording.transactions
    )
    return Recording(setting=_chain(relations, rows), transactions=transactions, seed=recording.seed)


def _relation(source: str, name: str) -> Relation:
    columns = tuple(Column(name=column, type="int", native="int4") for column in _COLUMNS)
    return Relation(name=RelationName(source=source, name=name), columns=columns, key=("k",))


def _chain(relations: list[Relation], rows: Mapping[RelationName, Mapping[Row, int]]) -> WorldSetting:
    aliases = [relation.name.name for relation in relations]
    outputs = ", ".join(f"{alias}.k AS {alias}_k" for alias in aliases)
    tables = ", ".join(f"{relation.name} {alias}" for relation, alias in zip(relations, aliases, strict=True))
    joins = [f"{left}.b = {right}.a" for left, right in pairwise(aliases)]
    where = f" WHERE {' AND '.join(joins)}" if joins else ""
    catalog = {relation.name: relation for relation in relations}
    view = declare("view", f"SELECT {outputs} FROM {tables}{where}", catalog)
    return WorldSetting(view=view, catalog=catalog, rows=rows)


def _first_rows(random: Random) -> Counter[Row]:
    rows: Counter[Row] = Counter()
    for _ in range(_FIRST_ROWS):
        rows = added(rows, _insert(random, rows))
    return rows


def _change(random: Random, rows: Counter[Row], deletes: float) -> Counter[Row]:
    if rows and random.random() < deletes:
        return Counter({random.choice(sorted(rows)): -1})
    return _insert(random, rows)


def _insert(random: Random, rows: Counter[Row]) -> Counter[Row]:
    """Return a new row under the smallest free key: keys of deleted rows are used again."""
    held = {row[0] for row in rows}
    key = next(number for number in count(1) if number not in held)
    return Counter({(key, random.randrange(_VALUES), random.randrange(_VALUES)): 1})


class _Clock:
    """Makes the moves of one world in the order of their times."""

    def __init__(self, recording: Recording, algorithm: Algorithm) -> None:
        self.world = World(recording.setting, algorithm)
        self.now = 0.0
        self.behind: list[tuple[float, int]] = [(0.0, 0)]
        self.installed_at: list[float] = []
        self.last_delivery_at = 0.0
        self._random = Random(recording.seed)  # noqa: S311 - the same delays for everybody are the point
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._arrivals: dict[tuple[str, str], float] = {}
        self._installed = 0
        self._noted = 0
        for transaction in recording.transactions:
            self._plan(transaction.at, partial(self._commit, transaction))

    def run(self, most_queries: int) -> bool:
        """Play to the end, and return False if more queries were sent than allowed."""
        query_count = 0
        while self._due and query_count <= most_queries:
            self.now, _, move = heappop(self._due)
            move()
            query_count += self._note()
        return query_count <= most_queries

    def _commit(self, transaction: Recorded) -> None:
        self.world.commit(transaction.source, transaction.changes)
        self._send(("to warehouse", transaction.source), transaction.delay, self._deliver)

    def _serve(self, source: str) -> None:
        self.world.serve(source)
        self._send(("to warehouse", source), self._random.uniform(*_DELAY), self._deliver)

    def _deliver(self, source: str) -> None:
        self.world.deliver(source)

    def _plan(self, at: float, move: Callable[[], None]) -> None:
        heappush(self._due, (at, next(self._order), move))

    def _send(self, way: tuple[str, str], delay: float, arrive: Callable[[str], None]) -> None:
        """Send a message. It does not overtake earlier ones on the same channel."""
        at = max(self._arrivals.get(way, 0.0), self.now + delay)
        self._arrivals[way] = at
        self._plan(at, partial(arrive, way[1]))

    def _note(self) -> int:
        """Look at what the last move led to, and return how many queries it sent."""
        query_count = 0
        for event in self.world.events[self._noted :]:
            match event:
                case Sent():
                    query_count += 1
                    self._send(("to source", event.query.source), self._random.uniform(*_DELAY), self._serve)
                case Received():
                    self.last_delivery_at = self.now
                case Installed():
                    self.installed_at.append(self.now)
                    self._installed = event.upto
                case _:
                    pass
        self._noted = len(self.world.events)
        behind = self.world.ledger.last_tick - self._installed
        if behind != self.behind[-1][1]:
            self.behind.append((self.now, behind))
        return query_count


def play_recording(recording: Recording, algorithm: Algorithm, *, most_queries: int) -> Timed:
    """Play an algorithm through a recording, to its end."""
    clock = _Clock(recording, algorithm)
    finished = clock.run(most_queries)
    return Timed(
        world=clock.world,
        ended_at=clock.now,
        behind=tuple(clock.behind),
        installs_before_last_delivery=sum(1 for at in clock.installed_at if at < clock.last_delivery_at),
        gave_up=not finished,
    )
