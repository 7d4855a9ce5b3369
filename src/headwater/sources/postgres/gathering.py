"""From the messages of the log to captures of whole transactions.

Invariants:

1. A capture holds whole transactions only, in commit order; what has begun and not committed waits for the next one.
2. A transaction that ends at or before `after` is dropped: the source repeats what was not acknowledged.
3. A transaction that touched nothing we follow is no transaction to us.
4. A relation stops everything, by name, if a column that views read was lost or retyped, before one of its rows is read
   wrongly. A column that no view reads may come, go and change: it is NULL where it is not what it was. So is one
   that views read for the first time, in what was committed before it was there: they begin with a later snapshot.
   A partitioned relation stops everything if rows of it came or went that the log does not hold (`partitions`).
5. A prepared transaction is a transaction when its COMMIT PREPARED is read; until then its rows are kept aside
   (`prepared`). It is one even if it touched nothing of ours: its other parts may wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, assert_never

import pyarrow as pa

from headwater.errors import SourceRefused
from headwater.model.memory_budget import SPILL_BYTES
from headwater.model.position import Position
from headwater.model.relation import Column, ColumnUse, Relation, RelationName
from headwater.model.transaction import Capture, Transaction
from headwater.sources.postgres import messages
from headwater.sources.postgres.messages import (
    Begin,
    BeginPrepare,
    CommitMessage,
    CommitPrepared,
    Values,
    WireColumn,
    WireRelation,
)
from headwater.sources.postgres.partitions import Leaves, rows_unknown
from headwater.sources.postgres.prepared import Prepared, PreparedTransactions
from headwater.sources.postgres.row_buffer import RowBuffer
from headwater.sources.postgres.visibility import widen
from headwater.sources.spilled_rows import spilled

_UNDECODED_BYTES = 8 * 2**20
"""Messages of this length together are decoded: a small buffer, some ten times as large as Python values."""
_SMALL_BYTES = 2**20
"""Rows of a prepared transaction that are fewer are put aside in memory. Servers limit the number of them."""
_CHANGES = frozenset((messages.INSERT, messages.UPDATE, messages.DELETE))
Describe = Callable[[int, int], tuple[str | None, str]]
"""Says what a type number and modifier are: the Spark type (None: none holds it) and PostgreSQL's name for it."""
Route = tuple[RowBuffer, tuple[int | None, ...] | None]
"""Where rows of a table of the log go, and in which order their values are taken (None: NULL); None: as they come."""


class Partitioning(Protocol):
    """Says which tables of the log hold the rows of partitioned relations. See `partitions.Partitions`."""

    def leaves(self, name: RelationName) -> Leaves:
        """Return the tables that hold the rows of a relation. Empty for one that is not partitioned."""
        ...

    def roots(self, wire: WireRelation) -> tuple[RelationName, ...]:
        """Return the relations whose rows a table of the log holds, beside its own."""
        ...


class Gathering:
    """What one connection to the log has sent and nobody has taken yet."""

    def __init__(
        self,
        *,
        relations: Sequence[Relation],
        oids: Mapping[int, RelationName],
        after: Position,
        recent_xid: int,
        describe: Describe,
        partitions: Partitioning,
        described_at: int = 0,
        spill_bytes: int = SPILL_BYTES,
    ) -> None:
        """Start with nothing. `oids` are the numbers the relations have in the source's catalog now.

        The relations had their columns when the log ended at `described_at`. Rows beyond `spill_bytes` go to files.
        """
        self._buffers = {relation.name: RowBuffer(relation) for relation in relations}
        self._spill_bytes = spill_bytes
        self._held_bytes = 0
        self._undecoded_bytes = 0
        self._names = dict(oids)
        self._after = after
        self._recent_xid = recent_xid
        self._describe = describe
        self._partitions = partitions
        self._described_at = described_at
        self._by_oid: dict[int, tuple[Route, ...]] = {}
        self._wire_names: dict[int, str] = {}
        self._transactions: list[Transaction] = []
        self._truncated: dict[int, tuple[RelationName, ...]] = {}
        self._begun: Begin | BeginPrepare | None = None
        self._prepared = PreparedTransactions()
        self._repeated = False
        self._touched = False
        self.row_count = 0
        self.byte_count = 0
        """How long the messages of the rows are."""
        self.committed_to = after.offset
        self._steps: Mapping[int, Callable[[bytes], None]] = {
            messages.BEGIN: self._begin,
            messages.COMMIT: self._commit,
            messages.RELATION: self._lay_out,
            messages.TRUNCATE: self._truncate,
            messages.BEGIN_PREPARE: self._begin_prepare,
            messages.PREPARE: self._prepare,
            messages.COMMIT_PREPARED: self._commit_prepared,
            messages.ROLLBACK_PREPARED: self._roll_back_prepared,
        }

    @property
    def has_transactions(self) -> bool:
        """Whether there is a whole transaction to take."""
        return bool(self._transactions)

    def feed(self, message: bytes) -> None:
        """Take one message in."""
        kind = message[0]
        if kind in _CHANGES:
            routes = None if self._repeated else self._by_oid.get(messages.unpack_oid(message, 1)[0])
            if routes is not None:
                self._change(routes, kind, message)
        elif kind in self._steps:
            self._steps[kind](message)

    def may_forget(self, durable: int) -> int:
        """Return up to where the source may forget its log, when everything that ends up to `durable` is durable."""
        return self._prepared.may_forget(durable)

    def take(self) -> Capture:
        """Give out the whole transactions gathered so far."""
        count = len(self._transactions)
        tables = {name: buffer.take_before(count) for name, buffer in self._buffers.items()}
        capture = Capture(
            transactions=tuple(self._transactions),
            rows={name: table for name, table in tables.items() if table is not None},
            truncated={ordinal: names for ordinal, names in self._truncated.items() if ordinal < count},
        )
        self._transactions = []
        self._truncated = {ordinal - count: names for ordinal, names in self._truncated.items() if ordinal >= count}
        left = sum(map(len, self._buffers.values()))
        self.byte_count = self.byte_count * left // max(1, self.row_count)
        self._undecoded_bytes = min(self._undecoded_bytes, self.byte_count)
        self._held_bytes = sum(buffer.byte_count for buffer in self._buffers.values())
        self.row_count = left
        return capture

    def _change(self, routes: Sequence[Route], kind: int, message: bytes) -> None:
        old: Values | None = None
        new: Values | None = None
        if kind == messages.INSERT:
            new, _ = messages.parse_tuple(message, 6)
        else:
            if message[5] != messages.OLD_TUPLE:
                raise self._without_old_row(routes, messages.unpack_oid(message, 1)[0])
            old, at = messages.parse_tuple(message, 6)
            if kind == messages.UPDATE:
                new, _ = messages.parse_tuple(message, at + 1, old)
        self._touched = True
        self.byte_count += len(message)
        self._undecoded_bytes += len(message)
        ordinal = len(self._transactions)
        for buffer, order in routes:
            for values, count in ((old, -1), (new, 1)):
                if values is not None:
                    placed = values if order is None else [None if at is None else values[at] for at in order]
                    buffer.add(placed, ordinal, count)
                    self.row_count += 1
            # A buffer is full only when one transaction is large: smaller ones are taken before. See the follower.
            if buffer.is_full or self._undecoded_bytes >= _UNDECODED_BYTES:
                self._decode()

    def _decode(self) -> None:
        """Turn all rows into Arrow tables: small ones, which are held while there is room, and else go to files."""
        for buffer in self._buffers.values():
            self._held_bytes += buffer.close_segment(self._spill_bytes - self._held_bytes)
        self._undecoded_bytes = 0

    def _without_old_row(self, routes: Sequence[Route], oid: int) -> SourceRefused:
        """Return the error for a change that came without the old row."""
        name, table = routes[0][0].relation.name, self._wire_names[oid]
        if not self._partitions.leaves(name):
            return _changed(name, "a change of it came without the old row", _with_full_identity(name))
        return SourceRefused(
            f'a row of partition {table} of "{name}" was changed, and the log does not say what it was',
            code="HW-345",
            detail=f"{table} has no REPLICA IDENTITY FULL; a partition does not inherit it when it is made",
            hint=f"let the owner run: ALTER TABLE {table} REPLICA IDENTITY FULL;\n"
            f"then run `headwater teardown --source {name.source}` and `headwater run`: the source is read again",
        )

    def _begin(self, message: bytes) -> None:
        assert self._begun is None, "transactions do not overlap in the log"
        self._begun = begin = messages.parse_begin(message)
        self._repeated = begin.commit_offset < self._after.offset
        self._touched = False

    def _commit(self, message: bytes) -> None:
        assert self._begun is not None, "a commit follows a begin"
        begin, self._begun = self._begun, None
        commit = messages.parse_commit(message)
        self.committed_to = max(self.committed_to, commit.end_offset)
        self._recent_xid = widen(begin.xid, self._recent_xid)
        if self._touched and not self._repeated:
            self._add(commit)

    def _add(self, commit: CommitMessage | CommitPrepared) -> None:
        """Add the transaction that commits, with the id widened last."""
        position = Position(source=self._after.source, history=self._after.history, offset=commit.end_offset)
        gid = commit.gid if isinstance(commit, CommitPrepared) else None
        self._transactions.append(
            Transaction(position=position, identity=self._recent_xid, committed_at=commit.committed_at, gid=gid)
        )

    def _begin_prepare(self, message: bytes) -> None:
        assert self._begun is None, "transactions do not overlap in the log"
        self._begun = messages.parse_begin_prepare(message)
        self._repeated = False

    def _prepare(self, _: bytes) -> None:
        """Put aside what was gathered since the prepared transaction began."""
        assert isinstance(self._begun, BeginPrepare), "a prepare follows its begin"
        begin, self._begun = self._begun, None
        ordinal = len(self._transactions)
        taken = {name: buffer.take_from(ordinal) for name, buffer in self._buffers.items()}
        rows = {name: _put_aside(table) for name, table in taken.items() if table is not None}
        truncated = self._truncated.pop(ordinal, ())
        self._prepared.keep(begin.xid, Prepared(offset=begin.prepare_offset, rows=rows, truncated=truncated))
        self.row_count = sum(map(len, self._buffers.values()))

    def _commit_prepared(self, message: bytes) -> None:
        """Take up what was put aside, as the transaction that commits now."""
        commit = messages.parse_commit_prepared(message)
        prepared = self._prepared.commit(commit.xid, commit.end_offset)
        self.committed_to = max(self.committed_to, commit.end_offset)
        self._recent_xid = widen(commit.xid, self._recent_xid)
        if commit.commit_offset < self._after.offset:
            return
        ordinal = len(self._transactions)
        if prepared is not None:
            for name, table in prepared.rows.items():
                self._buffers[name].add_table(table, ordinal)
                self.row_count += table.num_rows
            if prepared.truncated:
                self._truncated[ordinal] = prepared.truncated
        self._add(commit)

    def _roll_back_prepared(self, message: bytes) -> None:
        self._prepared.roll_back(messages.parse_rollback_prepared(message))

    def _truncate(self, message: bytes) -> None:
        if self._repeated:
            return
        emptied = set(messages.parse_truncate(message))
        for name in dict.fromkeys(buffer.relation.name for oid in emptied for buffer, _ in self._by_oid.get(oid, ())):
            leaves = self._partitions.leaves(name)
            if not (emptied.issuperset(leaves) or any(self._names.get(oid) == name for oid in emptied)):
                one = next(self._wire_names[oid] for oid in emptied if oid in leaves)
                raise rows_unknown(name, f"partition {one} was truncated alone; the log does not tell of which rows")
            ordinal = len(self._transactions)
            self._buffers[name].forget_from(ordinal)
            names = self._truncated.get(ordinal, ())
            self._truncated[ordinal] = (*(other for other in names if other != name), name)
            self._touched = True

    def _lay_out(self, message: bytes) -> None:
        wire: WireRelation = messages.parse_relation(message)
        name = RelationName(source=self._after.source, schema=wire.schema, name=wire.name)
        known_as = self._names.get(wire.oid)
        if known_as is not None and known_as != name:
            raise _changed(
                known_as, f'it is now called "{name}"', f"rename it, or change the views; then {_read_anew(name)}"
            )
        routes: list[Route] = []
        buffer = self._buffers.get(name)
        if buffer is not None:
            if known_as is None:
                raise _changed(name, "it was dropped and made again", _read_anew(name))
            if wire.identity != "f":
                raise _changed(name, "its REPLICA IDENTITY is no longer FULL", _with_full_identity(name))
            routes.append(self._route(buffer, wire))
        routes += [self._route(self._buffers[root], wire) for root in self._partitions.roots(wire)]
        if routes:
            self._by_oid[wire.oid] = tuple(routes)
            self._wire_names[wire.oid] = f"{wire.schema}.{wire.name}"

    def _route(self, buffer: RowBuffer, wire: WireRelation) -> Route:
        """Return how rows of a table of the log get into a buffer, of which they must have the columns that matter.

        The leaves of a partitioned relation may each have another order of columns: all are brought into one.
        """
        relation = buffer.relation
        sent = {column.name: column for column in wire.columns}
        without = set()
        for column in relation.columns:
            refusal = self._refusal(relation.name, column, sent.get(column.name))
            if refusal is not None and self._matters(column):
                raise refusal
            without |= {column.name} if refusal is not None else set()
        columns = tuple(column.name for column in wire.columns)
        if not self._partitions.leaves(relation.name):
            buffer.lay_out(columns, without)
            return buffer, None
        buffer.lay_out(relation.column_names)
        return buffer, tuple(None if one in without else columns.index(one) for one in relation.column_names)

    def _refusal(self, name: RelationName, column: Column, sent: WireColumn | None) -> SourceRefused | None:
        """Return why a column is not what it was. None if it is."""
        if sent is None:
            hint = (
                "change or remove the views that read it, then run again; or put the column back: then "
                + _read_anew(name)
            )
            return _changed(name, f'column "{column.name}" ({column.native}) is gone', hint)
        spark, native = self._describe(sent.type_oid, sent.modifier)
        if spark != column.type or not _prints_alike(column.native, native):
            return _changed(name, f'column "{column.name}" was {column.native} and is now {native}', _read_anew(name))
        return None

    def _matters(self, column: Column) -> bool:
        """Tell whether a view reads the column in the current transaction."""
        match column.use:
            case ColumnUse.READ:
                return True
            case ColumnUse.FIRST_READ:
                return self._begun is None or _end(self._begun) >= self._described_at
            case ColumnUse.UNREAD:
                return False
        assert_never(column.use)


def _put_aside(rows: pa.Table) -> pa.Table:
    """Return rows that may wait for long, in a file if they are many."""
    return rows if rows.nbytes < _SMALL_BYTES else spilled(rows.schema, [rows])


def _prints_alike(before: str, after: str) -> bool:
    """Tell whether a column may turn from one type into the other without any stored row changing.

    >>> _prints_alike("character varying(10)", "text"), _prints_alike("text", "uuid")
    (True, False)
    """
    if before == after:
        return True
    shorter, longer = _text_length(before), _text_length(after)
    return shorter is not None and longer is not None and shorter <= longer


def _text_length(native: str) -> float | None:
    if native in ("text", "character varying"):
        return float("inf")
    inside = native.removeprefix("character varying(").removesuffix(")")
    return float(inside) if inside != native and inside.isdigit() else None


def _end(begun: Begin | BeginPrepare) -> int:
    return begun.commit_offset if isinstance(begun, Begin) else begun.prepare_offset


def _changed(name: RelationName, detail: str, hint: str) -> SourceRefused:
    return SourceRefused(f'relation "{name}" changed its shape at the source', code="HW-331", detail=detail, hint=hint)


def _read_anew(name: RelationName) -> str:
    return (
        f"`headwater teardown --source {name.source}` and `headwater run` read this source again, with its views; "
        "those of other sources go on"
    )


def _with_full_identity(name: RelationName) -> str:
    return f'run ALTER TABLE "{name.schema}"."{name.name}" REPLICA IDENTITY FULL; then {_read_anew(name)}'
