"""One connection to the log of a PostgreSQL source.

    walsender ──messages──► next_capture ──captures──► change log
        ▲                                                  │
        └────── feedback: flushed up to here ◄── acknowledge

How far we have followed is known from two things the server says in order with everything else: where commits end,
and the keepalives, which carry the position up to which everything was sent. Once no message waits, both hold for us
as well.

Seen before decodable: somebody who read a snapshot waits until the log was followed past a position that may not even
be on the server's disk yet (an open transaction's records; commits with synchronous_commit = off). While `hasten`
asks for more, keepalives are requested every few milliseconds, and if that does not help, an empty message is
committed to the log, which flushes all before it. Any role may do that.

The position reported as durable is what was acknowledged, and nothing else: the caller that acknowledges has noted it
durably, also where there was nothing for us. So an idle source does not hold its log back for long, and one that has
forgotten more than was noted was followed by somebody else.

A server that hears nothing ends the connection after `wal_sender_timeout`, so we report to it how far we are four
times in that time, read or not (`keep_alive`).

Prepared transactions hold it back (`prepared`). One whose PREPARE this connection has not read yet may be on its way,
so nothing past what was read here is reported either.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time

import psycopg

from headwater.errors import HeadwaterError
from headwater.model.position import Position, Positions, by_log
from headwater.model.settings import CaptureSettings
from headwater.model.transaction import Capture
from headwater.sources.postgres.connect import Address, Connection
from headwater.sources.postgres.gathering import Gathering
from headwater.sources.postgres.partitions import Partitions
from headwater.sources.postgres.replication import ReplicationStream

_ASK_SECONDS = 0.002
_NUDGE_SECONDS = 0.01
_STATUSES_PER_TIMEOUT = 4
_MESSAGES_PER_LOOK = 256


class PostgresFollower:
    """Follows the log of one source. See `headwater.sources.source.Follower`."""

    def __init__(
        self,
        *,
        address: Address,
        stream: ReplicationStream,
        side: Connection,
        gathering: Gathering,
        partitions: Partitions,
        start: Position,
        streamed_from: int,
        timeout_seconds: float,
        settings: CaptureSettings,
        capture_bytes: int,
    ) -> None:
        """Take over a stream that was started at some offset, and a plain connection beside it.

        All before `start` is durable, or forgotten already; the server wants to hear of us within the timeout.
        Transactions whose rows are that long are handed over, however few they are.
        """
        self._address = address
        self._settings = settings
        self._capture_bytes = capture_bytes
        self._stream = stream
        self._side = side
        self._gathering = gathering
        self._partitions = partitions
        self._looked_at = time.monotonic()
        self._followed = start
        self._streamed_from = streamed_from
        self._status_seconds = min(settings.report_interval_seconds, timeout_seconds / _STATUSES_PER_TIMEOUT)
        self._acknowledged = start.offset
        self._wanted = 0
        self._reported = 0
        self._reported_at = time.monotonic()
        self._asked_at = 0.0
        self._stuck_since: float | None = None
        self._lock = threading.Lock()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        self._poll = select.poll()
        self._poll.register(stream.fileno(), select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)
        self._is_closed = False

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        """Return the next transactions, or None: none came in that time, or until a hastened position was reached."""
        deadline = time.monotonic() + timeout_seconds
        with self._address.explained():
            while True:
                self._drain()
                self._look_at_partitions()
                capture = self._gathering.take() if self._gathering.has_transactions else None
                self._move_on()
                self._report()
                wait_seconds = deadline - time.monotonic()
                if capture is not None or wait_seconds <= 0 or self._is_reached():
                    return capture
                self._sleep(min(wait_seconds, self._ask()))

    def followed_to(self) -> Positions:
        """Every transaction that commits at or before this position has been returned by `next_capture`.

        To another thread than the one that calls `next_capture` this may look a moment early: the capture that brings
        it there may still be on its way out.
        """
        return by_log([self._followed])

    def log_end(self) -> Positions:
        """Where the source's log ends now, as far as it is on the server's disk and can be sent."""
        with self._address.explained():
            row = self._side.execute("SELECT (pg_current_wal_flush_lsn() - '0/0')::int8").fetchone()
        assert row is not None
        return by_log([Position(source=self._followed.source, history=self._followed.history, offset=row[0])])

    def log_begin(self) -> Positions:
        """Return nothing: the slot holds the log."""
        return {}

    def acknowledge(self, position: Position) -> None:
        """Let the source forget what it logged up to here. Told to it by the following thread.

        The position may be past what this connection has followed: what an earlier one returned can become durable now.
        """
        with self._lock:
            if position.offset <= self._acknowledged:
                return
            self._acknowledged = position.offset
        self._wake_up()

    def hasten(self, position: Position) -> None:
        """Say that somebody waits for `followed_to` to reach this position."""
        if position <= self._followed:
            return
        with self._lock:
            self._wanted = max(self._wanted, position.offset)
        self._wake_up()

    def keep_alive(self) -> None:
        """Let the server know that we are there although nothing is read."""
        with self._address.explained():
            self._report()

    def close(self) -> None:
        """End both connections, telling the server the last acknowledged position on the way."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        with contextlib.suppress(psycopg.Error, HeadwaterError):
            self._report()
        self._stream.close()
        self._side.close()
        os.close(self._woken)
        os.close(self._wake)

    def _drain(self) -> None:
        """Read what waits, until nothing does or a capture is large enough."""
        read, gathering = self._stream.read, self._gathering
        stop_at: float | None = None
        while True:
            for _ in range(_MESSAGES_PER_LOOK):
                message = read()
                if message is None:
                    return
                gathering.feed(message)
            now = time.monotonic()
            stop_at = stop_at or now + self._settings.capture_time_seconds
            is_large = gathering.row_count >= self._settings.capture_rows or gathering.byte_count >= self._capture_bytes
            if gathering.has_transactions and (is_large or now >= stop_at):
                return
            self._report()

    def _look_at_partitions(self) -> None:
        """See now and then that no rows came or went that the log does not tell of."""
        if time.monotonic() - self._looked_at >= self._settings.partition_check_interval_seconds:
            self._partitions.look()
            self._looked_at = time.monotonic()

    def _move_on(self) -> None:
        """Note that all that commits at or before the last position the server named has been read, and is returned."""
        offset = max(self._followed.offset, self._gathering.committed_to, self._stream.sent_to)
        if offset > self._followed.offset:
            self._followed = Position(source=self._followed.source, history=self._followed.history, offset=offset)

    def _report(self) -> None:
        """Tell the server what is durable, if that changed or a while has passed."""
        with self._lock:
            durable = self._acknowledged
        now = time.monotonic()
        forgettable = self._may_forget(durable)
        if forgettable > self._reported or now - self._reported_at >= self._status_seconds:
            self._stream.tell(forgettable)
            self._reported, self._reported_at = forgettable, now

    def _may_forget(self, durable: int) -> int:
        """Return up to where the source may forget its log, when everything that ends up to `durable` is durable."""
        read_to = max(self._streamed_from, self._stream.sent_to)
        return min(read_to, self._gathering.may_forget(durable))

    def _is_reached(self) -> bool:
        """Tell once that a hastened position has been reached."""
        with self._lock:
            if not 0 < self._wanted <= self._followed.offset:
                return False
            self._wanted = 0
        self._stuck_since = None
        return True

    def _ask(self) -> float:
        """If somebody waits for more, ask the server how far it is. Return how long to sleep before looking again."""
        with self._lock:
            wanted = self._wanted
        now = time.monotonic()
        if wanted == 0:
            return self._status_seconds
        if self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since >= _NUDGE_SECONDS:
            self._nudge(wanted)
            self._stuck_since = time.monotonic()
        if now - self._asked_at >= _ASK_SECONDS:
            self._stream.tell(self._reported, ask=True)
            self._asked_at = now
        return _ASK_SECONDS

    def _nudge(self, wanted: int) -> None:
        """Commit an empty message if the log is not on the server's disk as far as somebody wants it."""
        self._side.execute(
            "SELECT pg_logical_emit_message(true, 'headwater', '') WHERE pg_current_wal_flush_lsn() - '0/0' < %s",
            (wanted,),
        )

    def _sleep(self, seconds: float) -> None:
        for descriptor, _ in self._poll.poll(max(1, round(seconds * 1000))):
            if descriptor == self._woken:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._woken, 4096)

    def _wake_up(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):
            if not self._is_closed:
                os.write(self._wake, b"!")
