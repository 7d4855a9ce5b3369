"""One connection to the log of a MariaDB source, and a plain one beside it.

The server sends every event as soon as it is in its log, which is before it is visible to readers. Who has read a
snapshot finds that the log was followed to its position soon after, and nothing has to be asked for.

The server holds its log for nobody: there is nothing to acknowledge. A heartbeat comes every second; a server that is
silent for long is gone.
"""

from __future__ import annotations

import threading
import time

import pymysql

from headwater.errors import SourceUnavailable
from headwater.model.position import Position, Positions, by_log
from headwater.model.settings import CaptureSettings
from headwater.model.transaction import Capture
from headwater.sources.mariadb.connect import Connection, MariadbAddress, abandon, texts
from headwater.sources.mariadb.gathering import MariadbGathering
from headwater.sources.mariadb.log_position import FIRST_OFFSET, LogName, file_number, offset_of
from headwater.sources.mariadb.log_stream import LogStream
from headwater.sources.source import unproved_log

_SILENT_SECONDS = 30.0
_WAIT_SECONDS = 0.05
_NO_BINARY_LOG = 1381


class MariadbFollower:
    """Follows the log of one source. See `headwater.sources.source.Follower`."""

    def __init__(
        self,
        *,
        address: MariadbAddress,
        stream: LogStream,
        side: Connection,
        gathering: MariadbGathering,
        log: LogName,
        settings: CaptureSettings,
        capture_bytes: int,
        sizes: dict[int, int],
    ) -> None:
        """Take over a stream. `sizes` are those of the log's files: distances are measured by them."""
        self._address = address
        self._stream = stream
        self._side = side
        self._gathering = gathering
        self._log = log
        self._settings = settings
        self._capture_bytes = capture_bytes
        self._sizes = sizes
        self._followed = gathering.followed
        self._heard_at = time.monotonic()
        self._wanted = 0
        self._lock = threading.Lock()

    def next_capture(self, timeout_seconds: float) -> Capture | None:
        """Return the next transactions, or None: none came in that time, or until a hastened position was reached."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            self._drain()
            capture = self._gathering.take() if self._gathering.has_transactions else None
            self._followed = self._gathering.followed
            wait_seconds = deadline - time.monotonic()
            if capture is not None or wait_seconds <= 0 or self._is_reached():
                return capture
            with self._address.explained():
                self._stream.has_more(min(wait_seconds, _WAIT_SECONDS))

    def followed_to(self) -> Positions:
        """Every transaction that commits at or before this position has been returned by `next_capture`."""
        return by_log([self._followed])

    def log_end(self) -> Positions:
        """Where the source's log ends now. One that ends before what was followed was begun again (RESET MASTER)."""
        followed = self._followed
        with self._address.explained():
            end = log_end(self._side, self._log)
        if end.offset < followed.offset:
            raise unproved_log(followed, f"it ends at {end.text}, before what was followed")
        return by_log([end])

    def log_begin(self) -> Positions:
        """Up to where the source has deleted its log."""
        with self._address.explained():
            files = [(file_number(one[0]), int(one[1])) for one in texts(self._side, "SHOW BINARY LOGS")]
        self._sizes.update(files)
        return by_log([self._log.position(offset_of(files[0][0], FIRST_OFFSET))])

    def acknowledge(self, position: Position) -> None:
        """Do nothing: the server deletes its log by a clock of its own."""

    def hasten(self, position: Position) -> None:
        """Say that somebody waits for `followed_to` to reach this position."""
        if position <= self._followed:
            return
        with self._lock:
            self._wanted = max(self._wanted, position.offset)

    def keep_alive(self) -> None:
        """Do nothing: the server waits for as long as the network does."""

    def close(self) -> None:
        """End both connections."""
        self._stream.close()
        abandon(self._side)

    def _drain(self) -> None:
        """Read what waits, until nothing does or a capture is large enough."""
        gathering = self._gathering
        stop_at: float | None = None
        while self._stream.has_more(0.0):
            for event in self._stream.events():
                gathering.feed(event)
            now = self._heard_at = time.monotonic()
            stop_at = stop_at or now + self._settings.capture_time_seconds
            is_large = gathering.row_count >= self._settings.capture_rows or gathering.byte_count >= self._capture_bytes
            if gathering.has_transactions and (is_large or now >= stop_at):
                return
        if self._stream.is_ended or time.monotonic() - self._heard_at > _SILENT_SECONDS:
            raise SourceUnavailable(
                f'source "{self._log.source}" does not answer',
                code="HW-303",
                detail="it sends nothing of its log",
                hint="it is tried again by itself; check that the server runs and can be reached",
            )

    def _is_reached(self) -> bool:
        with self._lock:
            if not 0 < self._wanted <= self._followed.offset:
                return False
            self._wanted = 0
        return True


def log_end(connection: Connection, log: LogName) -> Position:
    """Return where a server's log ends now."""
    file, offset = master_status(connection)
    return log.position(offset_of(file_number(file), offset))


def master_status(connection: Connection) -> tuple[str, int]:
    """Return the file that a server writes its log to now, and where it ends."""
    try:
        found = texts(connection, "SHOW MASTER STATUS")
    except pymysql.err.ProgrammingError:  # MySQL calls it otherwise
        found = texts(connection, "SHOW BINARY LOG STATUS")
    if not found:
        raise pymysql.err.OperationalError(_NO_BINARY_LOG, "the server has no binary log now: log_bin is OFF")
    file, offset, *_ = found[0]
    return file, int(offset)
