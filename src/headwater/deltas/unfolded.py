"""A signed bag of rows that are there, as plain rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.on_arrow import ArrowBag
from headwater.model.relation import COUNT


def unfolded(bag: ArrowBag) -> pa.Table:
    """Return plain rows: one that counts k stands k times.

    >>> unfolded(ArrowBag(pa.table({"a": [1, 2], "_count": [2, 1]}))).to_pylist()
    [{'a': 1}, {'a': 1}, {'a': 2}]
    """
    counts = bag.table[COUNT].combine_chunks()
    places = pc.list_parent_indices(
        pa.ListArray.from_arrays(
            pa.concat_arrays([pa.array([0], pa.int32()), pc.cast(pc.cumulative_sum(counts), pa.int32())]),
            pa.nulls(pc.sum(counts).as_py() or 0),
        )
    )
    return bag.table.select(bag.columns).take(places)
