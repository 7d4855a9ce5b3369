"""What the demo tells besides the maintainer's events: which part it is in, and how everything is doing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from headwater.model.position import Position, Tick
from headwater.observe.events import Event


class Scene(Enum):
    """A part of the demo, in the order in which they come."""

    STARTING = "starting three PostgreSQL servers and Spark"
    FILLING = "creating tables and audit triggers, filling them"
    PLANNING = "understanding the views"
    BIRTH = "computing the views for the first time, while writers begin"
    WRITING = "five writers change all three servers, the views follow"
    SETTLING = "writers have stopped, the views come to the end"
    RECOMPUTING = "recomputing every state from what the servers' own triggers noted"
    LEAVING = "stopping everything"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePulse:
    """How a source is doing: its writers' commits, and how far the change log is behind its own log."""

    name: str
    tables: str
    commit_count: int
    position: Position | None
    lag_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPulse:
    """The state of a view. None if it is not created yet."""

    name: str
    frontier: Tick | None
    row_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """How everything is doing, when this part (0 to 1) of the writing is over."""

    part: float
    accepted: Tick
    sources: tuple[SourcePulse, ...]
    views: tuple[ViewPulse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The history has been replayed, and every view recomputed, up to a tick."""

    tick: Tick
    through: Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOpened:
    """The console shows the demo, at this address."""

    address: str


DemoEvent: TypeAlias = Event | Scene | Pulse | Replayed | ConsoleOpened
DemoListener: TypeAlias = Callable[[DemoEvent], None]
