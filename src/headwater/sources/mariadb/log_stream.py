"""One connection to a server's binary log: events as they are, checked and without their checksums.

A client library that connects again by itself would go on where we do not want it. So after the request is sent, the
bytes are read here, from the socket.
"""

from __future__ import annotations

import contextlib
import secrets
import select
import socket
import zlib
from collections.abc import Iterator
from struct import pack, unpack_from
from typing import Any

from headwater.errors import SourceUnavailable
from headwater.sources.mariadb.connect import MariadbAddress, abandon, execute, texts

HEADER_BYTES = 19
FORMAT_DESCRIPTION = 15
_DUMP = 0x12
_NON_BLOCK = 1
_CHECKSUM_BYTES = 4
_HEARTBEAT_NANOSECONDS = 1_000_000_000
_SILENT_SECONDS = 30.0
_RECEIVED_BYTES = 1 << 18
_LARGEST_PACKET = (1 << 24) - 1


class LogStream:
    """The log of a server from a position on. With `stops` it ends where the log ends now."""

    def __init__(self, address: MariadbAddress, file: str, offset: int, *, stops: bool) -> None:
        """Connect, and ask for the log. Nothing is read yet."""
        self._address = address
        self._connection: Any = address.open()
        self._buffer = b""
        self._at = 0
        self._has_checksums = False
        self._rest = b""
        self.is_ended = False
        with address.explained():
            self._begin(file, offset, stops=stops)
        self._socket: socket.socket = self._connection._sock  # noqa: SLF001 — the library reads one packet a time
        self._socket.settimeout(_SILENT_SECONDS)

    def _begin(self, file: str, offset: int, *, stops: bool) -> None:
        [(kind,)] = texts(self._connection, "SELECT @@global.binlog_checksum")
        self._has_checksums = kind.upper() == "CRC32"
        execute(self._connection, "SET @master_binlog_checksum = @@global.binlog_checksum")
        execute(self._connection, "SET @source_binlog_checksum = @@global.binlog_checksum")
        execute(self._connection, f"SET @master_heartbeat_period = {_HEARTBEAT_NANOSECONDS}")
        execute(self._connection, f"SET @source_heartbeat_period = {_HEARTBEAT_NANOSECONDS}")
        execute(self._connection, "SET @mariadb_slave_capability = 4")
        number = secrets.randbelow((1 << 32) - (1 << 20)) + (1 << 20)  # a second one of a number ends the first
        request = pack("<IHI", offset, _NON_BLOCK if stops else 0, number) + file.encode()
        self._connection._execute_command(_DUMP, request)  # noqa: SLF001 — the library has no command for it

    def fileno(self) -> int:
        """Return what becomes readable when there is more."""
        return self._socket.fileno()

    def has_more(self, timeout_seconds: float) -> bool:
        """Wait for bytes. Tell whether there are any."""
        if getattr(self._socket, "pending", int)():
            return True
        return bool(select.select([self._socket], [], [], timeout_seconds)[0])

    def events(self) -> Iterator[bytes]:
        """Yield the events that one reading of the socket brings. Waits if there are no bytes."""
        with self._address.explained():
            received = self._socket.recv(_RECEIVED_BYTES)
            if not received:
                raise EOFError("the server ended the connection")
        buffer = self._buffer[self._at :] + received
        self._buffer, at, size = buffer, 0, len(buffer)
        while size - at >= 4:  # noqa: PLR2004 — the header of a packet
            length = buffer[at] | buffer[at + 1] << 8 | buffer[at + 2] << 16
            end = at + 4 + length
            if end > size:
                break
            self._at = at = end
            packet = buffer[end - length : end]
            if length == _LARGEST_PACKET:
                self._rest += packet
                continue
            if self._rest:
                packet, self._rest = self._rest + packet, b""
            event = self._event(packet)
            if event is None:
                break
            yield event
        self._at = at

    def _event(self, packet: bytes) -> bytes | None:
        status = packet[0]
        if status == 0xFF:  # noqa: PLR2004 — the protocol's
            code, message = unpack_from("<H", packet, 1)[0], packet[3:].decode("utf-8", "replace")
            self.is_ended = True
            raise self._address.explain(code, message.removeprefix("#HY000"))
        if status == 0xFE:  # noqa: PLR2004 — as above
            self.is_ended = True
            return None
        event = packet[1:]
        if event[4] == FORMAT_DESCRIPTION:
            self._has_checksums = event[-1 - _CHECKSUM_BYTES] == 1
            return event[:-_CHECKSUM_BYTES]
        if not self._has_checksums:
            return event
        body = event[:-_CHECKSUM_BYTES]
        if zlib.crc32(body) != unpack_from("<I", event, len(body))[0]:
            raise SourceUnavailable(
                f'source "{self._address.source}" has sent a damaged event of its log',
                code="HW-390",
                detail=f"{self._address.place}: an event of kind {event[4]} does not have the checksum that it says",
                hint="it is tried again by itself; if it stays, a file of the server's log is damaged on its disk: "
                f"`headwater teardown --source {self._address.source}` and `headwater run` read this source again",
            )
        return body

    def close(self) -> None:
        """End the connection, also while another thread reads."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        abandon(self._connection)
