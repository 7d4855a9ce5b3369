"""The lab's log: what was delivered to the warehouse, tick by tick, in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import assert_never

from headwater.deltas.lookup import SawTicks, SawTransactions, Sight
from headwater.model.position import Tick
from headwater.model.relation import Relation, RelationName
from headwater_lab.in_memory.bag import InMemoryBag, Row

Rows = Mapping[RelationName, Mapping[Row, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """A delivered transaction: which source committed it, as its how many-th, and its signed rows."""

    source: str
    version: int
    changes: Rows


@dataclass(slots=True)
class Ledger:
    """Entries by tick: tick 1 is the first."""

    catalog: Mapping[RelationName, Relation]
    entries: list[LedgerEntry] = field(default_factory=list)

    @property
    def last_tick(self) -> Tick:
        """The newest tick."""
        return Tick(len(self.entries))

    def append(self, entry: LedgerEntry) -> Tick:
        """Give a transaction the next tick."""
        self.entries.append(entry)
        return self.last_tick

    def bag(
        self, relation: RelationName, columns: tuple[str, ...], chosen: Callable[[Tick, LedgerEntry], bool]
    ) -> InMemoryBag:
        """Return the signed rows that chosen transactions wrote to a relation, stamped with their ticks."""
        names = self.catalog[relation].column_names
        places = [names.index(column) for column in columns]
        return InMemoryBag.of(
            columns,
            (
                (tick, tuple(row[place] for place in places), count)
                for tick, entry in enumerate(self.entries, start=1)
                if entry.source == relation.source and chosen(Tick(tick), entry)
                for row, count in entry.changes.get(relation, {}).items()
            ),
        )

    def changes(self, relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> InMemoryBag:
        """Return the signed rows of the ticks (after, upto]."""
        return self.bag(relation, columns, lambda tick, _: after < tick <= upto)

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> InMemoryBag:
        """Return the signed rows of the transactions that were seen and whose tick is after this one."""
        return self.bag(relation, columns, lambda at, entry: at > tick and _saw(sight, at, entry))

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> InMemoryBag:
        """Return the signed rows of the transactions that were not seen and whose tick is not after this one."""
        return self.bag(relation, columns, lambda at, entry: at <= tick and not _saw(sight, at, entry))


def _saw(sight: Sight, tick: Tick, entry: LedgerEntry) -> bool:
    match sight:
        case SawTicks():
            return tick <= sight.upto
        case SawTransactions():
            return sight.seen.sees(entry.version, "")
    assert_never(sight)


def added(rows: Mapping[Row, int], changes: Mapping[Row, int]) -> Counter[Row]:
    """Return a bag with a change applied."""
    total = Counter(rows)
    for row, count in changes.items():
        total[row] += count
    return Counter({row: count for row, count in total.items() if count})
