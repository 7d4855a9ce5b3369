"""How far the sources' logs were followed, as the maintainer last said in its small file.

What it says is in the change log already when it is said, so a reader of the file and then of the log knows that
the log holds every transaction up to there. The file may be missing or old: then less is known, and nothing wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headwater.model.position import Position, read_position
from headwater.storage.data_file import read_note
from headwater.warehouse.folders import status_file


def noted_status(warehouse: str) -> Mapping[str, Any]:
    """Return what the maintainer last said, or nothing if none ever did."""
    return read_note(warehouse, status_file(warehouse).name, _checked) or {}


def _checked(note: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was said, if it is whole: everything is in it that is looked for."""
    datetime.fromisoformat(note["messages"]["since"])
    for source in note["sources"].values():
        _ = source["state"], source["position"], source["retry_at"], source["error"]
    return note


def noted_position(source: str, note: Mapping[str, Any]) -> Position | None:
    """Return how far a source was followed, from what was said of it."""
    position = note.get("position")
    return None if position is None else read_position(source, position)


def followed_positions(warehouse: str) -> dict[str, Position]:
    """Return how far each source was followed, as far as the maintainer said."""
    sources = noted_status(warehouse).get("sources", {})
    positions = {name: noted_position(name, one) for name, one in sources.items()}
    return {name: position for name, position in positions.items() if position is not None}
