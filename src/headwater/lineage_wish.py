"""What `keep =` of a view may say: lineage that is kept beside it, for tracing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class LineageKind(Enum):
    """What may be kept of a segment's join, beside its rows, so that they can be traced."""

    VIEW = "lineage"
    """The lineage view: every row of the join, with the columns of all its operands."""
    SPLIT = "split"
    """The split lineage tables: for every operand the rows that are in the join, each once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineageWish:
    """An entry of a view's `keep`: a kind, of a segment by the name that `explain` shows."""

    kind: LineageKind
    of: str

    def __str__(self) -> str:
        """Return it as the project file writes it."""
        return f"{self.kind.value}:{self.of}"
