"""How many rows a view has at a tick, without reading them.

Delta knows how many rows the checkpoint's files hold, and the changes since are signed: only their ticks and counts are
read, of the files that hold any after the checkpoint's tick. So it costs as much as what happened since the checkpoint.
"""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.dataset as ds

from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.storage.data_file import place
from headwater.warehouse.kept_table import KeptTable


def row_count(table: KeptTable, at: Tick) -> int:
    """Return how often rows stand in a view at a tick at or after its checkpoint's, or shortly before."""
    with table.checkpoint.table.lock:
        tick = table.checkpoint.snapshot().tick
        base = table.checkpoint.row_count()
    table.changes.reload()
    low, high = min(at, tick), max(at, tick)
    files = table.changes.files(after=low, upto=high)
    if low == high or not files:
        return base
    system, _ = place(table.changes.path)
    in_range = (ds.field(TICK) > low) & (ds.field(TICK) <= high)
    counts = ds.dataset([place(file)[1] for file in files], format="parquet", filesystem=system).to_table(
        columns=[COUNT], filter=in_range
    )
    moved = pc.sum(counts[COUNT]).as_py() or 0
    return base + (moved if at > tick else -moved)
