"""What an algorithm was worth in a timed world: the guarantee it reached, what it cost, how far behind it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from headwater.judge.grade import grade_sequence
from headwater.maintenance.published.messages import Algorithm, Query
from headwater.model.guarantee import Guarantee
from headwater_lab.grading import States, grade_in_any_order, right_in_delivery_order
from headwater_lab.in_memory.bag import InMemoryBag, InMemoryKeys, Row
from headwater_lab.timed import Recording, Timed
from headwater_lab.world import Sent, Served, World

_NUMBER_BYTES = 8
_MOST_ROUNDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """The right states of a view after a number of transactions of each source, and how many orders are tried."""

    states: States
    largest_lattice: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredAlgorithm:
    """One algorithm under one set of conditions.

    A message is a query or its answer; notifications of transactions are the same for everybody and not counted. A
    number travels as eight bytes, a text as its length, a row with its count. `any_order` is None where there are too
    many orders to look at. A round is what goes out at once and is waited for, where nothing interferes.
    `mean_ticks_behind` is the integral of `behind` over the time until everything was shown.
    """

    algorithm: str
    claim: Guarantee
    one_source: bool
    gave_up: bool
    guarantee: Guarantee
    any_order: Guarantee | None
    queries_per_update: float
    rounds_per_update: float
    messages_per_update: float
    rows_per_update: float
    bytes_per_update: float
    largest_query_parts: int
    largest_query_bytes: int
    install_count: int
    installs_before_last_delivery: int
    mean_ticks_behind: float
    ended_at: float
    behind: tuple[tuple[float, int], ...]

    @property
    def kept(self) -> bool:
        """Whether the guarantee that is claimed was kept, in the order of delivery."""
        return self.guarantee >= self.claim


def measure(
    name: str, claim: Guarantee, timed: Timed, right: Right, *, rounds: float, one_source: bool
) -> MeasuredAlgorithm:
    """Return what a timed world shows of the algorithm it was played with."""
    world = timed.world
    updates = max(world.versions.total(), 1)
    sent = [event for event in world.events if isinstance(event, Sent)]
    served = [event for event in world.events if isinstance(event, Served)]
    asked = [_size(_carried(event.query)) for event in sent]
    answered = [_size(row for part in event.found for _, bag in part for row in _rows(bag)) for event in served]
    shown = world.shown_states()
    guarantee = grade_sequence(right_in_delivery_order(world, right.states), shown).guarantee
    any_order: Guarantee | None = guarantee
    if guarantee < Guarantee.COMPLETE:
        any_order = grade_in_any_order(world, right.states, largest_lattice=right.largest_lattice)
    return MeasuredAlgorithm(
        algorithm=name,
        claim=claim,
        one_source=one_source,
        gave_up=timed.gave_up,
        guarantee=guarantee,
        any_order=any_order,
        queries_per_update=len(sent) / updates,
        rounds_per_update=rounds,
        messages_per_update=(len(sent) + len(served)) / updates,
        rows_per_update=sum(rows for rows, _ in asked + answered) / updates,
        bytes_per_update=sum(size for _, size in asked + answered) / updates,
        largest_query_parts=max((len(event.query.parts) for event in sent), default=0),
        largest_query_bytes=max((size for _, size in asked), default=0),
        install_count=len(shown) - 1,
        installs_before_last_delivery=timed.installs_before_last_delivery,
        mean_ticks_behind=_mean(timed.behind, timed.ended_at),
        ended_at=timed.ended_at,
        behind=timed.behind,
    )


def rounds_per_update(recording: Recording, algorithm: Algorithm) -> float:
    """Return how many rounds a transaction takes where nothing interferes: what is open is answered all at once."""
    world = World(recording.setting, algorithm)
    rounds = 0
    for transaction in recording.transactions:
        world.commit(transaction.source, transaction.changes)
        world.deliver(transaction.source)
        while not world.is_quiet:
            rounds += 1
            for source, queries in [(source, len(waiting)) for source, waiting in world.queries.items()]:
                for _ in range(queries):
                    world.serve(source)
            for source, messages in [(source, len(waiting)) for source, waiting in world.channels.items()]:
                for _ in range(messages):
                    world.deliver(source)
            if rounds > _MOST_ROUNDS * len(recording.transactions):
                return rounds / len(recording.transactions)  # it would not end
    return rounds / max(len(recording.transactions), 1)


def _carried(query: Query[InMemoryBag]) -> Iterator[Row]:
    """Yield the rows and key values that travel with a query."""
    for part in query.parts:
        for bag in part.carried.values():
            yield from _rows(bag)
        if part.keys is not None:
            assert isinstance(part.keys, InMemoryKeys), "the lab works in memory"
            yield from part.keys.values


def _rows(bag: InMemoryBag) -> Iterator[Row]:
    return (row for _, row in bag.entries)


def _size(rows: Iterable[Row]) -> tuple[int, int]:
    """Return how many rows there are, and how many bytes they travel as."""
    sizes = [_NUMBER_BYTES + sum(_bytes(value) for value in row) for row in rows]
    return len(sizes), sum(sizes)


def _bytes(value: object) -> int:
    return len(value.encode()) if isinstance(value, str) else _NUMBER_BYTES


def _mean(behind: tuple[tuple[float, int], ...], ended_at: float) -> float:
    """Return the mean of a step function over the time until an end."""
    steps = [*behind, (ended_at, 0)]
    area = sum((later - at) * ticks for (at, ticks), (later, _) in pairwise(steps))
    return area / ended_at if ended_at else 0.0
