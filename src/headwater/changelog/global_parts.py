"""Global transactions: parts that several sources commit, each on its own, and that only together mean something.

A transfer takes from one bank and gives to another: two transactions of two databases, which carry the same global id.
Paper 000 calls this type 3. All its parts become one tick, so no state of any view ever shows half of it.

Law: order what has arrived by "not after": a transaction is not after its successor in its source, and parts of one
global transaction are not after each other, both ways. What lies on a cycle of this order becomes one tick; ticks
follow the order.

    a   A  x           A is held: b's part is missing. x waits behind it: one source's order is never changed
    b        y  A      y goes on at once; with A both parts become one tick, then x:        y · A+A · x

    a   A  x  B        crossing: no order of whole ticks has A before B at a and B before A at b. They lie on a cycle,
    b   B  A           and what is between them as well: one tick for A, x and B together:  A+x+B+B+A

Invariants
  1. Nothing is lost, nothing is given out twice, and one source's transactions come in its order, some in one tick.
  2. A global transaction of which every source's part has arrived is one tick, as soon as all that it must follow is.
  3. Of one that is incomplete nothing is given out, unless it was released; then each of its parts goes alone.
  4. Transactions share a tick only where the law forces them to.

Guarantee: as the law says, whatever the order of arrival. Where a part never comes, its source stands still at it, and
nothing else does; a caller that knows that it will never come releases its id.

A source that uses an id again begins the next global transaction of that name: first parts belong together, then second
ones. A transaction that carries two ids is a part of both, so all parts of both become one tick.

A chain is no cycle: global transactions that come in one order everywhere have a tick each, however many are held. Only
crossings join, and crossings that overlap join further: A with B and B with C is a cycle through all three. That cannot
be avoided while a source's own order is kept.

Cost: what the first waiting transaction of a source needs is found once, as far as parts have arrived, and followed
further when the part arrives at which it stopped. Held ones are in memory: see `holding`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived(Generic[T]):
    """What one source committed next: a part of these global transactions, or of none."""

    source: str
    ids: frozenset[str]
    value: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Incomplete(Generic[T]):
    """A global transaction some parts of which have arrived and some have not."""

    id: str
    arrived: tuple[Arrived[T], ...]
    missing: tuple[str, ...]


@dataclass(slots=True)
class _PartLine(Generic[T]):
    """What waits of one source, numbered in its order. `places` has the numbers of each id's parts."""

    waiting: dict[int, Arrived[T]] = field(default_factory=dict)
    first: int = 0
    places: dict[str, list[int]] = field(default_factory=dict)

    def add(self, one: Arrived[T]) -> None:
        number = self.first + len(self.waiting)
        self.waiting[number] = one
        for each in one.ids:
            self.places.setdefault(each, []).append(number)

    def take(self, upto: int) -> Iterator[Arrived[T]]:
        while self.first <= upto:
            one = self.waiting.pop(self.first)
            for each in one.ids:
                self.places[each].remove(self.first)
                if not self.places[each]:
                    del self.places[each]
            self.first += 1
            yield one


@dataclass(slots=True)
class _Need:
    """What a source's first waiting transaction needs, as far as it is known: up to which number each source must go.

    Up to `looked_at` the transactions' other parts were looked for, and are there. A need only grows.
    """

    of: int
    ends: dict[str, int]
    looked_at: dict[str, int] = field(default_factory=dict)


class GlobalParts(Generic[T]):
    """Decides which transactions become which ticks, given that each global one has a part in each of these sources.

    >>> parts = GlobalParts(["a", "b"])
    >>> def arrive(source, value, *ids):
    ...     ticks = parts.arrive(Arrived(source=source, ids=frozenset(ids), value=value))
    ...     return [[one.value for one in tick] for tick in ticks]
    >>> arrive("a", "minus", "transfer 7"), arrive("a", "x")
    ([], [])
    >>> [(one.id, one.missing) for one in parts.incomplete()]
    [('transfer 7', ('b',))]
    >>> arrive("b", "y"), arrive("b", "plus", "transfer 7")
    ([['y']], [['minus', 'plus'], ['x']])
    >>> arrive("b", "again", "transfer 7")
    []
    >>> [[one.value for one in tick] for tick in parts.release("transfer 7")]
    [['again']]
    """

    def __init__(self, sources: Iterable[str], released: Iterable[str] = ()) -> None:
        """Begin with nothing waiting. Parts of the released ids wait for nobody."""
        self._lines: dict[str, _PartLine[T]] = {source: _PartLine() for source in sources}
        self._released = set(released)
        self._needs: dict[str, _Need] = {}

    def arrive(self, one: Arrived[T]) -> Sequence[Sequence[Arrived[T]]]:
        """Take in what a source committed next. Return what becomes ticks now, in order."""
        self._lines[one.source].add(one)
        return self._ready()

    def release(self, released: str) -> Sequence[Sequence[Arrived[T]]]:
        """Let the parts of a global transaction go without each other. Return what becomes ticks now, in order."""
        self._released.add(released)
        self._needs = {}
        return self._ready()

    def waiting(self, source: str) -> Collection[Arrived[T]]:
        """Return what waits of a source, in its order."""
        return self._lines[source].waiting.values()

    def incomplete(self) -> Sequence[Incomplete[T]]:
        """Return the global transactions whose missing parts hold something back."""
        ids = dict.fromkeys(each for line in self._lines.values() for each in line.places)
        found = []
        for each in ids:
            if each in self._released:
                continue
            count = max(len(line.places.get(each, ())) for line in self._lines.values())
            lacking = [source for source, line in self._lines.items() if len(line.places.get(each, ())) < count]
            if lacking:
                arrived = [
                    line.waiting[places[-1]] for line in self._lines.values() if (places := line.places.get(each))
                ]
                have = tuple(one for one in arrived if one.source not in lacking)
                found.append(Incomplete(id=each, arrived=have, missing=tuple(lacking)))
        return found

    def _ready(self) -> list[list[Arrived[T]]]:
        ticks = []
        while (ends := self._next_tick()) is not None:
            ticks.append([one for source, upto in ends.items() for one in self._lines[source].take(upto)])
        return ticks

    def _next_tick(self) -> dict[str, int] | None:
        """Return up to which number of each source the next tick goes.

        Of all that the first waiting transactions need, the smallest: nothing in it can go before the rest of it.
        """
        needs = [self._needed(source) for source, line in self._lines.items() if line.waiting]
        return min((one for one in needs if one is not None), key=self._size, default=None)

    def _size(self, ends: dict[str, int]) -> int:
        return sum(upto - self._lines[source].first + 1 for source, upto in ends.items())

    def _needed(self, source: str) -> dict[str, int] | None:
        """Return up to where each source must go for this source's first one to go. None: something is missing."""
        first = self._lines[source].first
        need = self._needs.get(source)
        if need is None or need.of != first:
            need = self._needs[source] = _Need(of=first, ends={source: first})
        while need.ends != need.looked_at:
            for name, upto in list(need.ends.items()):
                line = self._lines[name]
                for number in range(max(need.looked_at.get(name, -1) + 1, line.first), upto + 1):
                    for partner, place in self._partners(name, number):
                        if place is None:
                            return None
                        need.ends[partner] = max(need.ends.get(partner, place), place)
                    need.looked_at[name] = number
                need.looked_at[name] = upto
        return need.ends

    def _partners(self, source: str, number: int) -> Iterator[tuple[str, int | None]]:
        """Yield the other parts of what a transaction is a part of. None for one that has not arrived."""
        line = self._lines[source]
        for each in line.waiting[number].ids - self._released:
            turn = line.places[each].index(number)
            for partner, other in self._lines.items():
                places = other.places.get(each, ())
                yield partner, places[turn] if turn < len(places) else None
