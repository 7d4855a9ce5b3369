"""A world small enough to see through: sources that commit, channels that keep their order, one algorithm.

Three moves are all that can happen, and the player chooses the next one (a random number, a clock, a scenario):

    commit   a source commits a transaction; its notification goes into the source's channel
    serve    a source takes the oldest query sent to it, answers it from its state of that moment; the answer goes into
             the same channel, behind the notifications of everything it saw
    deliver  the warehouse takes the next message of a source's channel

The algorithm sees nothing but what is delivered. Everything that happens is written down in `events`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.deltas.lookup import RowRequest, SawTicks, Sight
from headwater.maintenance.published.messages import (
    VIEW,
    Algorithm,
    Answered,
    Delivered,
    Event,
    Found,
    Install,
    Query,
    answer_part,
)
from headwater.model.position import Tick
from headwater.model.relation import Relation, RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory.bag import InMemoryBag, Row
from headwater_lab.in_memory.install import install_in_memory
from headwater_lab.in_memory.look import look_in_memory
from headwater_lab.ledger import Ledger, LedgerEntry, Rows, added
from headwater_lab.oracle import oracle
from headwater_lab.watched_log import WatchedLog


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSetting:
    """What a world begins with: a view, the relations it reads, and their rows."""

    view: JoinView
    catalog: Mapping[RelationName, Relation]
    rows: Rows

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that hold the view's relations, in the order of the view."""
        return tuple(dict.fromkeys(occurrence.relation.name.source for occurrence in self.view.occurrences))

    def recomputed(self, rows: Rows) -> Counter[Row]:
        """Return the view's rows over the given rows of its relations, recomputed from its SQL."""
        return oracle(self.view.sql, tuple(self.catalog.values())).rows(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A source committed a transaction, its how many-th."""

    source: str
    version: int
    changes: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The warehouse received a transaction, and gave it a tick."""

    tick: Tick
    source: str
    version: int
    changes: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """The warehouse sent a query."""

    query: Query[InMemoryBag]
    row_count: int
    """Rows or key values that travel with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A source answered a query from its state after its how many-th transaction."""

    number: int
    source: str
    version: int
    found: Found[InMemoryBag]
    row_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GotAnswer:
    """The warehouse received an answer."""

    number: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    """An answer was brought to the tick needed: rows put back (counts above zero) and taken out (below)."""

    number: int
    relation: RelationName
    tick: Tick
    correction: Mapping[Row, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The view was brought to a tick."""

    upto: Tick
    install: Install[InMemoryBag]
    state: Mapping[Row, int]


Happening = Committed | Received | Sent | Served | GotAnswer | Rebased | Installed

SightOf = Callable[[Served, Tick], Sight]
"""How the warehouse knows what an answer saw: from the answer, or from the last tick delivered before it."""


def seen_by_arrival(served: Served, last_tick: Tick) -> Sight:  # noqa: ARG001 - the answer itself is not looked at
    """Infer what an answer saw from its place in a channel that keeps its order."""
    return SawTicks(upto=last_tick)


class World:
    """Plays one algorithm."""

    def __init__(self, setting: WorldSetting, algorithm: Algorithm, sight_of: SightOf = seen_by_arrival) -> None:
        """Begin with a view that is right, and with nothing on its way."""
        self.setting = setting
        self._sight_of = sight_of
        self.ledger = Ledger(setting.catalog)
        self.rows: dict[RelationName, Counter[Row]] = {
            name: Counter(setting.rows.get(name, {})) for name in setting.catalog
        }
        self.versions: Counter[str] = Counter()
        self.queries: dict[str, deque[Query[InMemoryBag]]] = {source: deque() for source in setting.sources}
        self.channels: dict[str, deque[Committed | Served]] = {source: deque() for source in setting.sources}
        self.state = setting.recomputed(setting.rows)
        self._refreshed = Tick(0)
        self._waiting: list[RowRequest[Any]] = []
        self.events: list[Happening] = []
        self._log = WatchedLog(self.ledger)
        self._running = algorithm(setting.view, Tick(0), self._log)
        self._act(next(self._running))

    def commit(self, source: str, changes: Rows) -> None:
        """Let a source commit a transaction."""
        for name, change in changes.items():
            self.rows[name] = added(self.rows[name], change)
            assert all(count > 0 for count in self.rows[name].values()), "a source deletes only what it has"
        self.versions[source] += 1
        committed = Committed(source=source, version=self.versions[source], changes=changes)
        self.events.append(committed)
        self.channels[source].append(committed)

    def serve(self, source: str) -> None:
        """Let a source answer the oldest query sent to it."""
        query = self.queries[source].popleft()
        view = self.setting.view
        found = tuple(answer_part(view, part, self._like, self._probe) for part in query.parts)
        served = Served(
            number=query.number,
            source=source,
            version=self.versions[source],
            found=found,
            row_count=sum(sum(rows.entries.values()) for part in found for _, rows in part),
        )
        self.events.append(served)
        self.channels[source].append(served)

    def deliver(self, source: str) -> None:
        """Let the warehouse receive the next message of a source."""
        match self.channels[source].popleft():
            case Committed() as committed:
                entry = LedgerEntry(source=source, version=committed.version, changes=committed.changes)
                tick = self.ledger.append(entry)
                self.events.append(
                    Received(tick=tick, source=source, version=committed.version, changes=committed.changes)
                )
                self._send(Delivered(tick=tick))
            case Served() as served:
                self.events.append(GotAnswer(number=served.number, source=source))
                sight = self._sight_of(served, self.ledger.last_tick)
                self._take_in(Answered(number=served.number, found=served.found, sight=sight))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is on its way."""
        return not any(self.queries.values()) and not any(self.channels.values())

    def right_states(self) -> list[Counter[Row]]:
        """Return what the view should have been after each tick, the beginning first."""
        rows: dict[RelationName, Mapping[Row, int]] = dict(self.setting.rows)
        states = [self.setting.recomputed(rows)]
        for entry in self.ledger.entries:
            for name, change in entry.changes.items():
                rows[name] = added(rows.get(name, {}), change)
            states.append(self.setting.recomputed(rows))
        return states

    def shown_states(self) -> list[Mapping[Row, int]]:
        """Return what readers saw, the beginning first."""
        first = self.setting.recomputed(self.setting.rows)
        return [first, *(event.state for event in self.events if isinstance(event, Installed))]

    def _send(self, event: Event) -> None:
        self._act(self._running.send(event))

    def _take_in(self, answered: Answered[InMemoryBag]) -> None:
        self._waiting += [request for part in answered.found for request, _ in part]
        self._log.watch(tuple(self._waiting))
        effects = self._running.send(answered)
        for (relation, tick), correction in self._log.corrections().items():
            rebased = Rebased(number=answered.number, relation=relation, tick=tick, correction=correction)
            self.events.append(rebased)
        if effects or not any(self.queries.values()):
            self._waiting = []  # a round is complete, and was used
        self._log.watch(())
        self._act(effects)

    def _look(self, query: Query[InMemoryBag]) -> Answered[InMemoryBag]:
        """Read the view's own rows, as they are now."""
        found = tuple((look_in_memory(self.setting.view, self.state, part),) for part in query.parts)
        return Answered(number=query.number, found=found, sight=SawTicks(upto=self._refreshed))

    def _act(self, effects: Any) -> None:
        looks: list[Query[InMemoryBag]] = []
        for effect in effects:
            match effect:
                case Query(source=source) if source == VIEW:
                    looks.append(effect)
                case Query():
                    self.queries[effect.source].append(effect)
                    carried = sum(len(rows) for part in effect.parts for rows in part.carried.values())
                    carried += sum(len(part.keys) for part in effect.parts if part.keys is not None)
                    self.events.append(Sent(query=effect, row_count=carried))
                case Install():
                    self.state = install_in_memory(self.setting.view, self.state, effect)
                    self._refreshed = effect.upto
                    self.events.append(Installed(upto=effect.upto, install=effect, state=self.state))
        for look in looks:
            self._take_in(self._look(look))

    def _like(self, relation: RelationName) -> InMemoryBag:
        return InMemoryBag.of(self.setting.view.relations[relation], [])

    def _probe(self, probe: RowRequest[Any]) -> InMemoryBag:
        names = self.setting.catalog[probe.relation].column_names
        places = [names.index(column) for column in probe.wanted]
        rows = self.rows[probe.relation].items()
        bag = InMemoryBag.of(probe.wanted, ((0, tuple(row[i] for i in places), count) for row, count in rows))
        return bag if probe.keys is None else bag.matching(probe.columns, probe.keys)
