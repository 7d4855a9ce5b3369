"""Positions in a server's binary log: the number of a file, and an offset in it. And how a log is recognised.

What a server calls itself does not help: one that was set up afresh at the same port may have the same name, and a log
that was reset may grow past our position. GTIDs do not help either: a server that lost the end of its log gives the
same ones again. So a position says which group of events ended there: where it began, and what its first and last event
were, byte for byte. When we go on, that group has to be there (`Proof`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from struct import calcsize, pack, unpack
from typing import Self

from headwater.model.position import Notation, Position

NOTATION = Notation(separator=":", low_bits=32, history="name of the log@server id")
_FILE_BITS = 32
_FORMAT = "<B8sQQ8s"
_VERSION = 1
_DIGEST_BYTES = 8
_HEADER_BYTES = 19
_FIRST_KINDS = (15, 163, 35)
"""Kinds of events that begin a file: its format, and the GTIDs before it, of MariaDB and of MySQL."""
FIRST_OFFSET = 4
"""Where the first event of a file begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """By what a log is recognised: the beginning of a file, and a group of events in it, if one was read."""

    head: bytes = b""
    begin: int = 0
    end: int = 0
    group: bytes = b""

    def written(self) -> bytes:
        """Return it as a position carries it."""
        return pack(_FORMAT, _VERSION, self.head, self.begin, self.end, self.group)

    @classmethod
    def read(cls, said: bytes) -> Self | None:
        """Return what a position carries. None if it carries nothing that we know."""
        if len(said) != calcsize(_FORMAT) or said[0] != _VERSION:
            return None
        _, head, begin, end, group = unpack(_FORMAT, said)
        return cls(head=head, begin=begin, end=end, group=group)


def digest(*parts: bytes) -> bytes:
    """Return what tells events from others."""
    return hashlib.sha256(b"".join(parts)).digest()[:_DIGEST_BYTES]


def said_of_file(event: bytes) -> bytes | None:
    """Return what an event says of the file that it begins, without what changes later. None for another event."""
    return event[:4] + event[_HEADER_BYTES:] if event[4] in _FIRST_KINDS else None


def offset_of(file_number: int, offset: int) -> int:
    """Return a position in a file as one number.

    >>> NOTATION.text(offset_of(3, 4711))
    '3:4711'
    """
    return (file_number << _FILE_BITS) | offset


def split_offset(offset: int) -> tuple[int, int]:
    """Return the number of the file and the offset in it."""
    return offset >> _FILE_BITS, offset & ((1 << _FILE_BITS) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogName:
    """How the files of a log are called, and whose log it is."""

    source: str
    base: str
    server_id: str
    digits: int = 6

    @classmethod
    def of_file(cls, source: str, file: str, server_id: str) -> Self:
        """Return the name of the log that a file is of."""
        base, _, number = file.rpartition(".")
        return cls(source=source, base=base, server_id=server_id, digits=len(number))

    def file(self, number: int) -> str:
        """Return the name of a file."""
        return f"{self.base}.{number:0{self.digits}d}"

    def position(self, offset: int, proof: Proof | None = None) -> Position:
        """Return a position in this log."""
        return Position(
            source=self.source,
            history=f"{self.base}@{self.server_id}",
            offset=offset,
            notation=NOTATION,
            proof=b"" if proof is None else proof.written(),
        )


def file_number(file: str) -> int:
    """Return the number of a file of a log."""
    return int(file.rpartition(".")[2])
