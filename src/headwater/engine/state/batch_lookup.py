"""Look rows up as of the tick where a batch begins, for segments that are computed from them.

Relations are asked for as a sweep asks for them, in the batch's snapshots and replicas, and rebased; rows that nobody
needs are left out of answers and log alike. What is kept is looked up, lineage too: from lineage that is kept
of a join, its rows are found without its operands. So what is computed is what would be kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headwater.deltas.on_arrow import ArrowBag, ArrowLookup, ArrowRequest, ArrowResult
from headwater.engine.state.segmented_lookup import SegmentedLookup
from headwater.engine.state.tick_lookup import RebasedLookup, SegmentLookup
from headwater.maintenance.questions import Log
from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.relation import RelationName, SegmentName


@dataclass(slots=True, kw_only=True)
class BatchLookup:
    """Rows as of `tick`; `read` counts them."""

    tick: Tick
    log: Log[ArrowBag]
    others: ArrowLookup
    kept: Mapping[RelationName, SegmentLookup]
    read: Counter[RelationName] = field(default_factory=Counter)

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows at the tick, of relations and of segments that are kept."""
        found = RebasedLookup(
            others=SegmentedLookup(segments=self.kept, others=self.others), log=self.log, tick=self.tick
        ).lookup(requests)
        for request, result in zip(requests, found, strict=True):
            self.read[request.relation] += len(result.rows)
        return found

    def holds(self, name: RelationName) -> bool:
        """Tell whether it is a relation, or a segment that is kept."""
        return not isinstance(name, SegmentName) or name in self.kept

    def cost(self, name: RelationName, _key_count: int) -> float | None:
        """Return about how many milliseconds a lookup takes; None for a segment that is not kept.

        Whether a relation has a replica is not known here, so all are taken to be asked for.
        """
        if not isinstance(name, SegmentName):
            return costs.QUESTION
        return self.kept[name].lookup_milliseconds if name in self.kept else None
