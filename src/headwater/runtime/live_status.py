"""What the maintainer says of its sources, in a small file that `status` reads without asking it.

The file is replaced as a whole about once a second. It is for people and for `query --after`; nothing that has to be
right depends on it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from headwater.position import Position
from headwater.project import Project
from headwater.results import SourceState, SourceStatus
from headwater.runtime.acceptor import Acceptor
from headwater.warehouse.folders import status_file
from headwater.warehouse.lease import maintainer_is_alive
from headwater.warehouse.query import Warehouse


def write_sources(warehouse: str, acceptor: Acceptor, *, bootstrapping: bool) -> None:
    """Say how every source is doing."""
    accepted = acceptor.accepted_to()
    sources = {
        name: {
            "state": _state(thread.is_connected, thread.has_ended, bootstrapping).value,
            "position": _position(accepted.get(name)),
            "error": "" if thread.error is None else thread.error.summary,
            "retry_at": thread.retry_at,
        }
        for name, thread in acceptor.threads().items()
    }
    file = status_file(warehouse)
    writing = file.with_suffix(".writing")
    writing.write_text(json.dumps({"said_at": datetime.now(UTC).isoformat(), "sources": sources}))
    writing.replace(file)


def _state(is_connected: bool, has_ended: bool, bootstrapping: bool) -> SourceState:
    if has_ended:
        return SourceState.LOST
    if not is_connected:
        return SourceState.UNAVAILABLE
    return SourceState.BOOTSTRAPPING if bootstrapping else SourceState.FOLLOWING


def _position(position: Position | None) -> list[object] | None:
    return None if position is None else [position.history, position.offset]


def read_sources(project: Project, warehouse: Warehouse) -> tuple[SourceStatus, ...]:
    """Return how the sources were doing when the maintainer last said so, and how far their logs were followed."""
    said, alive = _said(warehouse.path), maintainer_is_alive(warehouse.path)
    known = warehouse.log.positions()
    return tuple(
        _status(source.name, said.get(source.name), known.get(source.name), alive=alive) for source in project.sources
    )


def _said(warehouse: str) -> Mapping[str, Mapping[str, object]]:
    try:
        content = json.loads(status_file(warehouse).read_text())
    except FileNotFoundError:
        return {}
    sources: Mapping[str, Mapping[str, object]] = content["sources"]
    return sources


def _status(name: str, said: Mapping[str, object] | None, known: Position | None, *, alive: bool) -> SourceStatus:
    if said is None:
        return SourceStatus(name=name, state=SourceState.NOT_STARTED, position=known)
    position, retry_at = said["position"], said["retry_at"]
    if isinstance(position, list):
        known = Position(source=name, history=str(position[0]), offset=int(position[1]))
    if not alive:
        return SourceStatus(name=name, state=SourceState.NOT_STARTED, position=known)
    return SourceStatus(
        name=name,
        state=SourceState(said["state"]),
        position=known,
        last_error=str(said["error"]),
        retry_in_seconds=max(0.0, retry_at - time.time()) if isinstance(retry_at, float) else None,
    )
