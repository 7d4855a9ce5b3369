"""What a source knows of its relations' sizes, and what it costs to ask it: the statistics of advice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.model.relation import RelationName


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMeasure:
    """A column: its mean width in bytes, and how many different values it has."""

    width: float
    distinct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationMeasure:
    """A relation's rows, and its columns by name."""

    rows: float
    columns: Mapping[str, ColumnMeasure]

    def row_size(self, names: tuple[str, ...]) -> float:
        """Return the bytes of some columns of a row."""
        return sum(self.columns[name].width for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMeasure:
    """A source: its relations, and the time of a question, of a byte of its answer, and of a block that is scanned."""

    relations: Mapping[RelationName, RelationMeasure]
    block_bytes: int
    trip_seconds: float
    byte_seconds: float
    block_seconds: float
