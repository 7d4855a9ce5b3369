"""Old rows of a segment that is not kept: computed from what it reads, of the groups that are looked up.

    lookup of keys ──► those that nobody looked up before ──► rows of the operands under them ──► the segment's rows
                   ──► those that are known ────────────────────────────────────────────────────► the same

A batch looks the same groups up more than once (a group its own old row, a join above it the row again), and no group
is computed twice. Everything is as of the tick where the batch begins, and is forgotten with it.

Keys with a NULL lead nowhere (no source is asked for NULLs): then a segment is computed under the other columns, or
whole if there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.first_rows import FirstRows
from headwater.deltas.indexed_rows import IndexedRows, is_among
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.order import Order
from headwater.lineage.reach import restrict
from headwater.lineage.segment_rows import SegmentRows
from headwater.position import Tick
from headwater.relation import COUNT, Relation
from headwater.runtime.old_rows import first_rows
from headwater.runtime.segment_reader import SegmentReader


@dataclass(slots=True, kw_only=True)
class ComputedSegment:
    """A segment's rows as of `tick`; `rows` computes them."""

    relation: Relation
    tick: Tick
    rows: SegmentRows
    _known: dict[tuple[str, ...], tuple[pa.Table, SegmentReader]] = field(default_factory=dict)
    """By the columns that were looked up: the keys that were, and the rows that have one of them."""

    def lookup(self, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table | None) -> ArrowBag:
        """Return the rows whose `columns` hold one of the keys, NULLs included, or all rows; stamped with `tick`."""
        if keys is None or not columns:
            return self._reader(self.rows.of_segment(self.relation.name, None).rows).lookup(wanted, (), None)
        sought = keys.select(list(columns)).cast(self.relation.arrow_schema(columns))
        known, reader = self._known.get(columns) or (sought.slice(0, 0), self._reader(self._nothing()))
        fresh = sought.filter(pc.invert(is_among(sought, columns, known)))
        if fresh.num_rows:
            reader.absorb(self._computed(fresh, columns), self.tick)
            self._known[columns] = pa.concat_tables([known, fresh]), reader
        return reader.lookup(wanted, columns, sought)

    def first(self, order: Order, count: int) -> FirstRows:
        """Return at least the first `count` rows in an order, or all if they are fewer."""
        return first_rows(self, order, count)

    def _computed(self, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return exactly the rows that have one of the keys."""
        found = []
        for part in _with_and_without_nulls(keys):
            within = restrict(self.relation, {name: name for name in columns}, part)
            rows = self.rows.of_segment(self.relation.name, within).rows
            found.append(rows.filter(is_among(rows, tuple(columns), part)))
        return pa.concat_tables(found)

    def _reader(self, rows: pa.Table) -> SegmentReader:
        return SegmentReader(relation=self.relation, tick=self.tick, base=IndexedRows(rows))

    def _nothing(self) -> pa.Table:
        return pa.schema([*self.relation.arrow_schema(), pa.field(COUNT, pa.int64())]).empty_table()


def _with_and_without_nulls(keys: pa.Table) -> Iterator[pa.Table]:
    """Yield the keys that have no NULL, and those that have one, where there are any."""
    whole = keys.drop_null()
    if whole.num_rows:
        yield whole
    if whole.num_rows < keys.num_rows:
        has_null = pc.is_null(keys.column(0))
        for column in keys.columns[1:]:
            has_null = pc.or_(has_null, pc.is_null(column))
        yield keys.filter(has_null)
