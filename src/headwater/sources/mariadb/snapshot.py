"""Moments of a MariaDB database, each on a connection of its own, with its exact position in the log.

    START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY; SHOW STATUS LIKE 'binlog_snapshot%'     (REPEATABLE READ)

shows exactly what was committed up to that position: no more, no less. Connections cannot share a snapshot. An open one
keeps the owner's DDL waiting, and every writer behind that: each reader ends soon.

Readers that were opened before a table was altered read through it without an error. So an answer counts only once the
log was followed, without any alteration, to where it ended after the reading (`is_valid`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Self

import pyarrow as pa

from headwater.deltas.extent import Remainder
from headwater.errors import HeadwaterError
from headwater.model.position import Position, Positions, by_log
from headwater.model.relation import Relation
from headwater.model.transaction import SeenUpTo
from headwater.sources.mariadb.catalog import table_of
from headwater.sources.mariadb.connect import Connection, MariadbAddress, MariadbPool, execute, stream, texts
from headwater.sources.mariadb.follower import log_end, master_status
from headwater.sources.mariadb.log_position import LogName, file_number, offset_of
from headwater.sources.mariadb.printing import printed_table
from headwater.sources.mariadb.probing import literal, probe_queries
from headwater.sources.mariadb.types import held, printed, quoted
from headwater.sources.source import Chunk, LogView, unproved_log

_TABLE_ROWS = 65_536
_MAX_CHUNKS = 10_000
_FOLLOW_SECONDS = 10.0
_CHUNKED = frozenset(("integer", "decimal", "date", "datetime", "text"))
_STARTED_AT = "SELECT UNIX_TIMESTAMP() - VARIABLE_VALUE FROM {} WHERE VARIABLE_NAME = 'UPTIME'"
_BEGIN = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


class MariadbReader:
    """One moment, on one connection. See `headwater.sources.source.Reader`."""

    def __init__(self, connection: Connection, position: Position, snapshot: MariadbSnapshot) -> None:
        """Wrap a connection inside a transaction that shows all up to a position."""
        self._connection = connection
        self._position = position
        self._snapshot = snapshot
        self._limit_seconds = 0.0

    @property
    def seen(self) -> SeenUpTo:
        """All transactions up to its position."""
        return SeenUpTo(last=self._position.offset)

    @property
    def positions(self) -> Positions:
        """The position, by its log."""
        return by_log([self._position])

    def probe(self, relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the wanted columns of the rows whose `columns` equal some row of `keys`."""
        rows: list[tuple[bytes | None, ...]] = []
        with self._snapshot.address.explained():
            self._limit(self._snapshot.probe_timeout_seconds)
            for query in probe_queries(relation, self._snapshot.database, wanted, columns, keys):
                rows += execute(self._connection, query)
        return printed_table(relation, wanted, rows)

    def read(self, relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> Iterator[pa.Table]:
        """Yield the wanted columns of a chunk's rows, in tables small enough to hold in memory."""
        del rows  # who asked for a remainder tests the rows again
        selected = ", ".join(printed(relation.column(name)) for name in wanted) or "1"
        query = (
            f"SELECT {selected} FROM {table_of(relation.name, self._snapshot.database)} AS r{_bounds(relation, chunk)}"
        )
        with self._snapshot.address.explained():
            self._limit(0.0)
            for some in stream(self._connection, query, _TABLE_ROWS):
                yield printed_table(relation, wanted, some)

    def _limit(self, seconds: float) -> None:
        if seconds != self._limit_seconds:
            self._snapshot.limit(self._connection, seconds)
            self._limit_seconds = seconds


class MariadbSnapshot:
    """See `headwater.sources.source.Snapshot`. Every reader sees a moment of its own."""

    def __init__(
        self,
        *,
        address: MariadbAddress,
        pool: MariadbPool,
        log: LogName,
        probe_timeout_seconds: float,
        connection_limit: int,
        is_mariadb: bool,
    ) -> None:
        """Remember on which run of the server it was opened."""
        self.address = address
        self.database = address.database
        self.probe_timeout_seconds = probe_timeout_seconds
        self._pool = pool
        self._log = log
        self._is_mariadb = is_mariadb
        self._room = threading.BoundedSemaphore(connection_limit)
        with self._connected() as connection:
            self._token = self._started_at(connection)

    @property
    def token(self) -> str:
        """When the server was started."""
        return self._token

    @contextlib.contextmanager
    def reader(self) -> Iterator[MariadbReader]:
        """Lend a reader of now."""
        with self._room, self._connected() as connection:
            yield MariadbReader(connection, self._begin(connection), self)

    def chunks(self, relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
        """Divide a relation into ranges of the first column of its primary key."""
        whole = (Chunk(number=0),)
        if not relation.key or held(relation.column(relation.key[0])).kind not in _CHUNKED:
            return whole
        column = relation.column(relation.key[0])
        name, spell = quoted(column.name), literal(column)
        query = (
            f"SELECT {printed(column)} FROM {table_of(relation.name, self.database)} AS r{{}} ORDER BY r.{name} LIMIT "
        )
        bounds: list[str] = []
        with self._connected() as connection:
            step = max(1, rows_per_chunk, relation.row_estimate // _MAX_CHUNKS)
            while len(bounds) < _MAX_CHUNKS:
                after = f" WHERE r.{name} > {spell(bounds[-1])}" if bounds else ""
                found = texts(connection, f"{query.format(after)}{step - 1}, 2")
                if len(found) < 2:  # noqa: PLR2004 — the last row is in the last chunk anyway
                    break
                bounds.append(found[0][0])
        return (
            tuple(
                Chunk(number=number, column=column.name, low=low, high=high)
                for number, (low, high) in enumerate(zip((None, *bounds), (*bounds, None), strict=True))
            )
            if bounds
            else whole
        )

    def exported(self) -> Mapping[str, Any]:
        """Nobody can join it."""
        raise AssertionError("its snapshots are for this process only")

    def is_valid(self, log: LogView) -> bool:
        """Tell whether the server is the same, and its log tells of no alteration up to where it ends now.

        A log that ends before what is held of it was begun again: positions of readers say nothing then.
        """
        held = log.held(self._log.source).get(self._log.source)
        try:
            with self._connected() as connection:
                if self._started_at(connection) != self._token:
                    return False
                end = log_end(connection, self._log)
        except HeadwaterError:
            return False
        if held is not None and held.history == end.history and end.offset < held.offset:
            raise unproved_log(held, f"it ends at {end.text}, before what was followed")
        return log.wait_for(by_log([end]), _FOLLOW_SECONDS)

    def limit(self, connection: Connection, seconds: float) -> None:
        """Let statements of a connection take so long. 0: as long as they like."""
        execute(
            connection,
            f"SET max_statement_time = {seconds:.3f}"
            if self._is_mariadb
            else f"SET max_execution_time = {round(seconds * 1000)}",
        )

    def __enter__(self) -> Self:
        """Return it. Nothing is open before a reader is lent."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Do nothing: what its readers had open is closed."""

    def _begin(self, connection: Connection) -> Position:
        with self.address.explained():
            if self._is_mariadb:
                execute(connection, _BEGIN)
                said = texts(connection, "SHOW STATUS LIKE 'binlog_snapshot%'")
                lowered = {name.lower(): value for name, value in said}
                file, offset = lowered["binlog_snapshot_file"], int(lowered["binlog_snapshot_position"])
            else:
                execute(connection, "FLUSH TABLES WITH READ LOCK")
                execute(connection, _BEGIN)
                file, offset = master_status(connection)
                execute(connection, "UNLOCK TABLES")
            return self._log.position(offset_of(file_number(file), offset))

    def _started_at(self, connection: Connection) -> str:
        place = "information_schema.GLOBAL_STATUS" if self._is_mariadb else "performance_schema.global_status"
        with self.address.explained():
            return texts(connection, _STARTED_AT.format(place))[0][0]

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Connection]:
        with self.address.explained():
            connection = self._pool.take()
        try:
            yield connection
        finally:
            with contextlib.suppress(Exception):
                self.limit(connection, 0.0)
            self._pool.give_back(connection)


def _bounds(relation: Relation, chunk: Chunk) -> str:
    """Return the WHERE of a chunk."""
    if chunk.column is None:
        return ""
    column = relation.column(chunk.column)
    name, spell = f"r.{quoted(column.name)}", literal(column)
    tests = []
    if chunk.low is not None:
        tests.append(f"{name} > {spell(chunk.low)}")
    if chunk.high is not None:
        also = f" OR {name} IS NULL" if chunk.low is None else ""
        tests.append(f"({name} <= {spell(chunk.high)}{also})")
    return f" WHERE {' AND '.join(tests)}" if tests else ""
