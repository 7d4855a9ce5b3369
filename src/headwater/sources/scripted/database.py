"""The server behind scripted sources: a log of transactions, slots that keep it, and whatever may happen to a server.

A transaction's number is its place in the log, from 1 on; it is its position and its identity, too. One may be in the
log and not be visible yet, as in databases where the two orders differ: a snapshot then shows others and not this one.
"""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import ClassVar
from weakref import WeakValueDictionary

from headwater.errors import HeadwaterError, SourceUnavailable
from headwater.model.relation import Relation, RelationName
from headwater.model.transaction import SeenUpTo
from headwater.sources.scripted.rows import Changes, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTransaction:
    """What one transaction did: the relations it emptied first, then its changes."""

    changes: Changes
    truncated: tuple[RelationName, ...] = ()
    gid: str | None = None


@dataclass(slots=True, kw_only=True)
class ScriptedSlot:
    """How much of the log has been forgotten for one warehouse, and the connection that follows by it now."""

    forgotten_to: int
    follower: object | None = None
    lost: str = ""


@dataclass(eq=False)
class ScriptedDatabase:
    """A database in memory. `commit` is what its users do; `fail`, `restart` and `restore` are what happens to it."""

    relations: tuple[Relation, ...]
    tells_from_start: bool = True
    """Whether a new slot tells the whole log; otherwise it begins where the log ends, as those of servers do."""
    transactions: list[ScriptedTransaction] = field(default_factory=list)
    slots: dict[str, ScriptedSlot] = field(default_factory=dict)
    history: str = "1"
    run: int = 1
    changed: threading.Condition = field(default_factory=threading.Condition)
    """Held while anything here is read or changed; told of every change."""
    _hidden: set[int] = field(default_factory=set)
    _failure: HeadwaterError | None = None
    _published: ClassVar[WeakValueDictionary[str, ScriptedDatabase]] = WeakValueDictionary()

    def publish(self) -> str:
        """Return a URL by which sources find this database, as long as it is there, in this process."""
        name = secrets.token_hex(4)
        self._published[name] = self
        return f"scripted://{name}"

    @classmethod
    def find(cls, name: str) -> ScriptedDatabase | None:
        """Return the database that was published under a name."""
        return cls._published.get(name)

    def commit(
        self,
        changes: Changes,
        *,
        truncated: Collection[RelationName] = (),
        gid: str | None = None,
        is_hidden: bool = False,
    ) -> int:
        """Commit a transaction, and return its number. A hidden one is in the log, and nobody sees it until `show`."""
        with self.changed:
            self.transactions.append(ScriptedTransaction(changes=changes, truncated=tuple(truncated), gid=gid))
            if is_hidden:
                self._hidden.add(len(self.transactions))
            self.changed.notify_all()
            return len(self.transactions)

    def show(self, number: int) -> None:
        """Let snapshots see a transaction that was committed hidden."""
        with self.changed:
            self._hidden.discard(number)

    def seen(self, *, everything: bool = False) -> SeenUpTo:
        """Return what a snapshot shows that is taken now; with `everything`, hidden transactions have ended."""
        with self.changed:
            self.require_up()
            if everything:
                self._hidden.clear()
            return SeenUpTo(last=len(self.transactions), hidden=frozenset(self._hidden))

    def state(self, relation: RelationName, seen: SeenUpTo) -> Counter[Values]:
        """Return the rows of a relation after the transactions that were seen."""
        rows: Counter[Values] = Counter()
        for number, transaction in enumerate(islice(self.transactions, seen.last), 1):
            if not seen.sees(number):
                continue
            if relation in transaction.truncated:
                rows.clear()
            for row, times in transaction.changes.get(relation, {}).items():
                rows[row] += times
        assert all(times >= 0 for times in rows.values()), f"a transaction takes away what is not there: {relation}"
        return +rows

    def require_up(self) -> None:
        """Raise what is wrong with the database now, if anything is."""
        if self._failure is not None:
            raise self._failure

    def fail(self, error: HeadwaterError) -> None:
        """Answer everything with an error from now on."""
        with self.changed:
            self._failure = error
            self._disconnect()

    def recover(self) -> None:
        """Answer again."""
        with self.changed:
            self._failure = None

    def disconnect(self) -> None:
        """End all connections to the log, as a network does."""
        with self.changed:
            self._disconnect()

    def restart(self, *, lost: int = 0) -> None:
        """End all connections and snapshots; the last transactions may be lost, as far as no slot has told them."""
        with self.changed:
            kept = len(self.transactions) - lost
            assert all(slot.forgotten_to <= kept for slot in self.slots.values()), "what was told is on disk"
            del self.transactions[kept:]
            self._hidden = {number for number in self._hidden if number <= kept}
            self.run += 1
            self._disconnect()

    def restore(self, transactions: Sequence[ScriptedTransaction]) -> None:
        """Become another server, as one restored from a backup: with another history, under the same address."""
        with self.changed:
            self.transactions[:] = transactions
            self.history = str(int(self.history) + 1)
            self.run += 1
            self._disconnect()

    def _disconnect(self) -> None:
        for slot in self.slots.values():
            slot.follower = None
        self.changed.notify_all()


def disconnected(source: str) -> SourceUnavailable:
    """Return what a follower says whose connection has ended."""
    return SourceUnavailable(
        f'source "{source}" does not answer',
        code="HW-303",
        detail="the connection has ended",
        hint="it is tried again by itself",
    )
