"""The messages of `pgoutput` (protocols 1 and 3, text format), from bytes to values.

    transaction := Begin change* Commit | BeginPrepare change* Prepare
    change      := Relation | Type | Origin | Insert | Update | Delete | Truncate

What was prepared ends with a CommitPrepared or a RollbackPrepared, later, between two other transactions. Only a slot
with this option (two_phase) sends these. The others send a prepared transaction when it commits, like any other.

A Relation message comes before the first change of a relation in a connection and again whenever its columns changed.
A tuple is a list of column values: bytes as the type's output function printed them, or None for NULL. In the new
tuple of an update, `u` stands for "large and not changed"; under REPLICA IDENTITY FULL the old tuple has that value.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from struct import Struct

BEGIN, COMMIT, RELATION, INSERT, UPDATE, DELETE, TRUNCATE = (ord(letter) for letter in "BCRIUDT")
BEGIN_PREPARE, PREPARE, COMMIT_PREPARED, ROLLBACK_PREPARED = (ord(letter) for letter in "bPKr")
OLD_TUPLE = ord("O")

_TEXT, _NULL = ord("t"), ord("n")
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_BEGIN = Struct(">qqI")
_COMMIT = Struct(">Bqqq")
_BEGIN_PREPARE = Struct(">qqqI")
_COMMIT_PREPARED = Struct(">BqqqI")
_ROLLBACK_PREPARED = Struct(">BqqqqI")
_TRUNCATE = Struct(">IB")
_COLUMN_TYPE = Struct(">Ii")
unpack_oid = Struct(">I").unpack_from
_unpack_length = Struct(">I").unpack_from

Values = list[bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """A transaction begins: where its commit record starts, and the low half of its id."""

    commit_offset: int
    xid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMessage:
    """A transaction ends: where its commit record ends, and when it committed."""

    end_offset: int
    committed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginPrepare:
    """A transaction that was prepared begins: where its PREPARE record starts, and the low half of its id."""

    prepare_offset: int
    xid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPrepared:
    """A prepared transaction commits: where that record starts and ends, when, and the id it was prepared under."""

    commit_offset: int
    end_offset: int
    committed_at: datetime
    xid: int
    gid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WireColumn:
    """A column as the log sends it."""

    name: str
    type_oid: int
    modifier: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRelation:
    """A relation as the log sends it. `identity` is PostgreSQL's letter (f: full)."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[WireColumn, ...]


def parse_begin(message: bytes) -> Begin:
    """Read a Begin."""
    commit_offset, _, xid = _BEGIN.unpack_from(message, 1)
    return Begin(commit_offset=commit_offset, xid=xid)


def parse_commit(message: bytes) -> CommitMessage:
    """Read a Commit."""
    _, _, end_offset, microseconds = _COMMIT.unpack_from(message, 1)
    return CommitMessage(end_offset=end_offset, committed_at=_time(microseconds))


def parse_begin_prepare(message: bytes) -> BeginPrepare:
    """Read a BeginPrepare."""
    prepare_offset, _, _, xid = _BEGIN_PREPARE.unpack_from(message, 1)
    return BeginPrepare(prepare_offset=prepare_offset, xid=xid)


def parse_commit_prepared(message: bytes) -> CommitPrepared:
    """Read a CommitPrepared."""
    _, commit_offset, end_offset, microseconds, xid = _COMMIT_PREPARED.unpack_from(message, 1)
    gid, _ = _text(message, 1 + _COMMIT_PREPARED.size)
    return CommitPrepared(
        commit_offset=commit_offset, end_offset=end_offset, committed_at=_time(microseconds), xid=xid, gid=gid
    )


def parse_rollback_prepared(message: bytes) -> int:
    """Read a RollbackPrepared: the low half of the transaction's id."""
    xid: int = _ROLLBACK_PREPARED.unpack_from(message, 1)[-1]
    return xid


def parse_relation(message: bytes) -> WireRelation:
    """Read a Relation."""
    (oid,) = unpack_oid(message, 1)
    schema, at = _text(message, 5)
    name, at = _text(message, at)
    identity = chr(message[at])
    count = int.from_bytes(message[at + 1 : at + 3], "big")
    at += 3
    columns = []
    for _ in range(count):
        column, at = _text(message, at + 1)
        type_oid, modifier = _COLUMN_TYPE.unpack_from(message, at)
        at += 8
        columns.append(WireColumn(name=column, type_oid=type_oid, modifier=modifier))
    return WireRelation(oid=oid, schema=schema or "pg_catalog", name=name, identity=identity, columns=tuple(columns))


def parse_truncate(message: bytes) -> tuple[int, ...]:
    """Read a Truncate: the numbers of the relations that were emptied."""
    count, _ = _TRUNCATE.unpack_from(message, 1)
    return tuple(unpack_oid(message, 6 + 4 * number)[0] for number in range(count))


def parse_tuple(message: bytes, at: int, old: Values | None = None) -> tuple[Values, int]:
    """Read a tuple that starts there, taking unchanged values from the old one. Return it and where it ends.

    This runs once per row and its loop once per value: it is written for speed.
    """
    values: Values = []
    append = values.append
    unpack_length = _unpack_length
    width = (message[at] << 8) | message[at + 1]
    at += 2
    for _ in range(width):
        kind = message[at]
        if kind == _TEXT:
            start = at + 5
            at = start + unpack_length(message, at + 1)[0]
            append(message[start:at])
        elif kind == _NULL:
            append(None)
            at += 1
        else:
            assert old is not None, "an unchanged value comes with the old tuple"
            append(old[len(values)])
            at += 1
    return values, at


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _text(message: bytes, at: int) -> tuple[str, int]:
    end = message.index(0, at)
    return message[at:end].decode(), end + 1
