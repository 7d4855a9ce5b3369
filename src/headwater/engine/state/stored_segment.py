"""Look rows up in a kept table where it is stored: for those that are seldom asked for, and so not held in memory.

Where few rows have to be looked at, they are read here: a Spark job would take longer. Where many, on Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.deltas.first_rows import limited
from headwater.deltas.lookup import Origin, RowResult, SawTicks
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest, ArrowResult, with_one_zero
from headwater.deltas.on_spark import quoted, to_arrow, under_keys
from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation
from headwater.warehouse.kept_table import KeptTable


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSegment:
    """A kept table's rows as of `tick`, read by the entries under the keys. Of a segment, or of a view itself."""

    relation: Relation
    tick: Tick
    table: KeptTable
    spark: SparkSession
    few_rows: int
    """Up to this many rows are read here. To look at more, a Spark job is started."""
    origin: Origin = Origin.AUXILIARY_TABLE
    lookup_milliseconds: ClassVar[float] = costs.JOB

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows of each request, netted. Not readable is what the table does not hold at the tick."""
        return [limited(self._found(request), request) for request in requests]

    def _found(self, request: ArrowRequest) -> ArrowResult:
        few = self.table.few_rows(self.tick, request.wanted, request.within, self.few_rows)
        rows = self._read_on_spark(request) if few is None else few.counted
        typed = rows.cast(pa.schema([*self.relation.arrow_schema(request.wanted), pa.field(COUNT, pa.int64())]))
        bag = ArrowBag.of_counted(with_one_zero(typed), self.tick).net()
        return RowResult(rows=bag, sight=SawTicks(upto=self.tick), origin=self.origin)

    def _read_on_spark(self, request: ArrowRequest) -> pa.Table:
        keys = None if request.keys is None else request.keys.named(request.columns)
        entries = self.table.entries_dataframe(self.spark, self.tick, keys)
        under = entries if keys is None else under_keys(self.spark, entries, keys)
        return to_arrow(under.select(*quoted((*request.wanted, COUNT))))
