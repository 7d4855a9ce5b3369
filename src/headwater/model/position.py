"""How far into a log: a position in one source's own log, a tick in the warehouse's.

Positions of one source are ordered; positions of two sources are not comparable, and neither are positions from two
histories of one source (another system, or another timeline after a failover): comparing them raises.

How positions are written is the source's own choice. Its notation is data that is stored beside them, so that a
warehouse can be read, and asked for a position, where the source is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NewType, Self

from headwater.errors import InvalidProject, SourceLost

Tick = NewType("Tick", int)

_MOST = (1 << 63) - 1
"""The largest offset: a change log stores 64 bits with a sign."""
_DIGITS = {10: "0-9", 16: "0-9A-Fa-f"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How a source writes offsets into its log: as one number, or as two with something between them.

    >>> Notation().text(42), Notation(separator=":", low_bits=32).text((3 << 32) + 4711)
    ('42', '3:4711')
    """

    base: int = 10
    separator: str = ""
    low_bits: int = 0
    """How many bits of the offset the second number holds; none where there is only one."""
    history: str = "its own name for it"
    """What the text of a history is made of, for a person who compares two of them."""

    def text(self, offset: int) -> str:
        """Return an offset as the source's users write it."""
        shown = format(offset >> self.low_bits, self._format)
        if not self.low_bits:
            return shown
        return f"{shown}{self.separator}{offset & ((1 << self.low_bits) - 1):{self._format}}"

    def parse(self, text: str) -> int:
        """Return the offset that a text means. Any other text is refused.

        >>> hex(LSN.parse("1/ff"))
        '0x1000000ff'
        """
        number = f"([{_DIGITS[self.base]}]+)"
        pattern = f"{number}{re.escape(self.separator)}{number}" if self.low_bits else number
        if match := re.fullmatch(pattern, text, re.ASCII):
            high, low = int(match[1], self.base), int(match[2], self.base) if self.low_bits else 0
            offset = (high << self.low_bits) | low
            if low < 1 << self.low_bits and offset <= _MOST:
                return offset
        example = self.text(0x16B3748)
        raise InvalidProject(f'"{text}" is not a position', code="HW-104", hint=f"a position looks like {example}")

    def written(self) -> list[object]:
        """Return the notation as it is stored."""
        return [self.base, self.separator, self.low_bits, self.history]

    @classmethod
    def read(cls, said: Sequence[Any]) -> Self:
        """Return a stored notation.

        >>> all(Notation.read(one.written()) == one for one in (LSN, Notation()))
        True
        """
        base, separator, low_bits, history = said
        return cls(base=int(base), separator=str(separator), low_bits=int(low_bits), history=str(history))

    @property
    def _format(self) -> str:
        return "X" if self.base == 16 else "d"  # noqa: PLR2004 — hexadecimal


LSN = Notation(base=16, separator="/", low_bits=32, history="system:timeline")
"""PostgreSQL's notation, and that of every position that was stored before notations were."""


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
    """Which log this is a position of: another text, another log, even if the offsets look alike."""
    offset: int
    notation: Notation = LSN

    @property
    def text(self) -> str:
        """The offset as the source's users write it."""
        return self.notation.text(self.offset)

    def __str__(self) -> str:
        """Return the position as a person writes it after `--at`."""
        return f"{self.source}:{self.text}"

    def _comparable(self, other: Position) -> None:
        assert self.source == other.source, f"positions of two sources compared: {self} and {other}"
        if self.history != other.history:
            raise SourceLost(
                f'source "{self.source}" is not the server it was',
                code="HW-310",
                detail=f"its log was {self.history} ({self.notation.history}) and is now {other.history}: "
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

    def written(self) -> list[object]:
        """Return the position as it is stored beside its source's name. PostgreSQL's notation is the default.

        >>> Position(source="shop", history="71:1", offset=90).written()
        ['71:1', 90]
        >>> Position(source="lake", history="7f", offset=3, notation=Notation(history="table id")).written()
        ['7f', 3, [10, '', 0, 'table id']]
        """
        return [self.history, self.offset, *([] if self.notation == LSN else [self.notation.written()])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How much of a source's log lies between two positions, in the unit that the source counts by.

    >>> str(Distance(amount=1234, unit="bytes"))
    '1,234 bytes'
    """

    amount: int
    unit: str

    def __str__(self) -> str:
        """Return it as a person reads it."""
        return f"{self.amount:,} {self.unit}"


def read_position(source: str, said: Sequence[Any]) -> Position:
    """Return a stored position.

    >>> at = Position(source="lake", history="7f", offset=3, notation=Notation())
    >>> read_position("lake", at.written()) == at
    True
    """
    history, offset, *notation = said
    return Position(
        source=source,
        history=str(history),
        offset=int(offset),
        notation=Notation.read(notation[0]) if notation else LSN,
    )
