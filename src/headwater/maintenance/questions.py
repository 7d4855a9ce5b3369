"""What an algorithm asks and is told: events in, effects out, no I/O.

An algorithm is a generator. It yields an `Ask`, is sent the answers in the same order, and returns its result. Who
performs the questions (a live source, a replica on Spark, a script in a test) is not its business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from headwater.deltas.signed_bag import Keys, SignedBag
from headwater.position import Tick
from headwater.relation import RelationName
from headwater.transaction import Seen

B = TypeVar("B", bound=SignedBag)  # type: ignore[type-arg]  # of any keys: a type variable cannot be bound to another one
B_co = TypeVar("B_co", bound=SignedBag, covariant=True)  # type: ignore[type-arg]  # as above
K = TypeVar("K", bound=Keys)

NO_TICK = Tick(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe(Generic[K]):
    """Which rows of this relation join these values? Without columns: all of its rows."""

    relation: RelationName
    wanted: tuple[str, ...]
    columns: tuple[str, ...]
    keys: K | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask(Generic[K]):
    """Probes that do not depend on each other; whoever performs them may do so at once."""

    probes: tuple[Probe[K], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SawTransactions:
    """The answer was read in a source's snapshot, which saw a set of its transactions: all up to a tick, and others."""

    seen: Seen
    upto: Tick = NO_TICK


@dataclass(frozen=True, slots=True, kw_only=True)
class SawTicks:
    """The answer was read in a replica: it saw exactly the transactions up to a tick."""

    upto: Tick


Sight = SawTransactions | SawTicks


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[B]):
    """The rows that answer a probe, and what was seen when they were read. Their stamps mean nothing."""

    rows: B
    sight: Sight


class Log(Protocol[B_co]):
    """The accepted transactions, as far as an algorithm may look: all that an answer saw are known by then."""

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> B_co:
        """Return the signed rows of the transactions that were seen and whose tick is after this one."""
        ...

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> B_co:
        """Return the signed rows of the transactions that were not seen and whose tick is not after this one."""
        ...
