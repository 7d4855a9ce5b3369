"""What `query` and `history` answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from headwater.model.position import Tick
from headwater.observe.status import MessageCount


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The rows of a query, and the tick that all views in it were read at."""

    tick: Tick
    table: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """What one commit did to a view: ticks (lo, hi], rows that came and went, seconds per part.

    `asked` is what sources were asked for this view. `spark_job_count` is what its batch ran on Spark, for all views
    together.
    """

    lo: Tick
    hi: Tick
    committed_at: datetime
    rows_added: int
    rows_removed: int
    asked: tuple[MessageCount, ...]
    spark_job_count: int
    seconds: Mapping[str, float]

    @property
    def probe_count(self) -> int:
        """How often sources were asked for this view."""
        return sum(count.probe_count for count in self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryResult:
    """A view's commits, oldest first."""

    view: str
    birth: Tick
    commits: tuple[HistoryEntry, ...]
