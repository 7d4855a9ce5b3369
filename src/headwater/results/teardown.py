"""What `teardown` answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Something that was dropped at a source."""

    source: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TeardownResult:
    """What was dropped at the sources, and what could not be reached; the warehouse folder stays."""

    dropped: tuple[Dropped, ...]
    failed: tuple[Dropped, ...]
    warehouse: Path
