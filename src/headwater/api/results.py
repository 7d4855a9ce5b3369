"""What `query` answers."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.model.position import Tick


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The rows of a query, and the tick that all views in it were read at."""

    tick: Tick
    table: pa.Table
