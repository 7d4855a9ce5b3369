"""A stream of a slot's messages, in which nobody but us says what the server may forget.

    XLogData   'w'  start of the record, end of the log, time, message     ──►
    Keepalive  'k'  all up to here was sent, time, whether to reply        ──►
    Status     'r'  written, flushed, applied, time, whether to reply      ◄──

Written on libpq's COPY as psycopg 3 gives it to us. psycopg2 has a replication cursor, but that one moves the flushed
position along by itself when a keepalive comes while the record read last lies before what was acknowledged. The rows
of a transaction that began long ago do, and the server sends keepalives among them: whatever had committed meanwhile
was acknowledged, durable or not, and would not have been sent again after a crash.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Mapping
from struct import Struct

import psycopg
from psycopg import pq, sql

from headwater.model.position import LSN
from headwater.sources.postgres.connect import Connection

_DATA, _KEEPALIVE = ord("w"), ord("k")
_unpack_offset = Struct(">q").unpack_from
_DATA_HEADER = 1 + 8 + 8 + 8
_END_OF_LOG = 1 + 8
_REPLY_WANTED = 1 + 8 + 8
_STATUS = Struct(">cqqqqB")
_EPOCH_SECONDS = 946_684_800


def sender_timeout(connection: Connection) -> float:
    """Return after how many seconds of hearing nothing the server ends a stream. Infinity if it never does."""
    row = connection.execute("SELECT setting::int8 FROM pg_settings WHERE name = 'wal_sender_timeout'").fetchone()
    assert row is not None
    return float(row[0]) / 1000 or math.inf


class ReplicationStream:
    """Reads messages as they come, and tells the server how far they are durable. One thread uses it."""

    def __init__(self, connection: Connection) -> None:
        """Take over a connection that speaks the replication protocol."""
        self._connection = connection
        self._pgconn = connection.pgconn
        self._get = self._pgconn.get_copy_data
        self._flushed = 0
        self.sent_to = 0
        """Everything up to here was sent and read."""

    def start(self, slot: str, offset: int, options: Mapping[str, str]) -> None:
        """Begin where the slot stands, or at an offset that is past it."""
        option_list = ", ".join(
            f"{sql.Identifier(name).as_string()} {sql.Literal(value).as_string()}" for name, value in options.items()
        )
        name, at = sql.Identifier(slot).as_string(), LSN.text(offset)
        command = f"START_REPLICATION SLOT {name} LOGICAL {at} ({option_list})"
        result = self._pgconn.exec_(command.encode())
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise psycopg.errors.error_from_result(result)

    def read(self) -> bytes | None:
        """Return the next message, or None if none has come. This runs once per row: it is written for speed."""
        looked = False
        while True:
            size, data = self._get(1)
            if size > 0 and data[0] == _DATA:
                (offset,) = _unpack_offset(data, _END_OF_LOG)
                self.sent_to = max(self.sent_to, offset)  # a transaction's rows lie before what was sent already
                return bytes(data[_DATA_HEADER:])
            if size > 0:
                self._keep_alive(data)
            elif size < 0:
                raise self._end()
            elif looked:
                return None
            else:
                self._pgconn.consume_input()
                looked = True

    def _keep_alive(self, message: memoryview) -> None:
        """Take in how far the server is, and reply if it wants to know how far we are."""
        assert message[0] == _KEEPALIVE, "a replication stream has data and keepalives"
        self.sent_to = max(self.sent_to, _unpack_offset(message, 1)[0])
        if message[_REPLY_WANTED]:
            self.tell(self._flushed)

    def tell(self, flushed: int, *, ask: bool = False) -> None:
        """Tell the server that everything up to here is durable, and perhaps ask it how far it is.

        What was read is reported as written, so that the server does not say again that it has sent that.
        """
        self._flushed = max(self._flushed, flushed)
        written = max(self._flushed, self.sent_to)
        now = round((time.time() - _EPOCH_SECONDS) * 1e6)
        self._pgconn.put_copy_data(_STATUS.pack(b"r", written, self._flushed, self._flushed, now, ask))
        while self._pgconn.flush():
            select.select([self.fileno()], [self.fileno()], [])
            self._pgconn.consume_input()

    def fileno(self) -> int:
        """Return what to wait on for more to come."""
        return self._pgconn.socket

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _end(self) -> psycopg.Error:
        """Return why the stream ended."""
        result = self._pgconn.get_result()
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            return psycopg.errors.error_from_result(result)
        return psycopg.OperationalError("the server closed the connection")
