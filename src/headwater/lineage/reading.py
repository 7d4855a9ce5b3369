"""Where may rows be read from? The one seam of tracing: replicas, hidden tables, lineage views, sources.

A reading is of one tick. Whoever traces asks for rows of a relation or of a segment under some values. A segment that
nobody holds is computed (`segment_rows`). What is kept of a join's lineage is asked for by name, too (`rewritings`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import pyarrow as pa

from headwater.deltas.extent import EVERYTHING, Extent
from headwater.deltas.on_arrow import ArrowKeys
from headwater.relation import RelationName

Run = Callable[[str, Mapping[str, pa.Table]], pa.Table]
"""Runs Spark SQL over tables by their names."""

Cost = Callable[[RelationName, int], float | None]
"""About how many milliseconds it takes to read rows of a relation or segment under so many keys; None: not held."""


class Origin(Enum):
    """Where rows were read."""

    VIEW = "the view"
    HIDDEN_TABLE = "a hidden table"
    LINEAGE_VIEW = "a lineage view"
    SPLIT_LINEAGE = "a split lineage table"
    REPLICA = "a replica"
    SOURCE = "the source"
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restriction:
    """Only rows whose columns hold one of the keys, none of which has a NULL."""

    columns: tuple[str, ...]
    keys: ArrowKeys


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Rows of a relation or segment that are wanted, some of their columns; `within` is everything where it is None.

    `rows` is the extent that matters to whoever asks, of a relation's columns that are among those wanted: rows outside
    of it may be missing in what is found, or not.
    """

    name: RelationName
    columns: tuple[str, ...]
    within: Restriction | None = None
    rows: Extent = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Rows with `_count`, each different one once, and where they were read."""

    rows: pa.Table
    origin: Origin


class Reading(Protocol):
    """Rows as of one tick, wherever they are."""

    def rows(self, wish: Wish) -> Found | None:
        """Return the rows that are wished for; None: no place holds them. A relation is held by its source."""
        ...
