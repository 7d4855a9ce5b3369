"""One consistent moment of a PostgreSQL database, open for reading by several threads at once.

The first connection exports its snapshot; further ones, opened when two threads read at once, import it, and so do
other processes. The position is read after the snapshot was taken, in the same statement: whatever the snapshot shows
was logged before that. Servers number their exported snapshots alike, so who joins one makes sure of the server.

A table that is rewritten (ALTER TABLE … TYPE, TRUNCATE) looks empty to older snapshots. Our snapshot knows which file
the table had; once we have read the table, our lock keeps others from rewriting it. So if it has that file still, after
it was read, what was read is what the snapshot shows.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa
from psycopg import sql

from headwater.deltas.extent import Remainder
from headwater.errors import HeadwaterError, SourceRefused, SourceUnavailable
from headwater.model.position import LSN, Position, Positions, by_log
from headwater.model.relation import Relation, RelationName
from headwater.sources.postgres.chunking import chunk_query, divide
from headwater.sources.postgres.connect import Address, Connection, ConnectionPool
from headwater.sources.postgres.copying import copy_tables
from headwater.sources.postgres.probing import probe_query
from headwater.sources.postgres.visibility import SeenTransactions, parse_snapshot
from headwater.sources.source import Chunk, LogView

HISTORY_SQL = (
    "(SELECT system_identifier FROM pg_control_system())::text || ':'"
    " || ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int"
)
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
_REWRITTEN = """
SELECT EXISTS (
    SELECT FROM unnest(%s::text[], %s::text[]) AS read(schema, name)
    JOIN pg_namespace n ON n.nspname = read.schema JOIN pg_class r ON r.relnamespace = n.oid AND r.relname = read.name
    JOIN pg_class c ON c.oid = r.oid OR c.oid IN (SELECT relid FROM pg_partition_tree(r.oid))
    WHERE c.relfilenode <> coalesce(pg_relation_filenode(c.oid), 0))
"""
"""Whether tables have other files now than in the snapshot, in which `pg_class` is read; the function looks past it."""
_SERVER = f"{HISTORY_SQL}, pg_postmaster_start_time()::text"
_EXPORT = (
    f"{_BEGIN}SELECT pg_current_snapshot()::text, pg_export_snapshot(), pg_current_wal_insert_lsn()::text, {_SERVER}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """What a snapshot shows (as PostgreSQL prints it), the name that it is exported by, and where it was taken."""

    shown: str
    exported: str
    position: Position
    started_at: str
    """When the server started."""

    def written(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        history, offset = self.position.history, self.position.offset
        server = {"history": history, "started_at": self.started_at}
        return {"shown": self.shown, "exported": self.exported, "offset": offset, **server}

    @classmethod
    def read(cls, source: str, said: Mapping[str, Any]) -> Self:
        """Return what was written."""
        position = Position(source=source, history=said["history"], offset=said["offset"])
        return cls(shown=said["shown"], exported=said["exported"], position=position, started_at=said["started_at"])


@dataclass(slots=True)
class _Reader:
    """A connection inside the snapshot, and the statement timeout it has now."""

    connection: Connection
    timeout_seconds: float


class PostgresSnapshot:
    """See `headwater.sources.source.Snapshot`. It is its own `headwater.sources.source.Reader`."""

    def __init__(
        self,
        moment: _Moment,
        connection: Connection,
        *,
        address: Address,
        pool: ConnectionPool,
        probe_timeout_seconds: float,
        connection_limit: int,
    ) -> None:
        """Wrap a connection that shows a moment. Use `take` or `join`."""
        self._moment = moment
        self._address = address
        self._pool = pool
        self._probe_timeout_seconds = probe_timeout_seconds
        self._seen = parse_snapshot(moment.shown)
        self._first = _Reader(connection=connection, timeout_seconds=0.0)
        self._free = [self._first]
        self._broken = False
        self._closed = False
        self._probed: set[RelationName] = set()
        self._locked: set[RelationName] = set()
        """Relations that were read, and had not been rewritten then; our locks keep them so until we close."""
        self._lock = threading.Lock()
        self._room = threading.Semaphore(connection_limit)

    @classmethod
    def take(
        cls, *, address: Address, pool: ConnectionPool, probe_timeout_seconds: float, connection_limit: int
    ) -> Self:
        """Take a snapshot of now. At most `connection_limit` connections read it at once."""
        connection, (shown, exported, offset, history, started_at) = pool.begin(_EXPORT)
        position = Position(source=address.source, history=history, offset=LSN.parse(offset))
        return cls(
            _Moment(shown=shown, exported=exported, position=position, started_at=started_at),
            connection,
            address=address,
            pool=pool,
            probe_timeout_seconds=probe_timeout_seconds,
            connection_limit=connection_limit,
        )

    @classmethod
    def join(
        cls, said: Mapping[str, Any], *, address: Address, pool: ConnectionPool, probe_timeout_seconds: float
    ) -> Self:
        """Join the snapshot that another process has exported, by one connection."""
        moment = _Moment.read(address.source, said)
        connection, found = _import(address, pool, moment.exported)
        if found != (moment.shown, moment.position.history, moment.started_at):
            connection.close()
            raise _gone(address, "the address leads to another server now, or the server was restarted")
        return cls(
            moment,
            connection,
            address=address,
            pool=pool,
            probe_timeout_seconds=probe_timeout_seconds,
            connection_limit=1,
        )

    @property
    def seen(self) -> SeenTransactions:
        """Which transactions this snapshot shows."""
        return self._seen

    @property
    def position(self) -> Position:
        """Every transaction this snapshot shows commits at or before this position of the one log."""
        return self._moment.position

    @property
    def positions(self) -> Positions:
        """The position, by its log."""
        return by_log([self._moment.position])

    @property
    def token(self) -> str:
        """When the server started that this was taken on."""
        return self._moment.started_at

    def exported(self) -> Mapping[str, Any]:
        """Return what `PostgresSource.join` is given in another process while this is open."""
        return self._moment.written()

    @contextlib.contextmanager
    def reader(self) -> Iterator[Self]:
        """Lend the snapshot itself: all its connections show the same, and each question takes one of them."""
        yield self

    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows whose `columns` equal some row of `keys`."""
        empty = relation.arrow_schema(wanted).empty_table()
        if columns and keys.num_rows == 0:
            return empty
        query = probe_query(relation, wanted, columns, keys)
        with self._reader(self._probe_timeout_seconds) as connection:
            tables = list(copy_tables(connection, query, relation, wanted))
            self._probed.add(relation.name)
        return pa.concat_tables(tables).combine_chunks() if tables else empty

    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        """Divide a relation into chunks that together hold every row exactly once."""
        with self._reader(0.0) as connection:
            return divide(connection, relation, rows_per_chunk)

    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> Iterator[pa.Table]:
        """Yield the wanted columns of a chunk's rows, in tables small enough to hold in memory."""
        with self._reader(0.0) as connection:
            yield from copy_tables(connection, chunk_query(relation, wanted, chunk, rows), relation, wanted)
            if not self._are_as_they_were(connection, {relation.name}):
                raise SourceUnavailable(
                    f'relation "{relation.name}" was rewritten while it was read',
                    code="HW-339",
                    detail="a table that is rewritten looks empty to who began to read before",
                    hint="it is read again by itself",
                )

    def _are_as_they_were(self, connection: Connection, read: Collection[RelationName]) -> bool:
        """Tell whether none of these relations, which were read, has been rewritten since the snapshot was taken."""
        names = [name for name in read if name not in self._locked]
        if names:
            values = ([name.schema for name in names], [name.name for name in names])
            if connection.execute(_REWRITTEN, values).fetchone() != (False,):
                return False
            self._locked.update(names)
        return True

    def is_valid(self, log: LogView | None = None) -> bool:
        """Tell whether the server still is the one the snapshot was taken on, and what was probed is not rewritten."""
        del log  # what becomes of a table that is rewritten is asked of the server
        if self._broken or self._closed:
            return False
        try:
            with self._reader(self._probe_timeout_seconds) as connection:
                row = connection.execute("SELECT pg_postmaster_start_time()::text").fetchone()
                as_before = self._are_as_they_were(connection, tuple(self._probed))
        except HeadwaterError:
            return False
        return as_before and row == (self._moment.started_at,)

    def __enter__(self) -> Self:
        """Keep the snapshot open for a block."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the snapshot. Its connections go back to the pool."""
        with self._lock:
            free, self._free, self._closed = self._free, [], True
        for reader in free:
            self._pool.give_back(reader.connection)

    @contextlib.contextmanager
    def _reader(self, timeout_seconds: float) -> Iterator[Connection]:
        """Lend a connection inside the snapshot. One whose statement failed is not used again."""
        with self._room, self._address.explained():
            reader = self._take()
            done = False
            try:
                if reader.timeout_seconds != timeout_seconds:
                    milliseconds = sql.Literal(round(timeout_seconds * 1000))
                    reader.connection.execute(sql.SQL("SET LOCAL statement_timeout = {}").format(milliseconds))
                    reader.timeout_seconds = timeout_seconds
                yield reader.connection
                done = True
            finally:
                self._put_back(reader, usable=done)

    def _take(self) -> _Reader:
        with self._lock:
            assert not self._closed, "a closed snapshot is not read"
            if self._broken:
                raise _gone(self._address, "the connection that held it failed")
            if self._free:
                return self._free.pop()
        connection, _ = _import(self._address, self._pool, self._moment.exported)
        return _Reader(connection=connection, timeout_seconds=0.0)

    def _put_back(self, reader: _Reader, *, usable: bool) -> None:
        with self._lock:
            if usable and not self._closed:
                self._free.append(reader)
                return
            self._broken = self._broken or (not usable and reader is self._first)
        self._pool.give_back(reader.connection)


def _import(address: Address, pool: ConnectionPool, exported: str) -> tuple[Connection, tuple[Any, ...]]:
    """Return a connection inside an exported snapshot, what it shows, and the server that it is of."""
    name = sql.Literal(exported).as_string(None)
    try:
        return pool.begin(f"{_BEGIN}SET TRANSACTION SNAPSHOT {name}; SELECT pg_current_snapshot()::text, {_SERVER}")
    except SourceRefused as error:  # what else could it refuse
        raise _gone(address, error.detail) from None


def _gone(address: Address, detail: str) -> SourceUnavailable:
    return SourceUnavailable(
        f'a snapshot of source "{address.source}" is gone',
        code="HW-306",
        detail=detail,
        hint="it is taken again by itself",
    )
