"""What asking sources costs: counted by relation while a view is computed, told in events, kept by source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwater.relation import RelationName
from headwater.runtime.events import Listener, ProbeAnswered
from headwater.warehouse.commit_record import AskedCount


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


Asked = Mapping[RelationName, ProbeCount]
"""What was asked of each relation."""


def in_all(counts: Iterable[ProbeCount]) -> ProbeCount:
    """Return what asking cost for several relations together."""
    total = ProbeCount()
    for count in counts:
        total.add(count)
    return total


def together(asked: Iterable[Asked]) -> dict[RelationName, ProbeCount]:
    """Return what several asked, by relation."""
    counts: dict[RelationName, ProbeCount] = {}
    for each in asked:
        for name, count in each.items():
            counts.setdefault(name, ProbeCount()).add(count)
    return counts


def by_source(asked: Asked) -> dict[str, AskedCount]:
    """Return what was asked of each source, as a commit keeps it.

    >>> sales, goods = (RelationName(source="shop", name=name) for name in ("sales", "goods"))
    >>> by_source({sales: ProbeCount(probe_count=1, row_count=3), goods: ProbeCount(probe_count=2, row_count=1)})
    {'shop': AskedCount(probe_count=3, key_count=0, row_count=4, byte_count=0, corrected_row_count=0)}
    """
    sources = sorted({name.source for name in asked})
    totals = {source: in_all(count for name, count in asked.items() if name.source == source) for source in sources}
    return {
        source: AskedCount(
            probe_count=total.probe_count,
            key_count=total.key_count,
            row_count=total.row_count,
            byte_count=total.byte_count,
            corrected_row_count=total.corrected_row_count,
        )
        for source, total in totals.items()
    }


def tell_asked(listener: Listener, view: str, asked: Asked) -> None:
    """Say what was asked for a view."""
    for name, count in asked.items():
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
