"""What `explain` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainResult:
    """How a view is maintained: in five lines, in full, and as plain data (texts, numbers, lists, mappings)."""

    view: str
    summary: tuple[str, ...]
    text: str
    data: Mapping[str, object]
