"""Where may rows be read from? The one seam of tracing: replicas, hidden tables, sources, and later lineage views.

A reading is of one tick. Whoever traces asks for rows of a relation or of a segment under some values, and says for
which occurrence of which join they are; a place that holds just the rows that join there (a lineage view, a split
lineage table) may answer as well as one that holds them all. A segment that nobody holds is computed (`segment_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowKeys
from headwater.relation import RelationName

Run = Callable[[str, Mapping[str, pa.Table]], pa.Table]
"""Runs Spark SQL over tables by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """Only rows whose columns hold one of the keys, none of which has a NULL."""

    columns: tuple[str, ...]
    keys: ArrowKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Rows of a relation or segment that are wanted, some of their columns; `within` is everything where it is None.

    `reader` and `alias` tell the segment whose join they are for and the occurrence in it; there may be none.
    """

    name: RelationName
    columns: tuple[str, ...]
    within: Restriction | None = None
    reader: RelationName | None = None
    alias: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Rows with `_count`, each different one once, and in words where they were read."""

    rows: pa.Table
    origin: str


class Reading(Protocol):
    """Rows as of one tick, wherever they are."""

    def rows(self, wish: Wish) -> Found | None:
        """Return exactly the rows that are wished for; None: no place holds them. A relation is held by its source."""
        ...
