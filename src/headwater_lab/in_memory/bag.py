"""Signed bags in plain Python: the twin for tests and the lab. A warehouse cannot choose it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from headwater.deltas.extent import Extent
from headwater.model.position import Tick

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class InMemoryKeys:
    """Key values as a set of tuples."""

    values: frozenset[Row]

    def without(self, others: InMemoryKeys) -> InMemoryKeys:
        """Return the keys that are not among the others."""
        return InMemoryKeys(self.values - others.values)

    def plus(self, others: InMemoryKeys) -> InMemoryKeys:
        """Return the keys of both, each once."""
        return InMemoryKeys(self.values | others.values)

    @property
    def most(self) -> int:
        """How many keys there are."""
        return len(self)

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(self.values)


@dataclass(frozen=True, slots=True)
class InMemoryBag:
    """Entries (tick, row) with their counts.

    >>> old = InMemoryBag.of(("a", "b"), [(0, (1, 2), 1)])
    >>> change = InMemoryBag.of(("a", "b"), [(5, (1, 2), -1), (5, (1, 3), 1)])
    >>> sorted(old.plus(change).restamped(5).net().entries.items())
    [((5, (1, 3)), 1)]
    """

    columns: tuple[str, ...]
    entries: Counter[tuple[Tick, Row]]

    @staticmethod
    def of(columns: tuple[str, ...], entries: Iterable[tuple[int, Row, int]]) -> InMemoryBag:
        """Build a bag from (tick, row, count) triples."""
        counts: Counter[tuple[Tick, Row]] = Counter()
        for tick, row, count in entries:
            counts[Tick(tick), row] += count
        return InMemoryBag(columns, counts)

    @property
    def most(self) -> int:
        """How many entries there are."""
        return len(self)

    def _values(self, row: Row, columns: tuple[str, ...]) -> Row:
        return tuple(row[self.columns.index(column)] for column in columns)

    def plus(self, other: InMemoryBag) -> InMemoryBag:
        """Return the rows of both."""
        total = Counter(self.entries)
        for entry, count in other.entries.items():
            total[entry] += count
        return InMemoryBag(self.columns, total)

    def negated(self) -> InMemoryBag:
        """Return the same rows with their counts' signs turned."""
        return InMemoryBag(self.columns, Counter({entry: -count for entry, count in self.entries.items()}))

    def net(self) -> InMemoryBag:
        """Return the entries whose count is not zero. Equal ones are one already."""
        return InMemoryBag(self.columns, Counter({entry: count for entry, count in self.entries.items() if count}))

    def net_if_held(self) -> InMemoryBag:
        """Return the same as `net`."""
        return self.net()

    def changed_by(self, changes: InMemoryBag, tick: Tick) -> InMemoryBag:
        """Return these rows with changes added, stamped with a tick, and netted."""
        return self.plus(changes).restamped(tick).net()

    def positive(self) -> InMemoryBag:
        """Return the entries whose count is above zero."""
        return InMemoryBag(self.columns, Counter({entry: count for entry, count in self.entries.items() if count > 0}))

    def picked(self, columns: tuple[str, ...]) -> InMemoryBag:
        """Return the rows with these of their columns."""
        rows = ((tick, self._values(row, columns), count) for (tick, row), count in self.entries.items())
        return InMemoryBag.of(columns, rows)

    def restamped(self, tick: Tick) -> InMemoryBag:
        """Return the rows with another tick."""
        return InMemoryBag.of(self.columns, ((tick, row, count) for (_, row), count in self.entries.items()))

    def shifted(self, ticks: int) -> InMemoryBag:
        """Return the rows with their ticks moved."""
        return InMemoryBag(self.columns, Counter({(Tick(at + ticks), row): n for (at, row), n in self.entries.items()}))

    def upto(self, tick: Tick) -> InMemoryBag:
        """Return the rows whose tick is not after this one."""
        return InMemoryBag(self.columns, Counter({key: n for key, n in self.entries.items() if key[0] <= tick}))

    def after(self, tick: Tick) -> InMemoryBag:
        """Return the rows whose tick is after this one."""
        return InMemoryBag(self.columns, Counter({key: n for key, n in self.entries.items() if key[0] > tick}))

    def at(self, ticks: Collection[Tick]) -> InMemoryBag:
        """Return the rows that have one of these ticks."""
        return InMemoryBag(self.columns, Counter({key: n for key, n in self.entries.items() if key[0] in ticks}))

    def ticks(self) -> list[Tick]:
        """Return the ticks that rows have, in their order."""
        return sorted({tick for tick, _ in self.entries})

    def keys(self, columns: tuple[str, ...], like: InMemoryBag, as_columns: tuple[str, ...]) -> InMemoryKeys:  # noqa: ARG002 - Python values need no cast
        """Return the distinct values of columns that hold no NULL."""
        values = (self._values(row, columns) for (_, row), count in self.entries.items() if count)
        return InMemoryKeys(frozenset(value for value in values if None not in value))

    def groups(self, columns: tuple[str, ...]) -> InMemoryKeys:
        """Return the distinct values of columns, NULL being a value like any other."""
        return InMemoryKeys(frozenset(self._values(row, columns) for _, row in self.entries))

    def matching(self, columns: tuple[str, ...], keys: InMemoryKeys) -> InMemoryBag:
        """Return the rows whose columns hold one of the keys."""
        kept = {entry: count for entry, count in self.entries.items() if self._values(entry[1], columns) in keys.values}
        return InMemoryBag(self.columns, Counter(kept))

    def selected(self, extent: Extent) -> InMemoryBag:
        """Return the rows of an extent."""
        if extent.is_everything:
            return self
        kept = {
            entry: count
            for entry, count in self.entries.items()
            if extent.passes(dict(zip(self.columns, entry[1], strict=True)))
        }
        return InMemoryBag(self.columns, Counter(kept))

    def widest(self, other: InMemoryBag) -> InMemoryBag:
        """Return every row of either with the larger of its two counts."""
        both = self.entries.keys() | other.entries.keys()
        larger = {entry: max(self.entries.get(entry, 0), other.entries.get(entry, 0)) for entry in both}
        return InMemoryBag(self.columns, Counter(larger))

    def __len__(self) -> int:
        """Return how many entries there are."""
        return len(self.entries)
