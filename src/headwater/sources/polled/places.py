"""Which place a URL names: an SQLite file, a folder of files, or a database that SQLAlchemy knows."""

from __future__ import annotations

import re

from headwater.errors import InvalidProject
from headwater.sources.polled.folder import FolderPlace
from headwater.sources.polled.place import Place
from headwater.sources.polled.sqlite import SqlitePlace
from headwater.sources.source import SourceSettings

_DEFAULT_SECONDS = 60.0
_LEAST_SECONDS = 0.05
_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


def place_at(url: str, settings: SourceSettings) -> Place:
    """Return the place that a URL names. Nothing is connected yet."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return SqlitePlace.at(url, settings.name, settings.probe_timeout_seconds)
    if scheme == "files":
        return FolderPlace.at(url, settings.name)
    from headwater.sources.polled.database import DatabasePlace  # noqa: PLC0415 - SQLAlchemy is an extra

    return DatabasePlace.at(settings)


def poll_seconds_of(settings: SourceSettings) -> float:
    """Return how often a source is polled."""
    said = settings.options.get("poll", f"{_DEFAULT_SECONDS:.0f} s")
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h)\s*", str(said))
    if match and (seconds := float(match[1]) * _UNITS[match[2]]) >= _LEAST_SECONDS:
        return seconds
    raise InvalidProject(
        f'source "{settings.name}" does not say how often it is polled',
        code="HW-356",
        detail=f'poll = "{said}"' + (f" ({settings.declared_in})" if settings.declared_in else ""),
        hint='write for instance poll = "60 s", or "10 min"; the least is "50 ms"',
    )
