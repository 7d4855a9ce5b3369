"""How far into a log: a position in one source's own log, a tick in the warehouse's.

Positions of one source are ordered; positions of two sources are not comparable, and neither are positions from two
histories of one source (another system, or another timeline after a failover): comparing them raises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NewType

from headwater.errors import InvalidProject, SourceLost

Tick = NewType("Tick", int)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far into one source's own log.

    >>> a = Position(source="shop", history="71:1", offset=0x16B3748)
    >>> str(a)
    'shop:0/16B3748'
    >>> a < Position(source="shop", history="71:1", offset=0x16B3800)
    True
    """

    source: str
    history: str
    offset: int

    def __str__(self) -> str:
        """Return the position as a person writes it after `--at`."""
        return f"{self.source}:{format_offset(self.offset)}"

    def _comparable(self, other: Position) -> None:
        assert self.source == other.source, f"positions of two sources compared: {self} and {other}"
        if self.history != other.history:
            raise SourceLost(
                f'source "{self.source}" is not the server it was',
                code="HW-310",
                detail=f"its log was {self.history} (system:timeline) and is now {other.history}: "
                "a failover, or a restore from a backup",
                hint="point the source back at the old server, or start over: `headwater teardown`, "
                "then a new warehouse folder",
            )

    def __lt__(self, other: Position) -> bool:
        """Tell whether this position comes before another of the same source and history."""
        self._comparable(other)
        return self.offset < other.offset

    def __le__(self, other: Position) -> bool:
        """Tell whether this position is not after another of the same source and history."""
        self._comparable(other)
        return self.offset <= other.offset


def format_offset(offset: int) -> str:
    """Return an offset in PostgreSQL's notation for log positions.

    >>> format_offset(0x1_0000_00FF)
    '1/FF'
    """
    return f"{offset >> 32:X}/{offset & 0xFFFFFFFF:X}"


def parse_offset(text: str) -> int:
    """Return the offset that a text such as `0/16B3748` means.

    >>> hex(parse_offset("1/FF"))
    '0x1000000ff'
    """
    if not (match := re.fullmatch(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})", text)):
        raise InvalidProject(f'"{text}" is not a position', code="HW-104", hint="a position looks like 0/16B3748")
    return (int(match[1], 16) << 32) | int(match[2], 16)
