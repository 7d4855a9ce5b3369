"""Old rows of a segment that is not kept: computed from what it reads, of the groups that are looked up.

    lookup of keys ──► those that nobody looked up before ──► rows of the operands under them ──► the segment's rows
                   ──► those that are known ────────────────────────────────────────────────────► the same

A batch looks the same groups up more than once (a group its own old row, a join above it the row again), and no group
is computed twice. Everything is as of the tick where the batch begins, and is forgotten with it.

Keys with a NULL lead nowhere (no source is asked for NULLs): then a segment is computed under the other columns, or
whole if there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.first_rows import limited
from headwater.deltas.indexed_rows import is_among
from headwater.deltas.lookup import Origin, RowResult, SawTicks, look_up
from headwater.deltas.on_arrow import ArrowRequest, split_by_null
from headwater.deltas.stored_bag import Bag, BagLookup, BagRequest, BagResult, NotHeldError, held_request
from headwater.engine.state.reach import restrict
from headwater.engine.state.segment_reader import SegmentReader
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.tick_lookup import RebasedLookup, SegmentedLookup, SegmentLookup
from headwater.engine.state.whole_segments import WholeSegments
from headwater.maintenance.rebase import Log
from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation, RelationName, SegmentName


@dataclass(slots=True, kw_only=True)
class BatchLookup:
    """Rows as of the tick where a batch begins, for segments that are computed from them. `read` counts them.

    Relations are asked for as a sweep asks for them, in the batch's snapshots and replicas, and rebased; rows that
    nobody needs are left out of answers and log alike. What is kept is looked up, lineage too: from lineage that is
    kept of a join, its rows are found without its operands. So what is computed is what would be kept.
    """

    tick: Tick
    log: Log[Bag]
    others: BagLookup
    kept: Mapping[RelationName, SegmentLookup]
    read: Counter[RelationName] = field(default_factory=Counter)

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows at the tick, of relations and of segments that are kept."""
        found = RebasedLookup(
            others=SegmentedLookup(segments=self.kept, others=self.others), log=self.log, tick=self.tick
        ).lookup(requests)
        for request, result in zip(requests, found, strict=True):
            self.read[request.relation] += result.rows.most
        return found

    def holds(self, name: RelationName) -> bool:
        """Tell whether it is a relation, or a segment that is kept."""
        return not isinstance(name, SegmentName) or name in self.kept

    def cost(self, name: RelationName, _key_count: int) -> float | None:
        """Return about how many milliseconds a lookup takes. None for a segment that is not kept.

        Whether a relation has a replica is not known here, so all are taken to be asked for.
        """
        if not isinstance(name, SegmentName):
            return costs.QUESTION
        return self.kept[name].lookup_milliseconds if name in self.kept else None


@dataclass(slots=True, kw_only=True)
class ComputedSegment:
    """A segment's rows as of `tick`. `rows` computes those that are looked up, `whole` all of them.

    If what leads to the rows is not held, all are computed, once, and looked up on Spark.
    """

    relation: Relation
    tick: Tick
    rows: SegmentRows
    whole: WholeSegments | None = None
    lookup_milliseconds: ClassVar[float] = costs.QUESTION
    _known: dict[tuple[str, ...], tuple[pa.Table, SegmentReader]] = field(default_factory=dict)
    """By the columns that were looked up: the keys that were, and the rows that have one of them."""

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request, netted."""
        return [replace(self._found(request), origin=Origin.COMPUTED) for request in requests]

    def _found(self, request: BagRequest) -> BagResult:
        try:
            return self._held(held_request(request))
        except NotHeldError:
            assert self.whole is not None, "rows that are not held are computed by a batch"
            rows = self.whole.rows(self.relation.name)
            found = rows if request.within is None else rows.matching(request.columns, request.within.keys)
            picked = found.picked(request.wanted).net()
            return limited(RowResult(rows=picked, sight=SawTicks(upto=self.tick)), request)

    def _held(self, request: ArrowRequest) -> BagResult:
        if request.within is None:
            return look_up(self._reader(self.rows.of_segment(self.relation.name, None).rows.counted), request)
        columns = request.within.columns
        sought = request.within.keys.named(columns).cast(self.relation.arrow_schema(columns))
        known, reader = self._known.get(columns) or (sought.slice(0, 0), self._reader(self._nothing()))
        fresh = sought.filter(pc.invert(is_among(sought, columns, known)))
        if fresh.num_rows:
            reader.absorb([self._computed(fresh, columns)], self.tick)
            self._known[columns] = pa.concat_tables([known, fresh]), reader
        return look_up(reader, request)

    def _computed(self, keys: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Return exactly the rows that have one of the keys."""
        found = []
        for part in split_by_null(keys):
            within = restrict(self.relation, {name: name for name in columns}, part)
            rows = self.rows.of_segment(self.relation.name, within).rows.counted
            found.append(rows.filter(is_among(rows, tuple(columns), part)))
        return pa.concat_tables(found)

    def _reader(self, rows: pa.Table) -> SegmentReader:
        return SegmentReader.of_parts(self.relation, [rows], self.tick)

    def _nothing(self) -> pa.Table:
        return pa.schema([*self.relation.arrow_schema(), pa.field(COUNT, pa.int64())]).empty_table()
