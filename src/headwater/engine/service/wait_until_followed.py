"""Wait until the change log knows all that a snapshot saw, beside a maintainer or without one.

A reader never takes the lease. Where nobody maintains the warehouse, what the change log lacks is read from the
source's own log, which forgets nothing by that, and is laid over the change log in memory.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from headwater.changelog import ChangeLog
from headwater.changelog.follow import altered_relation
from headwater.engine.service.live_status import read_sources
from headwater.errors import NotReadable, SourceUnavailable, WarehouseRefused
from headwater.model.position import Positions, are_reached, by_log, of_source
from headwater.model.transaction import Capture
from headwater.project.resolve import ResolvedProject
from headwater.sources.source import require_held
from headwater.warehouse.lease import maintainer_is_alive
from headwater.warehouse.mailbox import note_awaited
from headwater.warehouse.query import Warehouse

_LOOK_SECONDS = 0.02


def wait_until_followed(resolved: ResolvedProject, warehouse: Warehouse, positions: Positions) -> None:
    """Wait until the log has come to positions. Where no maintainer runs, look ahead of it to there."""
    is_ahead = warehouse.log.last_tick > warehouse.log.durable_tick
    if is_ahead or not wait_for_maintainer(resolved, warehouse, positions):
        for source in sorted({position.source for position in positions.values()}):
            _look_ahead(resolved, warehouse, source)


def wait_for_maintainer(resolved: ResolvedProject, warehouse: Warehouse, positions: Positions) -> bool:
    """Wait until the maintainer has followed sources to positions. False: there is no maintainer."""
    with contextlib.suppress(WarehouseRefused):  # it only makes the waiting shorter, and the folder may be read-only
        note_awaited(warehouse.path, positions)
    wait_seconds = resolved.project.settings.reading.follow_wait_seconds
    deadline = time.monotonic() + wait_seconds
    while time.monotonic() < deadline:
        said = read_sources(resolved.project, warehouse)
        if are_reached(positions, by_log(position for status in said for position in status.positions)):
            return True
        if not maintainer_is_alive(warehouse.path):
            return False
        time.sleep(_LOOK_SECONDS)  # the maintainer is another process: its heartbeat is a file, which notifies nobody
    raise SourceUnavailable(
        "the log of a source was not followed to what was seen",
        code="HW-534",
        detail=f"waited {wait_seconds:g} s for {', '.join(map(str, positions.values()))}",
        hint="see `headwater status`, then try again",
    )


def _look_ahead(resolved: ResolvedProject, warehouse: Warehouse, source: str) -> None:
    """Lay what a source's log holds beyond the change log over it, in memory.

    A maintainer that was there meanwhile may have let the source forget what it appended: then it is read again.
    """
    log = warehouse.log
    log.refresh()
    capture = _peek(resolved, log, source)
    while log.has_moved():
        if log.last_tick > log.durable_tick:
            raise SourceUnavailable(
                "a maintainer has begun while the sources were read", code="HW-439", hint="try again: it goes on now"
            )
        log.refresh()
        capture = _peek(resolved, log, source)
    _require_held(resolved, log, source)
    if capture is None:
        return
    if capture.altered:
        raise altered_relation(capture)
    truncated = sorted({str(name) for names in capture.truncated.values() for name in names})
    if truncated:
        raise NotReadable(
            f"{truncated[0]} was truncated since the warehouse was last maintained",
            code="HW-429",
            detail="which rows were removed is known only after a maintainer has read the TRUNCATE",
            hint="run `headwater run --until-idle`, then try again",
        )
    log.look_ahead([capture])


def _peek(resolved: ResolvedProject, log: ChangeLog, source: str) -> Capture | None:
    """Return what a source's log holds beyond the change log, by the slot that the warehouse follows by."""
    asked, recorded = resolved.sources[source], log.slots().get(source)
    slot = asked.slots().former if recorded is None else recorded.name
    return asked.peek(resolved.followed(source), slot, of_source(log.positions(), source))


def _require_held(resolved: ResolvedProject, log: ChangeLog, source: str) -> None:
    """Refuse what was peeked at if the source has forgotten more than the change log holds. Asked after peeking."""
    recorded = log.slots().get(source)
    if recorded is not None and recorded.has_begun:
        found = resolved.sources[source].slots().present.get(recorded.name)
        if found is not None:
            require_held(recorded.name, found.forgotten_to, log.positions())


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintainersLog:
    """Waits for the warehouse's maintainer: for snapshots that are opened beside it."""

    resolved: ResolvedProject
    warehouse: Warehouse

    def wait_for(self, positions: Positions, timeout_seconds: float) -> bool:
        """Wait until the change log holds everything up to positions, for as long as that may take."""
        del timeout_seconds
        if not are_reached(positions, self.warehouse.log.positions()):
            wait_until_followed(self.resolved, self.warehouse, positions)
        return True

    def held(self, source: str) -> Positions:
        """Return up to where the change log holds everything that a source committed."""
        return of_source(self.warehouse.log.positions(), source)
