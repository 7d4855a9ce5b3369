"""Which state of the warehouse a reader asks for: after a tick, after a source's position, or at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from headwater.errors import NotReadable
from headwater.model.position import Tick, log_name, split_log_name

_LOG_AND_POSITION = re.compile(r"([a-z][a-z0-9_]*(?:\.[^\s:]+)?):([0-9A-Za-z][!-~]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtTick:
    """The state after one tick."""

    tick: Tick

    def __str__(self) -> str:
        """Return the moment as it is written after `--at`."""
        return str(self.tick)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtPosition:
    """The first state that holds everything a source committed up to a position of its log.

    Which offset the text means is the source's own notation; the warehouse has stored it.
    """

    source: str
    log: str = ""
    """Which log of the source; empty where it has only one."""
    text: str

    @property
    def log_name(self) -> str:
        """The name of the log."""
        return log_name(self.source, self.log)

    def __str__(self) -> str:
        """Return the moment as it is written after `--at`."""
        return f"{self.log_name}:{self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtTime:
    """The state that readers saw at a time."""

    time: datetime

    def __str__(self) -> str:
        """Return the moment as it is written after `--at`."""
        return self.time.isoformat()


Moment: TypeAlias = AtTick | AtPosition | AtTime


def parse_moment(text: str) -> Moment:
    """Return the moment that a text names. A time without a zone is UTC.

    >>> parse_moment("42")
    AtTick(tick=42)
    >>> parse_moment("shop:0/16B3748")
    AtPosition(source='shop', log='', text='0/16B3748')
    >>> str(parse_moment("lake.orders:12"))
    'lake.orders:12'
    >>> str(parse_moment("2026-11-15 10:30"))
    '2026-11-15T10:30:00+00:00'
    """
    written = text.strip()
    if re.fullmatch(r"[0-9]+", written):
        return AtTick(tick=Tick(int(written)))
    if match := _LOG_AND_POSITION.fullmatch(written):
        source, log = split_log_name(match[1])
        return AtPosition(source=source, log=log, text=match[2])
    try:
        return AtTime(time=_with_zone(datetime.fromisoformat(written)))
    except ValueError:
        raise _not_a_moment(f'"{text}"') from None


def parse_position(text: str) -> AtPosition:
    """Return the position that a text names. Anything else is refused.

    >>> str(parse_position("shop:0/16B3748"))
    'shop:0/16B3748'
    """
    moment = parse_moment(text)
    if isinstance(moment, AtPosition):
        return moment
    raise NotReadable(
        f'"{text}" is not a position of a source',
        code="HW-121",
        detail="only a source's own log says whether a write is in",
        hint="write SOURCE:POSITION, for instance shop:0/16B3748 (PostgreSQL: SELECT pg_current_wal_insert_lsn())",
    )


def as_moment(value: int | str | datetime | Moment) -> Moment:
    """Return the moment that a Python caller means: a tick, a text, a time, or a moment already.

    >>> as_moment(7)
    AtTick(tick=7)
    """
    if isinstance(value, bool) or not isinstance(value, int | str | datetime | AtTick | AtPosition | AtTime):
        raise _not_a_moment(repr(value))
    match value:
        case int():
            return AtTick(tick=Tick(value))
        case str():
            return parse_moment(value)
        case datetime():
            return AtTime(time=_with_zone(value))
        case AtTick() | AtPosition() | AtTime():
            return value


def _not_a_moment(written: str) -> NotReadable:
    return NotReadable(
        f"{written} is not a moment",
        code="HW-120",
        detail="it is neither a tick, nor SOURCE:POSITION, nor an ISO time",
        hint='write for instance 42, shop:0/16B3748, or "2026-11-15T10:30:00Z"',
    )


def _with_zone(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
