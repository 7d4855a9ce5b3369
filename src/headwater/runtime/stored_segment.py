"""Look rows up in a kept segment where it is stored: for those that are seldom asked for, and so not held in memory.

Where few rows have to be looked at, they are read here: a Spark job would take longer. Where many, on Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.deltas.first_rows import FirstRows
from headwater.deltas.indexed_rows import is_among
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import quoted, to_arrow, to_dataframe
from headwater.deltas.order import Order
from headwater.position import Tick
from headwater.relation import COUNT, TICK, Relation
from headwater.runtime.old_rows import first_rows
from headwater.warehouse import few_rows
from headwater.warehouse.kept_table import KeptTable


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """A kept segment's rows as of `tick`, read by the entries under the keys."""

    relation: Relation
    tick: Tick
    table: KeptTable
    spark: SparkSession

    def lookup(self, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table | None) -> ArrowBag:
        """Return the rows whose `columns` hold one of the keys, NULLs included, or all rows; stamped with `tick`.

        Not readable is what the table does not hold at the tick.
        """
        sought = keys.select(list(columns)) if keys is not None and columns else None
        rows = self._read_here(wanted, sought)
        if rows is None:
            rows = self._read_on_spark(wanted, sought)
        typed = rows.select([*wanted, COUNT]).cast(
            pa.schema([*self.relation.arrow_schema(wanted), pa.field(COUNT, pa.int64())])
        )
        stamps = pa.repeat(pa.scalar(self.tick, pa.int64()), typed.num_rows)
        return ArrowBag(typed.append_column(TICK, stamps).select([*wanted, TICK, COUNT])).net()

    def first(self, order: Order, count: int) -> FirstRows:
        """Return at least the first `count` rows in an order, or all if they are fewer."""
        return first_rows(self, order, count)

    def _read_here(self, wanted: tuple[str, ...], keys: pa.Table | None) -> pa.Table | None:
        """Return the entries under the keys; None if they are not found in few."""
        if keys is None:
            return self.table.few_entries(self.tick, wanted, None, few_rows.FEW_ROWS)
        needed = tuple(dict.fromkeys((*wanted, *keys.column_names)))
        rows = self.table.few_entries(self.tick, needed, keys, few_rows.FEW_ROWS)
        return None if rows is None else rows.filter(is_among(rows, tuple(keys.column_names), keys))

    def _read_on_spark(self, wanted: tuple[str, ...], keys: pa.Table | None) -> pa.Table:
        entries = self.table.entries_dataframe(self.spark, self.tick, keys)
        return to_arrow((entries if keys is None else self._under(entries, keys)).select(*quoted((*wanted, COUNT))))

    def _under(self, entries: DataFrame, keys: pa.Table) -> DataFrame:
        renamed = keys.rename_columns([f"key_{place}" for place in range(keys.num_columns)])
        same = [F.col(name).eqNullSafe(F.col(f"key_{place}")) for place, name in enumerate(quoted(keys.column_names))]
        return entries.join(F.broadcast(to_dataframe(self.spark, renamed)), reduce(and_, same), "left_semi")
