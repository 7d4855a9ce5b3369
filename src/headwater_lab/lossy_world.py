"""A world whose channels lose, repeat and reorder messages, with the layer that makes up for it in between.

    sources ── notifications, answers, heartbeats ──► faults ──► acceptance ──► the world's warehouse, in order
            ◄── queries, requests to send again ──────── faults ◄──

Sources and warehouse are those of `world`; only what goes on between them is different. Every message, in either
direction, may be lost or doubled when it is sent, and any one that is on its way may be the next to arrive. Time passes
when nothing else happens, or by chance: then sources send heartbeats, and what is missing is asked for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from headwater.deltas.lookup import SawTransactions, Sight
from headwater.maintenance.published.messages import Algorithm, Query
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import SeenUpTo
from headwater_lab.acceptance import (
    Accept,
    Acceptance,
    Alive,
    Arrival,
    AskAgain,
    Notified,
    Replied,
    Request,
    SendAgain,
)
from headwater_lab.chance import Chances, random_setting, random_transaction
from headwater_lab.in_memory.bag import InMemoryBag, Row
from headwater_lab.ledger import Rows, added
from headwater_lab.world import Committed, Served, SightOf, World, WorldSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often a message is lost, how often doubled, and whether messages overtake each other."""

    loss: float = 0.0
    repeat: float = 0.0
    reorder: bool = False


def seen_by_version(served: Served, last_tick: Tick) -> Sight:  # noqa: ARG001 - when it arrives does not matter
    """Take what an answer saw from the version written on it."""
    return SawTransactions(seen=SeenUpTo(last=served.version))


def written_version(served: Served) -> int:
    """Return the version that a source writes on an answer."""
    return served.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What is done about faults. The literal readings leave something out."""

    heartbeat: bool = True
    re_request: bool = True
    version_of: Callable[[Served], int] = written_version
    sight_of: SightOf = seen_by_version


_Message = Arrival | Query[InMemoryBag] | SendAgain


class LossyWorld:
    """Plays one algorithm over channels with faults."""

    def __init__(
        self,
        setting: WorldSetting,
        algorithm: Algorithm,
        *,
        random: Random,
        faults: Faults,
        protocol: Protocol | None = None,
    ) -> None:
        """Begin with a view that is right, and with nothing on its way."""
        self._protocol = protocol or Protocol()
        self.world = World(setting, algorithm, self._protocol.sight_of)
        self.acceptance: Acceptance[Committed, Served] = Acceptance(setting.sources)
        self.on_the_way: list[_Message] = []
        self._random = random
        self._faults = faults
        self._committed: dict[str, list[Committed]] = {source: [] for source in setting.sources}
        self._asked: dict[int, Query[InMemoryBag]] = {}

    def commit(self, source: str, changes: Rows) -> None:
        """Let a source commit a transaction and report it."""
        self.world.commit(source, changes)
        committed = self.world.channels[source].pop()
        assert isinstance(committed, Committed), "a commit is reported at once"
        self._committed[source].append(committed)
        self._send(_notified(committed))

    def arrive(self, place: int = 0) -> None:
        """Let a message arrive where it was sent to."""
        match self.on_the_way.pop(place):
            case Query() as query:
                self._serve(query)
            case SendAgain() as request:
                for version in request.versions:
                    self._send(_notified(self._committed[request.source][version - 1]))
            case message:
                self._take_in(message)

    def let_time_pass(self) -> None:
        """Let sources send heartbeats, and ask again for what is missing."""
        if self._protocol.heartbeat:
            for source, committed in self._committed.items():
                self._send(Alive(source=source, version=len(committed)))
        for request in self._requests():
            self._send(self._asked[request.number] if isinstance(request, AskAgain) else request)

    @property
    def is_complete(self) -> bool:
        """Whether every transaction was accepted and every query answered."""
        unknown = any(self.acceptance.accepted(source) < len(done) for source, done in self._committed.items())
        return not unknown and not self.acceptance.is_waiting

    @property
    def is_stuck(self) -> bool:
        """Whether nothing is on its way and the passing of time brings nothing new."""
        is_something_missing = any(
            self.acceptance.heard_of(source) < len(done) for source, done in self._committed.items()
        )
        return not self.on_the_way and not self._requests() and not (is_something_missing and self._protocol.heartbeat)

    def right_states(self) -> list[Counter[Row]]:
        """Return what the view should have been after each tick. What was never accepted comes last."""
        states = self.world.right_states()
        rows: dict[RelationName, Mapping[Row, int]] = dict(self.world.setting.rows)
        entries = [entry.changes for entry in self.world.ledger.entries]
        lost = [
            one.changes for source, done in self._committed.items() for one in done[self.acceptance.accepted(source) :]
        ]
        for place, changes in enumerate([*entries, *lost]):
            rows |= {name: added(rows.get(name, {}), change) for name, change in changes.items()}
            if place >= len(entries):
                states.append(self.world.setting.recomputed(rows))
        return states

    def _requests(self) -> list[Request]:
        return [r for r in self.acceptance.overdue() if self._protocol.re_request or isinstance(r, AskAgain)]

    def _send(self, message: _Message) -> None:
        """Put a message on its way, or lose it, or put it on its way twice."""
        if self._random.random() < self._faults.loss:
            return
        copies = 2 if self._random.random() < self._faults.repeat else 1
        self.on_the_way += [message] * copies

    def _serve(self, query: Query[InMemoryBag]) -> None:
        self.world.queries[query.source].append(query)
        self.world.serve(query.source)
        served = self.world.channels[query.source].pop()
        assert isinstance(served, Served), "a query is answered at once"
        version = self._protocol.version_of(served)
        self._send(Replied(source=query.source, version=version, number=query.number, answer=served))

    def _take_in(self, message: Arrival) -> None:
        for outcome in self.acceptance.arrived(message):
            passed_on = outcome.transaction if isinstance(outcome, Accept) else outcome.answer
            self.world.channels[outcome.source].append(passed_on)
            self.world.deliver(outcome.source)
            self._send_queries()

    def _send_queries(self) -> None:
        for source, waiting in self.world.queries.items():
            while waiting:
                query = waiting.popleft()
                self._asked[query.number] = query
                self.acceptance.asked(source, query.number)
                self._send(query)


def _notified(committed: Committed) -> Notified[Committed]:
    return Notified(source=committed.source, version=committed.version, transaction=committed)


def play_with_faults(
    seed: int, algorithm: Algorithm, chances: Chances, faults: Faults, protocol: Protocol | None = None
) -> LossyWorld:
    """Play an algorithm through one random interleaving, until all is accepted and answered or nothing can happen."""
    random = Random(seed)  # noqa: S311 - a seed that can be given again is the point
    setting = random_setting(random, chances)
    lossy = LossyWorld(setting, algorithm, random=random, faults=faults, protocol=protocol)
    remaining = chances.transaction_count
    for _ in range(_MOST_MOVES):
        if not remaining and (lossy.is_complete or lossy.is_stuck):
            return lossy
        moves = ["arrive"] * min(4, len(lossy.on_the_way)) + ["commit"] * (remaining > 0)
        match random.choice(moves) if moves and random.random() > _TIME_PASSES else "let time pass":
            case "commit":
                remaining -= 1
                source = random.choice(setting.sources)
                if changes := random_transaction(random, lossy.world, source, chances):
                    lossy.commit(source, changes)
            case "arrive":
                lossy.arrive(random.randrange(len(lossy.on_the_way)) if faults.reorder else 0)
            case _:
                lossy.let_time_pass()
    raise AssertionError(f"seed {seed}: it does not end")


_MOST_MOVES = 20_000
_TIME_PASSES = 0.05
"""The share of moves that time takes while something else could happen."""
