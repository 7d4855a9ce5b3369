"""From the messages of the log to captures of whole transactions.

Invariants:

1. A capture holds whole transactions only, in commit order; what has begun and not committed waits for the next one.
2. A transaction that ends at or before `after` is dropped: the source repeats what was not acknowledged.
3. A transaction that touched nothing we follow is no transaction to us.
4. A relation stops everything, by name, if a column that views read was lost or retyped, before one of its rows is read
   wrongly. A column that no view reads may come, go and change: it is NULL where it is not what it was. So is one
   that views read for the first time, in what was committed before it was there: they begin with a later snapshot.
5. A prepared transaction is a transaction when its COMMIT PREPARED is read; until then its rows are kept aside
   (`prepared`). It is one even if it touched nothing of ours: its other parts may wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from headwater.errors import SourceRefused
from headwater.position import Position
from headwater.relation import Column, ColumnUse, Relation, RelationName
from headwater.sources.postgres import messages
from headwater.sources.postgres.messages import Begin, BeginPrepare, Commit, CommitPrepared, WireColumn, WireRelation
from headwater.sources.postgres.prepared import Prepared, PreparedTransactions
from headwater.sources.postgres.row_buffer import RowBuffer
from headwater.sources.postgres.visibility import widen
from headwater.transaction import Capture, Transaction

SPILL_ROWS = 200_000
_CHANGES = frozenset((messages.INSERT, messages.UPDATE, messages.DELETE))
Describe = Callable[[int, int], tuple[str | None, str]]
"""Says what a type number and modifier are: the Spark type (None: none holds it) and PostgreSQL's name for it."""


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
        described_at: int = 0,
    ) -> None:
        """Start with nothing; `oids` are the numbers the relations have in the source's catalog now.

        The relations had their columns when the log ended at `described_at`.
        """
        self._buffers = {relation.name: RowBuffer(relation) for relation in relations}
        self._names = dict(oids)
        self._after = after
        self._recent_xid = recent_xid
        self._describe = describe
        self._described_at = described_at
        self._by_oid: dict[int, RowBuffer] = {}
        self._transactions: list[Transaction] = []
        self._truncated: dict[int, tuple[RelationName, ...]] = {}
        self._begun: Begin | BeginPrepare | None = None
        self._prepared = PreparedTransactions()
        self._repeated = False
        self._touched = False
        self.row_count = 0
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
            buffer = None if self._repeated else self._by_oid.get(messages.unpack_oid(message, 1)[0])
            if buffer is not None:
                self._change(buffer, kind, message)
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
        self.row_count = sum(map(len, self._buffers.values()))
        return capture

    def _change(self, buffer: RowBuffer, kind: int, message: bytes) -> None:
        ordinal = len(self._transactions)
        if kind == messages.INSERT:
            values, _ = messages.parse_tuple(message, 6)
            buffer.add(values, ordinal, 1)
            self.row_count += 1
        else:
            if message[5] != messages.OLD_TUPLE:
                detail = "a change of it, or of a partition of it, came without the old row"
                raise _changed(buffer.relation.name, detail, _with_full_identity(buffer.relation.name))
            old, at = messages.parse_tuple(message, 6)
            buffer.add(old, ordinal, -1)
            self.row_count += 1
            if kind == messages.UPDATE:
                new, _ = messages.parse_tuple(message, at + 1, old)
                buffer.add(new, ordinal, 1)
                self.row_count += 1
        self._touched = True
        # A buffer is full only when one transaction is large: smaller ones are taken long before. See the follower.
        if buffer.is_full:
            buffer.close_segment(on_disk=self.row_count > SPILL_ROWS)

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

    def _add(self, commit: Commit | CommitPrepared) -> None:
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
        rows = {name: table for name, table in taken.items() if table is not None}
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
        ordinal = len(self._transactions)
        for oid in messages.parse_truncate(message):
            if (buffer := self._by_oid.get(oid)) is None:
                continue
            buffer.forget_from(ordinal)
            names = self._truncated.get(ordinal, ())
            self._truncated[ordinal] = (*(name for name in names if name != buffer.relation.name), buffer.relation.name)
            self._touched = True

    def _lay_out(self, message: bytes) -> None:
        wire: WireRelation = messages.parse_relation(message)
        name = RelationName(source=self._after.source, schema=wire.schema, name=wire.name)
        known_as = self._names.get(wire.oid)
        if known_as is not None and known_as != name:
            raise _changed(
                known_as, f'it is now called "{name}"', f"rename it, or change the views; then {_read_anew(name)}"
            )
        buffer = self._buffers.get(name)
        if buffer is None:
            return
        if known_as is None:
            raise _changed(name, "it was dropped and made again", _read_anew(name))
        if wire.identity != "f":
            raise _changed(name, "its REPLICA IDENTITY is no longer FULL", _with_full_identity(name))
        sent = {column.name: column for column in wire.columns}
        without = set()
        for column in buffer.relation.columns:
            refusal = self._refusal(name, column, sent.get(column.name))
            if refusal is not None and self._matters(column):
                raise refusal
            without |= {column.name} if refusal is not None else set()
        buffer.lay_out(tuple(column.name for column in wire.columns), without)
        self._by_oid[wire.oid] = buffer

    def _refusal(self, name: RelationName, column: Column, sent: WireColumn | None) -> SourceRefused | None:
        """Return why a column is not what it was; None if it is."""
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
        """Tell whether a view reads the column in the transaction at hand."""
        match column.use:
            case ColumnUse.READ:
                return True
            case ColumnUse.FIRST_READ:
                return self._begun is None or _end(self._begun) >= self._described_at
            case ColumnUse.UNREAD:
                return False
        assert_never(column.use)


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
