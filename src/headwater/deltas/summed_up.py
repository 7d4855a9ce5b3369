"""Rows with counts and without ticks, summed up."""

from __future__ import annotations

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowBag
from headwater.model.position import Tick
from headwater.model.relation import TICK


def summed_up(rows: pa.Table) -> pa.Table:
    """Return equal rows as one, with the sum of their counts; zero sums vanish.

    >>> summed_up(pa.table({"a": [1, 1, 2, 2], "_count": [1, 1, 1, -1]})).to_pylist()
    [{'a': 1, '_count': 2}]
    """
    stamped = rows.append_column(TICK, pa.repeat(pa.scalar(Tick(0), pa.int64()), rows.num_rows))
    return ArrowBag(stamped).net().table.select(rows.column_names)
