"""Messages to the maintainer of a warehouse: small files in it.

A message can be written while no maintainer runs: the next one sees it too. A file need not be removed; a later message
replaces an earlier one.

| folder | says |
|---|---|
| `awaited` | a reader waits until the change log has come to a position; an idle source would report it much later |
| `refreshes` | a reader needs a view at a tick |
| `released` | the parts of a global transaction need not wait for each other; never changed, as parts may come late |
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headwater.errors import WarehouseRefused
from headwater.model.position import Positions, Tick, of_source, read_positions, written_positions
from headwater.storage.notes import read_note, write_text
from headwater.storage.object_store import look_seconds, store_at
from headwater.storage.storage_errors import stored

_AWAITED = "awaited"
_REFRESHES = "refreshes"
_RELEASED = "released"


def note_awaited(warehouse: str, positions: Positions) -> None:
    """Write down that somebody waits until the change log has come to positions."""
    for source in {position.source for position in positions.values()}:
        text = json.dumps({"positions": written_positions(of_source(positions, source))})
        write_text(warehouse, f"{_AWAITED}/{source}.json", text)


def awaited_positions(warehouse: str, source: str) -> Positions:
    """Return the positions of a source that somebody waited for last."""

    def parse(said: Mapping[str, Any]) -> Positions:
        return read_positions(said["positions"])

    try:
        return read_note(warehouse, f"{_AWAITED}/{source}.json", parse) or {}
    except WarehouseRefused:
        return {}  # it only saves time, and the reader that waits writes it again


def note_refresh(warehouse: str, view: str, upto: Tick) -> None:
    """Write down that a view is wanted at a tick."""
    write_text(warehouse, f"{_REFRESHES}/{view}.json", json.dumps({"view": view, "upto": upto}))


def requested_refreshes(warehouse: str) -> dict[str, Tick]:
    """Return the views that were asked for, and at which tick they are wanted."""
    names = _messages(warehouse, _REFRESHES)
    found = [read_note(warehouse, f"{_REFRESHES}/{name}", _request) for name in names]
    return dict(one for one in found if one is not None)


def _request(note: Mapping[str, Any]) -> tuple[str, Tick]:
    return str(note["view"]), Tick(int(note["upto"]))


def note_release(warehouse: str, global_id: str) -> None:
    """Write down, durably, that the parts of a global transaction need not wait for each other."""
    path = f"{_RELEASED}/{hashlib.sha256(global_id.encode()).hexdigest()[:32]}.json"
    text = json.dumps({"id": global_id, "released_at": datetime.now(UTC).isoformat()})
    write_text(warehouse, path, text, durable=True)


class Releases:
    """What was released in a warehouse, looked at again and again. Each file is read once."""

    def __init__(self, warehouse: str, remote_look_seconds: float = 0.0) -> None:
        """Know nothing yet."""
        self._warehouse = warehouse
        self._look_seconds = look_seconds(warehouse, 0.0, remote_look_seconds)
        self._looked_at = float("-inf")
        self._read: set[str] = set()

    def look(self) -> list[str]:
        """Return the ids that were released since the last look."""
        if time.monotonic() - self._looked_at < self._look_seconds:
            return []
        self._looked_at = time.monotonic()
        names = _messages(self._warehouse, _RELEASED)
        found = []
        for name in sorted({*names} - self._read):
            released = read_note(self._warehouse, f"{_RELEASED}/{name}", lambda note: str(note["id"]))
            if released is not None:
                found.append(released)
            self._read.add(name)
        return found


def _messages(warehouse: str, folder: str) -> list[str]:
    """Return the names of the files in a folder of messages."""
    with stored(f"{warehouse}/{folder}"):
        return [name for name in store_at(warehouse).names(folder) if name.endswith(".json")]
