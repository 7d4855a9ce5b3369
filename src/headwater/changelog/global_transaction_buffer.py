"""Between the sources and the change log: hold the parts of a global transaction until all have arrived.

    a's thread ──followed──►  ┌─────────┐
    b's thread ──followed──►  │ holding │ ──captures, some of them joint──► change log ──► acknowledge
    `headwater release` ────► └─────────┘

What is held is in memory, or in temporary files. It is not acknowledged, so its source sends it again after a crash,
and a source is said to be accepted no further than before what is held of it: an answer that may have seen a held part
has to wait.

A source of which much is held is not read further (`is_full`): the rest waits in its own log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from headwater.changelog.capture_parts import join_captures, slice_capture, split_capture
from headwater.changelog.follow import Followed
from headwater.changelog.global_parts import Arrived, GlobalParts, Incomplete
from headwater.errors import SourceRefused
from headwater.model.memory_budget import DEFAULT_BUDGET, MemoryBudget
from headwater.model.position import Position, Positions, are_reached
from headwater.model.project import GlobalIds
from headwater.model.settings import DEFAULTS, CaptureSettings
from headwater.model.transaction import Capture

_LOOK_SECONDS = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a capture: a part, or what lies between two. Everything of its source up to `after` is before it."""

    capture: Capture
    after: Position | None
    arrived_at: float

    @property
    def committed_at(self) -> datetime:
        """When its source committed it."""
        return self.capture.transactions[0].committed_at

    @property
    def byte_count(self) -> int:
        """About how large it is."""
        return self.capture.byte_count


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalSources:
    """Which sources each global transaction has a part in, and what has its id there."""

    names: tuple[str, ...]
    ids: GlobalIds


class Holding:
    """Lets through what may be accepted. One thread uses it. `waiting` and `stuck` may be asked by any."""

    def __init__(
        self,
        sources: GlobalSources | None,
        look: Callable[[], Iterable[str]],
        settings: CaptureSettings = DEFAULTS.capture,
        budget: MemoryBudget = DEFAULT_BUDGET,
    ) -> None:
        """Without global transactions everything goes through. `look` returns the ids released since the last look."""
        self._sources = sources
        self._look = look
        self._settings = settings
        self._most_bytes = budget.incomplete_bytes(0 if sources is None else len(sources.names))
        self._looked_at = 0.0
        self._parts: GlobalParts[Piece] = GlobalParts(() if sources is None else sources.names)
        self._byte_counts = dict.fromkeys(() if sources is None else sources.names, 0)
        self._arrived_to: dict[str, Position] = {}
        self._read_to: dict[str, Position] = {}
        self.waiting: tuple[Incomplete[Piece], ...] = ()
        """The global transactions that wait for a part; replaced whole."""
        self._held_since: Mapping[str, float] = {}

    def take(self, followed: Followed) -> list[Capture]:
        """Take in what a source's thread handed over. Return what may be accepted now, in order."""
        if self._sources is None or followed.source not in self._sources.names:
            self._arrived_to.update(followed.followed_to)
            return [] if followed.capture is None else [followed.capture]
        followed_to = _of_one_log(followed)
        captures = []
        fresh = None if followed.capture is None else self._fresh(followed.capture)
        if fresh is not None:
            for ids, piece in split_capture(fresh, self._sources.ids):
                after = self._read_to.get(followed.source)
                self._read_to[followed.source] = piece.transactions[-1].position
                value = Piece(capture=piece, after=after, arrived_at=time.monotonic())
                self._byte_counts[followed.source] += value.byte_count
                captures += self._captures(self._parts.arrive(Arrived(source=followed.source, ids=ids, value=value)))
        read_to = self._read_to.get(followed.source)
        if read_to is None or read_to < followed_to:
            self._read_to[followed.source] = followed_to
        self._note()
        return captures

    def look(self) -> list[Capture]:
        """See now and then what was released. Return what may be accepted now."""
        if self._sources is None or time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return []
        self._looked_at = time.monotonic()
        captures = [capture for each in self._look() for capture in self._captures(self._parts.release(each))]
        self._note()
        return captures

    def reached(self) -> Positions:
        """Return, for each log, up to where everything was let through."""
        return dict(self._arrived_to)

    def has_read(self, positions: Positions) -> bool:
        """Tell whether all that sources committed up to positions has been let through or is held."""
        return are_reached(positions, {**self._arrived_to, **self._read_to})

    def held(self) -> frozenset[str]:
        """Return the sources that stand still at a part."""
        return frozenset(self._held_since)

    def is_stuck(self, source: str) -> bool:
        """Tell whether a source has stood still so long that nobody should count on its going on soon."""
        since = self._held_since.get(source)
        return since is not None and time.monotonic() - since > self._settings.held_wait_seconds

    def is_full(self, source: str) -> bool:
        """Tell whether so much of a source is held that no more should be read of it."""
        return self._byte_counts.get(source, 0) > self._most_bytes

    @property
    def byte_count(self) -> int:
        """About how large everything is that waits."""
        return sum(self._byte_counts.values())

    def _fresh(self, capture: Capture) -> Capture | None:
        """Leave out what came already: a source repeats what was not acknowledged when it is connected to again."""
        known = self._read_to.get(capture.transactions[0].source)
        start = 0 if known is None else sum(one.position <= known for one in capture.transactions)
        count = len(capture.transactions)
        return None if start == count else slice_capture(capture, start, count)

    def _captures(self, ticks: Sequence[Sequence[Arrived[Piece]]]) -> list[Capture]:
        """Return each tick's pieces as one capture. A piece that is alone stays what it is."""
        for one in (one for tick in ticks for one in tick):
            self._byte_counts[one.source] -= one.value.byte_count
        pieces = [[one.value.capture for one in tick] for tick in ticks]
        return [tick[0] if len(tick) == 1 else join_captures(tick) for tick in pieces]

    def _note(self) -> None:
        """Say for other threads how far every source has come, and what waits for what."""
        held_since = {}
        for source in self._byte_counts:
            first = next(iter(self._parts.waiting(source)), None)
            to = self._read_to.get(source) if first is None else first.value.after
            if to is not None:
                self._arrived_to[source] = to
            if first is not None:
                held_since[source] = first.value.arrived_at
        self._held_since = held_since
        self.waiting = tuple(self._parts.incomplete())


def _of_one_log(followed: Followed) -> Position:
    """Return how far a source with parts of global transactions was followed. One with several logs is refused."""
    if followed.followed_to.keys() != {followed.source}:
        raise SourceRefused(
            f'source "{followed.source}" cannot have parts of global transactions',
            code="HW-342",
            detail="it has more than one log, and nothing says in which order they were committed",
            hint="leave it out of the project's global transactions",
        )
    return followed.followed_to[followed.source]
