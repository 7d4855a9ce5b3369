"""What a sweep asks about segments: answered from their old rows, exactly as of the batch's beginning.

A segment has no log of its own and needs none: its old rows are those where the batch begins, and the batch's
changes of the segment are computed before anybody joins them. So there is nothing to rebase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.deltas.on_arrow import ArrowBag, ArrowKeys, empty_table
from headwater.maintenance.questions import Answer, Ask, Log, Probe, SawTicks, Sight
from headwater.position import Tick
from headwater.relation import Relation, RelationName
from headwater.runtime.batch import Performer
from headwater.runtime.old_rows import OldRows
from headwater.views.segments import SEGMENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPerformer:
    """Answers a sweep's questions: about segments from their old rows, about relations by whoever knows those."""

    readers: Mapping[RelationName, OldRows]
    others: Performer

    def __call__(self, ask: Ask[ArrowKeys]) -> Sequence[Answer[ArrowBag]]:
        """Answer the probes of one question."""
        asked = tuple(probe for probe in ask.probes if probe.relation.source != SEGMENTS)
        told = iter(self.others(Ask(probes=asked)) if asked else ())
        return [self._kept(probe) if probe.relation.source == SEGMENTS else next(told) for probe in ask.probes]

    def _kept(self, probe: Probe[ArrowKeys]) -> Answer[ArrowBag]:
        reader = self.readers[probe.relation]
        keys = None if probe.keys is None else probe.keys.table.rename_columns(list(probe.columns))
        return Answer(rows=reader.lookup(probe.wanted, probe.columns, keys), sight=SawTicks(upto=reader.tick))


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLog:
    """The change log with segments in it, of which it has nothing to tell beyond what their readers show."""

    log: Log[ArrowBag]
    segments: Mapping[RelationName, Relation]

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        """Return the signed rows that were seen and whose tick is after this one."""
        if relation.source == SEGMENTS:
            return self._nothing(relation, columns)
        return self.log.seen_after(relation, columns, sight, tick)

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        """Return the signed rows that were not seen and whose tick is not after this one."""
        if relation.source == SEGMENTS:
            return self._nothing(relation, columns)
        return self.log.unseen_upto(relation, columns, sight, tick)

    def _nothing(self, relation: RelationName, columns: tuple[str, ...]) -> ArrowBag:
        return ArrowBag(empty_table(self.segments[relation].arrow_schema(columns)))
