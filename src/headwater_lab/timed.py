"""Timed worlds: a clock makes the three moves, so that algorithms can be compared on one and the same recording.

A recording is a setting and the transactions its sources commit: when, what, and how long the notification travels. All
of it comes from one seed. What an algorithm adds are its queries; how long those and their answers travel comes from a
generator that is seeded equally for everybody. Channels keep their order: what is sent later arrives later, however
short its way. Each source's transactions come in one fixed order, so they are valid whatever happens in between.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random

from headwater.maintenance.published.messages import Algorithm
from headwater.model.relation import Relation, RelationName
from headwater_lab.in_memory.bag import Row
from headwater_lab.ledger import Rows, added
from headwater_lab.one_join import declare
from headwater_lab.shapes import SHAPES
from headwater_lab.world import Installed, Received, Sent, World, WorldSetting

_FIRST_ROWS = 6
_VALUES = 5
_DELAY = (0.5, 1.5)
"""How long a message travels: anything between, so that one way takes about one unit of time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What is varied: how many relations, how long between transactions on average, and which share of them deletes.

    In most shapes each relation has a source of its own (`shapes`).
    """

    source_count: int
    interval: float
    deletes: float
    transaction_count: int
    shape: str = "chain"


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
    """Return a recording of a view of some shape, which holds the keys of all its relations.

    Another interval gives the same transactions at other times.
    """
    random = Random(f"{seed} {conditions.source_count}")  # noqa: S311 - a seed that can be given again is the point
    shape = SHAPES[conditions.shape]
    setting = shape.setting(conditions.source_count)
    rows = {name: _first_rows(random, relation) for name, relation in setting.catalog.items()}
    setting = replace(setting, rows=dict(rows))
    transactions = []
    at = 0.0
    for _ in range(conditions.transaction_count):
        at += random.expovariate(1) * conditions.interval
        first = random.choice(list(setting.catalog))
        beside = [name for name in setting.catalog if name.source == first.source and name != first]
        touched = [first, *(name for name in beside if random.random() < shape.together)]
        changes = {}
        for name in touched:
            change = _change(random, setting.catalog[name], rows[name], conditions.deletes, shape.modify)
            rows[name] = added(rows[name], change)
            changes[name] = change
        delay = random.uniform(*_DELAY)
        transactions.append(Recorded(at=at, source=first.source, changes=changes, delay=delay))
    return Recording(setting=setting, transactions=tuple(transactions), seed=seed)


def at_one_source(recording: Recording) -> Recording:
    """Return the same relations and transactions, all at one source: for algorithms that know no other."""
    old = recording.setting
    names = {name: RelationName(source="s", name=name.name) for name in old.catalog}
    catalog = {names[name]: replace(relation, name=names[name]) for name, relation in old.catalog.items()}
    sql = old.view.sql
    for name, there in names.items():
        sql = re.sub(rf"\b{re.escape(str(name))}\b", str(there), sql)
    rows = {names[name]: held for name, held in old.rows.items()}
    transactions = tuple(
        replace(one, source="s", changes={names[name]: change for name, change in one.changes.items()})
        for one in recording.transactions
    )
    setting = WorldSetting(view=declare("view", sql, catalog), catalog=catalog, rows=rows)
    return Recording(setting=setting, transactions=transactions, seed=recording.seed)


def _first_rows(random: Random, relation: Relation) -> Counter[Row]:
    rows: Counter[Row] = Counter()
    for _ in range(_FIRST_ROWS):
        rows = added(rows, _insert(random, relation, rows))
    return rows


def _change(random: Random, relation: Relation, rows: Counter[Row], deletes: float, modify: float) -> Counter[Row]:
    draw = random.random()
    if rows and draw < deletes:
        return Counter({random.choice(sorted(rows)): -1})
    if rows and draw < deletes + (1 - deletes) * modify:
        old = random.choice(sorted(rows))
        place = random.randrange(1, len(old))
        value = random.choice([value for value in range(_VALUES) if value != old[place]])
        return Counter({old: -1, (*old[:place], value, *old[place + 1 :]): 1})
    return _insert(random, relation, rows)


def _insert(random: Random, relation: Relation, rows: Counter[Row]) -> Counter[Row]:
    """Return a new row under the smallest free key: keys of deleted rows are used again."""
    held = {row[0] for row in rows}
    key = next(number for number in count(1) if number not in held)
    return Counter({(key, *(random.randrange(_VALUES) for _ in relation.columns[1:])): 1})


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
