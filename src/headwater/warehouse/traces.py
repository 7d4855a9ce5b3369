"""How often the rows of a view are traced: counts per hour, in a small file of its own for each view.

Every trace is counted by its own process; there may be no maintainer. Two traces at the same moment may count as one,
which changes no advice. What is older than a week is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from headwater.storage.notes import read_note, write_text

_FOLDER = "traces"
_HOURS = 7 * 24


def note_trace(warehouse: str, view: str, at: datetime) -> None:
    """Count a trace of a view."""
    counts = _counts(warehouse, view)
    hour = _hour(at)
    oldest = _hour(at - timedelta(hours=_HOURS))
    lasting = {one: count for one, count in counts.items() if one > oldest}
    write_text(warehouse, _path(view), json.dumps({**lasting, hour: lasting.get(hour, 0) + 1}))


def traces_per_hour(warehouse: str, view: str, now: datetime) -> float | None:
    """Return how often a view was traced per hour, since its first trace or in the last week. None means never."""
    counts = {
        hour: count for hour, count in _counts(warehouse, view).items() if hour > _hour(now - timedelta(hours=_HOURS))
    }
    if not counts:
        return None
    first = datetime.fromisoformat(min(counts))
    return sum(counts.values()) / max(1.0, (now - first) / timedelta(hours=1))


def _counts(warehouse: str, view: str) -> dict[str, int]:

    def parse(said: Mapping[str, Any]) -> dict[str, int]:
        return {datetime.fromisoformat(hour).isoformat(): int(count) for hour, count in said.items()}

    return read_note(warehouse, _path(view), parse) or {}


def _hour(at: datetime) -> str:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0).isoformat()


def _path(view: str) -> str:
    return f"{_FOLDER}/{view}.json"
