"""Look rows up in a kept segment where it is stored: for those that are seldom asked for, and so not held in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import quoted, to_arrow, to_dataframe
from headwater.position import Tick
from headwater.relation import COUNT, TICK, Relation
from headwater.warehouse.kept_table import KeptTable


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """A kept segment's rows as of `tick`, read on Spark by the entries under the keys."""

    relation: Relation
    tick: Tick
    table: KeptTable
    spark: SparkSession

    def lookup(self, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table | None) -> ArrowBag:
        """Return the rows whose `columns` hold one of the keys, NULLs included, or all rows; stamped with `tick`.

        Not readable is what the table does not hold at the tick.
        """
        entries = self.table.entries_dataframe(self.spark, self.tick)
        if keys is not None and columns:
            entries = self._under(entries, columns, keys)
        rows = to_arrow(entries.select(*quoted((*wanted, COUNT))))
        typed = rows.cast(pa.schema([*self.relation.arrow_schema(wanted), pa.field(COUNT, pa.int64())]))
        stamps = pa.repeat(pa.scalar(self.tick, pa.int64()), typed.num_rows)
        return ArrowBag(typed.append_column(TICK, stamps).select([*wanted, TICK, COUNT])).net()

    def _under(self, entries: DataFrame, columns: tuple[str, ...], keys: pa.Table) -> DataFrame:
        renamed = keys.select(list(columns)).rename_columns([f"key_{place}" for place in range(len(columns))])
        same = [F.col(name).eqNullSafe(F.col(f"key_{place}")) for place, name in enumerate(quoted(columns))]
        return entries.join(F.broadcast(to_dataframe(self.spark, renamed)), reduce(and_, same), "left_semi")
