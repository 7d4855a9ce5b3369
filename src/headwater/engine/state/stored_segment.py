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
from headwater.deltas.on_arrow import ArrowBag, with_one_zero
from headwater.deltas.on_spark import collect_few, large_session, quoted
from headwater.deltas.stored_bag import UNKNOWN, Bag, BagRequest, BagResult, StoredBag, held_request
from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation
from headwater.model.settings import DEFAULTS
from headwater.storage.spark_files import spark_schema
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
    held_rows: int = DEFAULTS.batch.held_rows
    """Up to this many rows are held. More stay on Spark."""
    origin: Origin = Origin.AUXILIARY_TABLE
    finds_many: bool = False
    """Whether it is known that too many are found to be held."""
    lookup_milliseconds: ClassVar[float] = costs.JOB

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request, netted. Not readable is what the table does not hold at the tick."""
        return [limited(self._found(request), request) for request in requests]

    def _found(self, request: BagRequest) -> BagResult:
        rows: Bag | None = None if self.finds_many else self._held(request)
        if rows is None:
            stored = self._stored(request)
            rows = stored if request.limit is not None or self.finds_many else self._few_of(stored)
        return RowResult(rows=rows, sight=SawTicks(upto=self.tick), origin=self.origin)

    def _held(self, request: BagRequest) -> ArrowBag | None:
        """Return the rows if few have to be read to find them."""
        if request.keys is not None and request.keys.held is None:
            return None
        most = self.few_rows if request.within is not None else min(self.few_rows, self.held_rows)
        few = self.table.few_rows(self.tick, request.wanted, held_request(request).within, most)
        return None if few is None else self._typed(few.counted, request.wanted)

    def _stored(self, request: BagRequest) -> StoredBag:
        """Return the rows as Spark finds them."""
        held = None if request.keys is None else request.keys.held
        keys = None if held is None else held.named(request.columns)
        entries = self.table.entries_dataframe(large_session(self.spark), self.tick, keys)
        columns = tuple(dict.fromkeys((*request.wanted, *request.columns)))
        schema = self.relation.arrow_schema(columns)
        typed = entries.select(*quoted((*columns, COUNT))).to(spark_schema(schema.append(pa.field(COUNT, pa.int64()))))
        bag = StoredBag.of_counted(typed, schema, self.tick, UNKNOWN)
        found = bag if request.keys is None else bag.matching(request.columns, request.keys)
        return found.picked(request.wanted).net()

    def _few_of(self, rows: StoredBag) -> Bag:
        few = collect_few(rows.counted, self.held_rows)
        return rows if few is None else self._typed(few, rows.columns)

    def _typed(self, counted: pa.Table, wanted: tuple[str, ...]) -> ArrowBag:
        typed = counted.cast(pa.schema([*self.relation.arrow_schema(wanted), pa.field(COUNT, pa.int64())]))
        return ArrowBag.of_counted(with_one_zero(typed), self.tick).net()
