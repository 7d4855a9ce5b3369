"""What `query` answers, and how a moment is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from headwater.model.moment import Moment
from headwater.model.position import Tick

When = int | str | datetime | Moment
"""A tick, a source's position or a time, perhaps as a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The rows of a query, and the tick that all views in it were read at."""

    tick: Tick
    table: pa.Table
