"""What asking sources costs: counted by relation while a view is computed, told in events, kept by source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from headwater.model.relation import RelationName
from headwater.observe.events import Listener, ProbeAnswered, ProbeCount

if TYPE_CHECKING:  # counting needs no Spark
    from headwater.deltas.stored_bag import BagRequest, BagResult


@dataclass(slots=True)
class ProbeStats:
    """What sources were asked, by relation, or empty if nothing was asked."""

    by_relation: dict[RelationName, ProbeCount] = field(default_factory=dict)
    seconds: dict[RelationName, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether anything was asked."""
        return bool(self.by_relation)

    def __iter__(self) -> Iterator[RelationName]:
        """Yield the relations that were asked for."""
        return iter(self.by_relation)

    def count(self, request: BagRequest, result: BagResult) -> None:
        """Count what a source was asked and what it answered."""
        cost = ProbeCount(
            probe_count=1,
            key_count=0 if request.keys is None else request.keys.most,
            row_count=result.rows.most,
            byte_count=result.byte_count,
        )
        self._add(request.relation, cost, result.seconds)

    def _add(self, relation: RelationName, cost: ProbeCount, seconds: float) -> None:
        self.by_relation[relation] = self.by_relation.get(relation, ProbeCount()) + cost
        self.seconds[relation] = self.seconds.get(relation, 0.0) + seconds

    def take_corrected(self, rows: Counter[RelationName]) -> None:
        """Take what was corrected in the answers of the relations that were asked for."""
        for relation in self.by_relation:
            self._add(relation, ProbeCount(corrected_row_count=rows.pop(relation, 0)), 0.0)

    @classmethod
    def merge(cls, several: Iterable[ProbeStats]) -> ProbeStats:
        """Return what several asked."""
        merged = cls()
        for stats in several:
            for relation, cost in stats.by_relation.items():
                merged._add(relation, cost, stats.seconds[relation])
        return merged

    def total(self) -> ProbeCount:
        """Return what asking cost for all relations."""
        return sum(self.by_relation.values(), ProbeCount())

    def by_source(self) -> dict[str, ProbeCount]:
        """Return what was asked of each source, as a commit keeps it.

        >>> sales, goods = (RelationName(source="shop", name=name) for name in ("sales", "goods"))
        >>> ProbeStats({sales: ProbeCount(probe_count=1, row_count=3), goods: ProbeCount(row_count=1)}).by_source()
        {'shop': ProbeCount(probe_count=1, key_count=0, row_count=4, byte_count=0, corrected_row_count=0)}
        """
        counts: dict[str, ProbeCount] = {}
        for name, count in sorted(self.by_relation.items(), key=lambda one: one[0].source):
            counts[name.source] = counts.get(name.source, ProbeCount()) + count
        return counts

    def tell(self, listener: Listener, view: str) -> None:
        """Say what was asked for a view."""
        for relation, count in self.by_relation.items():
            listener(ProbeAnswered(view=view, relation=relation, seconds=self.seconds[relation], **asdict(count)))
