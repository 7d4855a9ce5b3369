"""How far into a log: a position in one source's own log, a tick in the warehouse's.

Positions of one log are ordered; positions of two logs are not comparable, and neither are positions from two
histories of one log (another server, or the same one restored from a backup): comparing them raises. Most sources have
one log. One that has several (a log for each table) tells how far by one position for each: `Positions`.

How positions are written is the source's own choice. Its notation is data that is stored beside them, so that a
warehouse can be read, and asked for a position, where the source is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NewType, Self, TypeAlias

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
    """How far into one log of a source.

    >>> a = Position(source="shop", history="71:1", offset=0x16B3748)
    >>> str(a)
    'shop:0/16B3748'
    >>> a < Position(source="shop", history="71:1", offset=0x16B3800)
    True
    >>> str(Position(source="lake", log="orders", history="7f", offset=3, notation=Notation()))
    'lake.orders:3'
    """

    source: str
    log: str = ""
    """Which log of the source; empty where it has only one."""
    history: str
    """Which history of the log: another text, another log, even if the offsets look alike."""
    offset: int
    notation: Notation = LSN
    proof: bytes = field(default=b"", repr=False, compare=False)
    """By what the source recognises its own log when it is followed from here; empty where the history is enough."""

    @property
    def text(self) -> str:
        """The offset as the source's users write it."""
        return self.notation.text(self.offset)

    @property
    def log_name(self) -> str:
        """The name of the log: the source's, and the log's own where the source has several."""
        return log_name(self.source, self.log)

    def __str__(self) -> str:
        """Return the position as a person writes it after `--at`."""
        return f"{self.log_name}:{self.text}"

    def require_comparable(self, other: Position) -> None:
        """Refuse a position of another history of the same log."""
        assert self.log_name == other.log_name, f"positions of two logs compared: {self} and {other}"
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
        """Tell whether this position comes before another of the same log and history."""
        self.require_comparable(other)
        return self.offset < other.offset

    def __le__(self, other: Position) -> bool:
        """Tell whether this position is not after another of the same log and history."""
        self.require_comparable(other)
        return self.offset <= other.offset

    def written(self) -> list[object]:
        """Return the position as it is stored beside its log's name. PostgreSQL's notation is the default.

        >>> Position(source="shop", history="71:1", offset=90).written()
        ['71:1', 90]
        >>> lake = Notation(history="table id")
        >>> Position(source="lake", history="7f", offset=3, notation=lake, proof=bytes([7])).written()
        ['7f', 3, [10, '', 0, 'table id'], '07']
        """
        notation = [] if self.notation == LSN and not self.proof else [self.notation.written()]
        return [self.history, self.offset, *notation, *([self.proof.hex()] if self.proof else [])]


Positions: TypeAlias = Mapping[str, Position]
"""Positions by the names of their logs, at most one for each."""


def log_name(source: str, log: str) -> str:
    """Return the name of a source's log.

    >>> log_name("shop", ""), log_name("lake", "orders")
    ('shop', 'lake.orders')
    """
    return f"{source}.{log}" if log else source


def split_log_name(name: str) -> tuple[str, str]:
    """Return the source and the log that a log's name is made of.

    >>> split_log_name("shop"), split_log_name("lake.sales.orders")
    (('shop', ''), ('lake', 'sales.orders'))
    """
    source, _, log = name.partition(".")
    return source, log


def by_log(positions: Iterable[Position]) -> dict[str, Position]:
    """Return positions by the names of their logs. The last of each log counts."""
    return {position.log_name: position for position in positions}


def of_source(positions: Positions, source: str) -> dict[str, Position]:
    """Return the positions of one source's logs."""
    return {name: position for name, position in positions.items() if position.source == source}


def are_reached(wanted: Positions, reached: Positions) -> bool:
    """Tell whether every log has come as far as is wanted of it.

    >>> at = by_log([Position(source="shop", history="71:1", offset=90)])
    >>> are_reached(at, at), are_reached(at, {}), are_reached({}, at)
    (True, False, True)
    """
    return all(name in reached and position <= reached[name] for name, position in wanted.items())


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


def read_position(log_name: str, said: Sequence[Any]) -> Position:
    """Return a stored position.

    >>> at = Position(source="lake", log="orders", history="7f", offset=3, notation=Notation(), proof=bytes([7]))
    >>> again = read_position(at.log_name, at.written())
    >>> again == at, again.proof == at.proof
    (True, True)
    """
    source, log = split_log_name(log_name)
    history, offset, *rest = said
    return Position(
        source=source,
        log=log,
        history=str(history),
        offset=int(offset),
        notation=Notation.read(rest[0]) if rest else LSN,
        proof=bytes.fromhex(rest[1]) if len(rest) > 1 else b"",
    )


def written_positions(positions: Positions) -> dict[str, list[object]]:
    """Return positions as they are stored."""
    return {name: position.written() for name, position in positions.items()}


def read_positions(said: Mapping[str, Sequence[Any]]) -> dict[str, Position]:
    """Return stored positions.

    >>> at = by_log([Position(source="shop", history="71:1", offset=90)])
    >>> read_positions(written_positions(at)) == at
    True
    """
    return {name: read_position(name, one) for name, one in said.items()}
