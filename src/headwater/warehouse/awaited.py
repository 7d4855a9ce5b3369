"""Positions that somebody beside the maintainer waits for: a small file for each source, which the maintainer notices.

Without it, an idle source tells how far it is when it pleases, which may be many seconds later. What was reached is
done, so nobody has to remove a file; a later one replaces it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headwater.changelog.data_file import read_note, write_text
from headwater.errors import WarehouseRefused
from headwater.position import Position

_FOLDER = "awaited"


def note_awaited(warehouse: str, position: Position) -> None:
    """Write down that somebody waits until the change log has come to a position."""
    text = json.dumps({"history": position.history, "offset": position.offset})
    write_text(warehouse, f"{_FOLDER}/{position.source}.json", text)


def awaited_position(warehouse: str, source: str) -> Position | None:
    """Return the position of a source that somebody waited for last."""

    def parse(said: Mapping[str, Any]) -> Position:
        return Position(source=source, history=str(said["history"]), offset=int(said["offset"]))

    try:
        return read_note(warehouse, f"{_FOLDER}/{source}.json", parse)
    except WarehouseRefused:
        return None  # it only hastens, and whoever waits writes it again
