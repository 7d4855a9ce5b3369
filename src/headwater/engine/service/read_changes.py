"""The exact change stream of a view: its signed rows, tick by tick."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowBag
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.warehouse.query import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read_changes(
    spark: Callable[[], SparkSession], warehouse: Warehouse, view: str, after: Tick, upto: Tick
) -> pa.Table:
    """Return what came (`_count` above 0) and went in the ticks (after, upto], each row once a tick, in tick order.

    Spark is needed only where that is many rows.
    """
    few = warehouse.few_changes(view, after, upto)
    if few is None:
        from headwater.deltas.on_spark import quoted, to_arrow  # noqa: PLC0415 - most reads find few rows
        from headwater.warehouse.state import net  # noqa: PLC0415 - as above

        changes = warehouse.changes_dataframe(spark(), view, after, upto)
        columns = [name for name in changes.columns if name != COUNT]
        few = to_arrow(net(changes, columns).select(*quoted((*columns, COUNT))))
    netted = ArrowBag(few).net().table
    columns = [name for name in netted.column_names if name not in (TICK, COUNT)]
    return netted.select([*columns, TICK, COUNT]).sort_by([(TICK, "ascending"), (COUNT, "ascending")])
