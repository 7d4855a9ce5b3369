"""What asking sources costs: counted by relation while a view is computed, told in events, kept by source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from headwater.deltas.on_arrow import ArrowRequest, ArrowResult
from headwater.model.relation import RelationName
from headwater.observe.events import Listener, ProbeAnswered


@dataclass(slots=True, kw_only=True)
class ProbeCount:
    """What asking a source cost, for one relation: probes, keys sent, rows and bytes received, seconds.

    `corrected_row_count` rows of the change log came or went between what answers saw and what was needed of them.
    """

    probe_count: int = 0
    key_count: int = 0
    row_count: int = 0
    byte_count: int = 0
    corrected_row_count: int = 0
    seconds: float = 0.0

    def add(self, other: ProbeCount) -> None:
        """Add what others cost."""
        self.probe_count += other.probe_count
        self.key_count += other.key_count
        self.row_count += other.row_count
        self.byte_count += other.byte_count
        self.corrected_row_count += other.corrected_row_count
        self.seconds += other.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCount:
    """What a source was asked: probes (each has one answer), keys sent, rows and bytes received, rows rebased."""

    probe_count: int
    key_count: int
    row_count: int
    byte_count: int
    corrected_row_count: int


@dataclass(slots=True)
class ProbeStats:
    """What sources were asked, by relation, or empty if nothing was asked."""

    by_relation: dict[RelationName, ProbeCount] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether anything was asked."""
        return bool(self.by_relation)

    def __iter__(self) -> Iterator[RelationName]:
        """Yield the relations that were asked for."""
        return iter(self.by_relation)

    def count(self, request: ArrowRequest, result: ArrowResult) -> None:
        """Count what a source was asked and what it answered."""
        cost = ProbeCount(
            probe_count=1,
            key_count=0 if request.keys is None else len(request.keys),
            row_count=len(result.rows),
            byte_count=result.rows.table.nbytes,
            seconds=result.seconds,
        )
        self.by_relation.setdefault(request.relation, ProbeCount()).add(cost)

    @classmethod
    def merge(cls, several: Iterable[ProbeStats]) -> ProbeStats:
        """Return what several asked."""
        merged = cls()
        for stats in several:
            for name, count in stats.by_relation.items():
                merged.by_relation.setdefault(name, ProbeCount()).add(count)
        return merged

    def total(self) -> ProbeCount:
        """Return what asking cost for all relations."""
        total = ProbeCount()
        for count in self.by_relation.values():
            total.add(count)
        return total

    def by_source(self) -> dict[str, AskedCount]:
        """Return what was asked of each source, as a commit keeps it.

        >>> sales, goods = (RelationName(source="shop", name=name) for name in ("sales", "goods"))
        >>> ProbeStats({sales: ProbeCount(probe_count=1, row_count=3), goods: ProbeCount(row_count=1)}).by_source()
        {'shop': AskedCount(probe_count=1, key_count=0, row_count=4, byte_count=0, corrected_row_count=0)}
        """
        counts: dict[str, ProbeCount] = {}
        for name, count in sorted(self.by_relation.items(), key=lambda one: one[0].source):
            counts.setdefault(name.source, ProbeCount()).add(count)
        return {
            source: AskedCount(
                probe_count=total.probe_count,
                key_count=total.key_count,
                row_count=total.row_count,
                byte_count=total.byte_count,
                corrected_row_count=total.corrected_row_count,
            )
            for source, total in counts.items()
        }

    def tell(self, listener: Listener, view: str) -> None:
        """Say what was asked for a view."""
        for name, count in self.by_relation.items():
            listener(
                ProbeAnswered(
                    view=view,
                    relation=name,
                    probe_count=count.probe_count,
                    key_count=count.key_count,
                    row_count=count.row_count,
                    byte_count=count.byte_count,
                    corrected_rows=count.corrected_row_count,
                    seconds=count.seconds,
                )
            )
