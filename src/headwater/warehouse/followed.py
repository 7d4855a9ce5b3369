"""How far the sources' logs were followed, as the maintainer last said in its small file.

What it says is in the change log already when it is said, so a reader of the file and then of the log knows that
the log holds every transaction up to there. The file may be missing or old: then less is known, and nothing wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from headwater.model.position import Positions, read_positions
from headwater.storage.notes import read_note
from headwater.warehouse.folders import STATUS


def noted_status(warehouse: str) -> Mapping[str, Any]:
    """Return what the maintainer last said, or nothing if none ever did."""
    return read_note(warehouse, STATUS, _checked) or {}


def _checked(note: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was said, if it is whole: everything is in it that is looked for."""
    datetime.fromisoformat(note["messages"]["since"])
    for source in note["sources"].values():
        _ = source["state"], source["retry_at"], source["error"]
    return note


def noted_positions(source: str, note: Mapping[str, Any]) -> Positions:
    """Return how far the logs of a source were followed, by its note. Version 0.1 noted one position."""
    former = {source: note["position"]} if note.get("position") else {}
    return read_positions(note.get("positions", former))


def followed_positions(warehouse: str) -> Positions:
    """Return how far each log of a source was followed, as far as the maintainer said."""
    sources = noted_status(warehouse).get("sources", {})
    return {log: at for name, one in sources.items() for log, at in noted_positions(name, one).items()}
