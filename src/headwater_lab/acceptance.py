"""Acceptance: from messages that get lost, come twice or overtake each other, to transactions once and in order.

Every source numbers its transactions: its versions 1, 2, 3, ... It writes the number on each notification, on each
answer (the version it was read at), and on a heartbeat that it sends from time to time.

    arrives       accepted   early   heard of        what follows
    version 2        0        2         2             wait: 1 is missing
    answer at 3      0        2         3             wait: 1 and 3 are missing
    (time passes)                                     send 1 and 3 again
    version 1        2        -         3             accept 1, accept 2
    version 2        2        -         3             nothing: a repeat
    version 3        3        -         3             accept 3; now the answer may be used

Invariants
  1. A source's transactions are accepted in the order of their versions, none twice, none left out.
  2. An answer is used only when every transaction up to its version is accepted, and once, however often it comes.
  3. Whatever was heard of and is missing is asked for again, and again, until it is there; so is an unanswered query.
  4. A lost *last* notification is noticed by the heartbeat, and by nothing else.

Where every message gets through sooner or later if it is sent often enough, everything is accepted sooner or later and
every query answered: this is what paper 001 needs and does not say (PAPERS.md §4, erratum 3).

A gap is not asked for at once but when time has passed (`overdue`): on channels that reorder, most close by themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notified(Generic[T]):
    """A source reports a transaction, with its number."""

    source: str
    version: int
    transaction: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied(Generic[A]):
    """A source answers a query. `version` counts its transactions when it read the answer."""

    source: str
    version: int
    number: int
    answer: A


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """A source tells how many transactions it has committed. Its heartbeat."""

    source: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept(Generic[T]):
    """This transaction is the next one of its source."""

    source: str
    version: int
    transaction: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Use(Generic[A]):
    """All that this answer saw is known: it can be used."""

    source: str
    version: int
    number: int
    answer: A


@dataclass(frozen=True, slots=True, kw_only=True)
class SendAgain:
    """A source should send these transactions again."""

    source: str
    versions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAgain:
    """A query should be sent again: no answer has come."""

    source: str
    number: int


Arrival = Notified[Any] | Replied[Any] | Alive
Outcome = Accept[Any] | Use[Any]
Request = SendAgain | AskAgain


@dataclass(slots=True)
class _Channel(Generic[T, A]):
    """What is known of one source."""

    accepted: int = 0
    heard_of: int = 0
    early: dict[int, T] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    replies: dict[int, Replied[A]] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(v for v in range(self.accepted + 1, self.heard_of + 1) if v not in self.early)


class Acceptance(Generic[T, A]):
    """Decides what an arriving message means.

    >>> acceptance = Acceptance(["shop"])
    >>> acceptance.arrived(Notified(source="shop", version=2, transaction="b"))
    []
    >>> acceptance.overdue()
    [SendAgain(source='shop', versions=(1,))]
    >>> [o.transaction for o in acceptance.arrived(Notified(source="shop", version=1, transaction="a"))]
    ['a', 'b']
    """

    def __init__(self, sources: Iterable[str]) -> None:
        """Begin with nothing accepted of any source."""
        self._channels: dict[str, _Channel[T, A]] = {source: _Channel() for source in sources}

    def accepted(self, source: str) -> int:
        """Return the last version of a source that was accepted: the paper's highest-processing version."""
        return self._channels[source].accepted

    def heard_of(self, source: str) -> int:
        """Return the last version of a source that any message named."""
        return self._channels[source].heard_of

    @property
    def is_waiting(self) -> bool:
        """Whether some query has no answer that could be used."""
        return any(channel.asked for channel in self._channels.values())

    def asked(self, source: str, number: int) -> None:
        """Take note that a query was sent: its answer is awaited."""
        self._channels[source].asked.add(number)

    def arrived(self, message: Arrival) -> Sequence[Outcome]:
        """Take in a message, and return what can be accepted and what can be used now, in this order."""
        channel = self._channels[message.source]
        channel.heard_of = max(channel.heard_of, message.version)
        match message:
            case Notified():
                if message.version > channel.accepted:
                    channel.early.setdefault(message.version, message.transaction)
            case Replied():
                earlier = channel.replies.get(message.number)
                if message.number in channel.asked and (earlier is None or message.version < earlier.version):
                    channel.replies[message.number] = message
            case Alive():
                pass
        return [*_accepted(message.source, channel), *_usable(channel)]

    def overdue(self) -> Sequence[Request]:
        """Return what to ask for again when time has passed: every gap, and every query without an answer."""
        requests: list[Request] = []
        for source, channel in self._channels.items():
            if missing := channel.missing:
                requests.append(SendAgain(source=source, versions=missing))
            unanswered = sorted(channel.asked - channel.replies.keys())
            requests += [AskAgain(source=source, number=number) for number in unanswered]
        return requests


def _accepted(source: str, channel: _Channel[T, A]) -> list[Outcome]:
    """Take the transactions whose turn has come out of the early ones."""
    outcomes: list[Outcome] = []
    while (version := channel.accepted + 1) in channel.early:
        channel.accepted = version
        outcomes.append(Accept(source=source, version=version, transaction=channel.early.pop(version)))
    return outcomes


def _usable(channel: _Channel[T, A]) -> list[Outcome]:
    """Take the answers whose versions are known out of the waiting ones."""
    usable = [reply for _, reply in sorted(channel.replies.items()) if reply.version <= channel.accepted]
    for reply in usable:
        del channel.replies[reply.number]
        channel.asked.discard(reply.number)
    return [
        Use(source=reply.source, version=reply.version, number=reply.number, answer=reply.answer) for reply in usable
    ]
