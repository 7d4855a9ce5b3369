"""A source in memory that commits what it is told to, for proofs and tests that need exact transactions and no server.

Its log is the list of its transactions. A position is how many of them there are, and so is what a snapshot saw, so a
snapshot shows a prefix of the log.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Self, TypeAlias

import pyarrow as pa

from headwater.deltas.extent import Remainder
from headwater.position import Position
from headwater.relation import COUNT, Relation, RelationName
from headwater.sources.measure import ColumnMeasure, RelationMeasure, SourceMeasure
from headwater.sources.source import Chunk, Inspection, ProjectSlots, SlotState, TornDown
from headwater.transaction import ORDINAL, Capture, SeenTransactions, Transaction

Values: TypeAlias = tuple[object, ...]
Changes: TypeAlias = Mapping[RelationName, Mapping[Values, int]]
"""The signed rows of a transaction, by relation."""

_HISTORY = "scripted"
_RUN = "1"
_CAPTURE_LENGTH = 500
_BYTES_PER_VALUE = 8.0


@dataclass
class ScriptedSource:
    """See `headwater.sources.source.Source`; `commit` is what a database's users would do."""

    name: str
    relations: tuple[Relation, ...]
    transactions: list[Changes] = field(default_factory=list)
    made: set[str] = field(default_factory=set)
    """The slots that were made; the log is never forgotten, so they keep nothing."""
    _committed: threading.Condition = field(default_factory=threading.Condition)

    def commit(self, changes: Changes) -> Position:
        """Commit a transaction, and return where it ends in the log."""
        with self._committed:
            self.transactions.append(changes)
            self._committed.notify_all()
            return self.position(len(self.transactions))

    def position(self, count: int) -> Position:
        """Return the position after so many transactions."""
        return Position(source=self.name, history=_HISTORY, offset=count)

    def state(self, relation: RelationName, count: int) -> Counter[Values]:
        """Return the rows of a relation after so many transactions."""
        rows: Counter[Values] = Counter()
        for changes in islice(self.transactions, count):
            for row, times in changes.get(relation, {}).items():
                rows[row] += times
                assert rows[row] >= 0, f"a transaction takes away what is not there: {row} of {relation}"
        return rows

    def wait(self, after: int, timeout_seconds: float) -> list[Changes]:
        """Return some transactions after the first `after`; none if none came in that time."""
        with self._committed:
            self._committed.wait_for(lambda: len(self.transactions) > after, timeout_seconds)
            return self.transactions[after : after + _CAPTURE_LENGTH]

    def inspect(self, names: Sequence[RelationName]) -> Inspection:
        """Describe relations; nothing is ever missing."""
        known = {relation.name: relation for relation in self.relations}
        return Inspection(
            relations=tuple(known[name] for name in names),
            owner_sql=(),
            may_run_owner_sql=True,
        )

    def slots(self) -> ProjectSlots:
        """Return the slots that were made."""
        start = self.position(0)
        present = {name: SlotState(name=name, forgotten_to=start, is_in_use=False, held_bytes=0) for name in self.made}
        return ProjectSlots(present=present, former=self.name)

    def new_slot(self) -> str:
        """Return a name for another slot."""
        return f"{self.name}_{len(self.made)}"

    def prepare(self, relations: Sequence[RelationName], slot: str, *, is_new: bool) -> Position:
        """Return the position where the log starts: all of it is there."""
        del relations, is_new
        self.made.add(slot)
        return self.position(0)

    def follow(self, relations: Sequence[Relation], slot: str, held_to: Position | None) -> ScriptedFollower:
        """Open the log after a position."""
        del slot
        return ScriptedFollower(source=self, relations=tuple(relations), read=0 if held_to is None else held_to.offset)

    def peek(self, relations: Sequence[Relation], slot: str, held_to: Position | None) -> Capture | None:
        """Return the transactions after a position."""
        return self.follow(relations, slot, held_to).next_capture(0.0)

    def snapshot(self, *, bootstrap: bool = False) -> ScriptedSnapshot:
        """Open a snapshot of what is committed."""
        del bootstrap
        return ScriptedSnapshot(source=self, count=len(self.transactions))

    def measure(self, relations: Sequence[Relation]) -> SourceMeasure:
        """Say how many rows relations have; asking costs nothing."""
        count = len(self.transactions)
        sizes = {relation.name: float(self.state(relation.name, count).total()) for relation in relations}
        return SourceMeasure(
            relations={
                relation.name: RelationMeasure(
                    rows=sizes[relation.name],
                    columns={
                        name: ColumnMeasure(width=_BYTES_PER_VALUE, distinct=max(sizes[relation.name], 1.0))
                        for name in relation.column_names
                    },
                )
                for relation in relations
            },
            block_bytes=8192,
            trip_seconds=0.0,
            byte_seconds=0.0,
            block_seconds=0.0,
        )

    def teardown(self, slot: str | None, held_to: Position | None) -> TornDown:
        """Drop a slot."""
        del held_to
        dropped = () if slot not in self.made else (f"slot {slot}",)
        self.made -= {slot}
        return TornDown(dropped=dropped, left=tuple(self.slots().present.values()))


@dataclass
class ScriptedFollower:
    """See `headwater.sources.source.Follower`; `read` transactions have been returned."""

    source: ScriptedSource
    relations: tuple[Relation, ...]
    read: int

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        """Return the next transactions, or None when none came in that time."""
        found = self.source.wait(self.read, timeout_seconds)
        if not found:
            return None
        first = self.read + 1
        self.read += len(found)
        return Capture(
            transactions=tuple(
                Transaction(
                    position=self.source.position(number),
                    identity=number,
                    committed_at=datetime.fromtimestamp(number, UTC),
                )
                for number in range(first, first + len(found))
            ),
            rows={
                relation.name: table for relation in self.relations if (table := _signed_rows(relation, found)).num_rows
            },
        )

    def followed_to(self) -> Position:
        """Return how far the log has been returned."""
        return self.source.position(self.read)

    def log_end(self) -> Position:
        """Return where the log ends."""
        return self.source.position(len(self.source.transactions))

    def acknowledge(self, position: Position) -> None:
        """Do nothing: the log is never forgotten."""

    def hasten(self, position: Position) -> None:
        """Do nothing: transactions are returned as soon as they are committed."""

    def keep_alive(self) -> None:
        """Do nothing: nobody waits for us."""

    def close(self) -> None:
        """Do nothing: there is no connection."""


@dataclass
class ScriptedSnapshot:
    """See `headwater.sources.source.Snapshot`; it shows the first `count` transactions."""

    source: ScriptedSource
    count: int
    server_run: str = _RUN

    @property
    def seen(self) -> SeenTransactions:
        """The transactions that it shows."""
        return SeenTransactions(xmin=self.count + 1, xmax=self.count + 1, running=frozenset())

    @property
    def position(self) -> Position:
        """Where the last of them ends."""
        return self.source.position(self.count)

    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows whose `columns` equal some row of `keys`; of all without columns."""
        rows = self.source.state(relation.name, self.count)
        if columns:
            sought = set(zip(*(keys.column(place).to_pylist() for place in range(len(columns))), strict=True))
            places = [relation.column_names.index(name) for name in columns]
            rows = Counter({row: n for row, n in rows.items() if tuple(row[place] for place in places) in sought})
        return _plain_rows(relation, rows).select(list(wanted))

    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        """Return the whole relation as one chunk."""
        del relation, rows_per_chunk
        return (Chunk(number=0),)

    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> Iterator[pa.Table]:
        """Yield the wanted columns of the relation's rows."""
        del chunk, rows
        yield _plain_rows(relation, self.source.state(relation.name, self.count)).select(list(wanted))

    def is_valid(self) -> bool:
        """Return True: the source never restarts."""
        return True

    def __enter__(self) -> Self:
        """Return it; there is nothing to open."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing; there is nothing to close."""


def _plain_rows(relation: Relation, rows: Mapping[Values, int]) -> pa.Table:
    return table_of(relation, [row for row, times in rows.items() for _ in range(times)])


def table_of(relation: Relation, rows: Sequence[Values]) -> pa.Table:
    """Return rows of a relation as an Arrow table."""
    columns = zip(*rows, strict=True) if rows else [()] * len(relation.columns)
    schema = relation.arrow_schema()
    arrays = [pa.array(values, one.type) for values, one in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _signed_rows(relation: Relation, transactions: Sequence[Changes]) -> pa.Table:
    """Return what transactions did to a relation, rows that went before rows that came, one line per copy."""
    lines = [
        (row, ordinal, 1 if times > 0 else -1)
        for ordinal, changes in enumerate(transactions)
        for row, times in sorted(changes.get(relation.name, {}).items(), key=lambda one: one[1])
        for _ in range(abs(times))
    ]
    table = table_of(relation, [row for row, _, _ in lines])
    ordinals = pa.array([ordinal for _, ordinal, _ in lines], pa.int32())
    signs = pa.array([sign for _, _, sign in lines], pa.int64())
    return table.append_column(ORDINAL, ordinals).append_column(COUNT, signs)
