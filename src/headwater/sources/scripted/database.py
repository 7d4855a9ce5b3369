"""The server behind scripted sources: logs of transactions, slots that keep them, and whatever may happen to a server.

A transaction's number is its place in its log, from 1 on; it is its position and its identity, too. One may be in the
log and not be visible yet, as in databases where the two orders differ: a reader then shows others and not this one.

A database plays other kinds by its abilities, and by having one log or one for each relation. One that does not tell
every transaction tells and shows the states in which it was polled (`poll`): what came between two is a transaction.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from weakref import WeakValueDictionary

from headwater.errors import HeadwaterError, SourceUnavailable
from headwater.model.relation import Relation, RelationName
from headwater.model.transaction import SeenOfLogs, SeenUpTo
from headwater.sources.scripted.rows import Changes, Values
from headwater.sources.source import Abilities

SERVER = Abilities(
    shares_snapshots=True, exports_snapshots=False, reads_as_of=False, holds_log=True, tells_every_transaction=True
)
"""What a database can do unless another kind is played. Its snapshots are exported to other clients in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTransaction:
    """What one transaction did: the relations it emptied first, then its changes. And what it altered."""

    changes: Changes
    truncated: tuple[RelationName, ...] = ()
    altered: Mapping[RelationName, str] = field(default_factory=dict)
    gid: str | None = None
    log: str = ""

    @property
    def proof(self) -> bytes:
        """What tells it from another transaction of the same number."""
        said = [(str(name), sorted(map(repr, rows.items()))) for name, rows in sorted(self.changes.items())]
        return hashlib.sha256(repr((said, self.truncated, self.altered, self.gid)).encode()).digest()[:8]


@dataclass(slots=True, kw_only=True)
class ScriptedSlot:
    """How much of each log has been forgotten for one warehouse."""

    forgotten_to: dict[str, int]
    lost: str = ""


@dataclass(eq=False)
class ScriptedDatabase:
    """A database in memory. `commit` is what its users do. `fail`, `restart` and `restore` are what happens to it."""

    relations: tuple[Relation, ...]
    tells_from_start: bool = True
    """Whether a new slot tells the whole log; otherwise it begins where the log ends, as those of servers do."""
    transactions: list[ScriptedTransaction] = field(default_factory=list)
    """All that was committed, of all logs, in order."""
    slots: dict[str, ScriptedSlot] = field(default_factory=dict)
    history: str = "1"
    run: int = 1
    abilities: Abilities = SERVER
    has_log_per_relation: bool = False
    polls: list[int] = field(default_factory=lambda: [0])
    """After how many transactions the database was polled, if it does not tell every one."""
    deleted_to: dict[str, int] = field(default_factory=dict)
    """Up to where logs were deleted, by the log, if the database does not hold them for anybody."""
    changed: threading.Condition = field(default_factory=threading.Condition)
    """Held while anything here is read or changed. Every change notifies it."""
    followers: dict[str, object] = field(default_factory=dict)
    """The connections that follow now, by the name of the slot."""
    exported: set[str] = field(default_factory=set)
    """The names of the snapshots that other clients can join."""
    _hidden: set[tuple[str, int]] = field(default_factory=set)
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

    def log_of(self, relation: RelationName) -> str:
        """Return the log that tells of a relation."""
        return relation.name if self.has_log_per_relation else ""

    def logs(self, relations: Collection[RelationName]) -> tuple[str, ...]:
        """Return the logs that tell of some relations."""
        return tuple(dict.fromkeys(map(self.log_of, relations))) if self.has_log_per_relation else ("",)

    def log(self, name: str) -> list[ScriptedTransaction]:
        """Return the transactions of a log."""
        return [one for one in self.transactions if one.log == name] if self.has_log_per_relation else self.transactions

    def end(self, log: str) -> int:
        """Return how many transactions of a log can be sent and seen."""
        return len(self.log(log)) if self.abilities.tells_every_transaction else self.polls[-1]

    def poll(self) -> int:
        """Let the database be seen as it is now."""
        with self.changed:
            self.polls.append(len(self.transactions))
            self.changed.notify_all()
            return self.polls[-1]

    def commit(
        self,
        changes: Changes,
        *,
        truncated: Collection[RelationName] = (),
        altered: Mapping[RelationName, str] | None = None,
        gid: str | None = None,
        is_hidden: bool = False,
    ) -> int:
        """Commit a transaction, and return its number. A hidden one is in the log, and nobody sees it until `show`.

        Where each relation has a log, a transaction is of one relation.
        """
        altered = altered or {}
        [log] = {self.log_of(name) for name in (*changes, *truncated, *altered)} or {""}
        made = ScriptedTransaction(changes=changes, truncated=tuple(truncated), altered=altered, gid=gid, log=log)
        with self.changed:
            self.transactions.append(made)
            number = len(self.log(log))
            if is_hidden:
                self._hidden.add((log, number))
            self.changed.notify_all()
            return number

    def show(self, number: int, log: str = "") -> None:
        """Let readers see a transaction that was committed hidden."""
        with self.changed:
            self._hidden.discard((log, number))

    def seen(self, relations: Collection[RelationName], *, everything: bool = False) -> SeenUpTo | SeenOfLogs:
        """Return what a reader shows of relations now. With `everything`, hidden transactions have ended."""
        with self.changed:
            self.require_up()
            if everything:
                self._hidden.clear()
            return self.seen_upto({log: self.end(log) for log in self.logs(relations)})

    def seen_upto(self, counts: Mapping[str, int]) -> SeenUpTo | SeenOfLogs:
        """Return the sight of the first `counts` transactions of each log, without those that are hidden now."""
        by_log = {
            log: SeenUpTo(last=count, hidden=frozenset(number for name, number in self._hidden if name == log))
            for log, count in counts.items()
        }
        return SeenOfLogs(logs=tuple(sorted(by_log.items(), key=str))) if self.has_log_per_relation else by_log[""]

    def state(self, relation: RelationName, seen: SeenUpTo | SeenOfLogs) -> Counter[Values]:
        """Return the rows of a relation after the transactions that were seen."""
        rows: Counter[Values] = Counter()
        log = self.log_of(relation)
        for number, transaction in enumerate(self.log(log), 1):
            if not seen.sees(number, log):
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
        """End all connections and snapshots. The last transactions may be lost, if no slot has forgotten them."""
        with self.changed:
            kept = len(self.transactions) - lost
            del self.transactions[kept:]
            held = {log: len(self.log(log)) for log in self.logs([one.name for one in self.relations])}
            is_kept = [number <= held[log] for slot in self.slots.values() for log, number in slot.forgotten_to.items()]
            assert all(is_kept), "what a slot has forgotten is on disk"
            self._hidden = {(log, number) for log, number in self._hidden if number <= held[log]}
            self.run += 1
            self._disconnect()

    def restore(self, transactions: Sequence[ScriptedTransaction]) -> None:
        """Become another server, as one restored from a backup: with another history, under the same address."""
        with self.changed:
            self.history = str(int(self.history) + 1)
            self._replace(transactions)

    def begin_again(self, transactions: Sequence[ScriptedTransaction]) -> None:
        """Begin another log under the same name, as servers do whose logs are reset: only proofs tell them apart."""
        with self.changed:
            self._replace(transactions)

    def delete_log(self, upto: int, log: str = "") -> None:
        """Delete a log up to a transaction, as servers do that hold it for nobody."""
        with self.changed:
            self.deleted_to[log] = upto

    def _replace(self, transactions: Sequence[ScriptedTransaction]) -> None:
        self.transactions[:] = transactions
        self.run += 1
        self._disconnect()

    def _disconnect(self) -> None:
        self.followers.clear()
        self.changed.notify_all()


def disconnected(source: str) -> SourceUnavailable:
    """Return what a follower says whose connection has ended."""
    return SourceUnavailable(
        f'source "{source}" does not answer',
        code="HW-303",
        detail="the connection has ended",
        hint="it is tried again by itself",
    )
