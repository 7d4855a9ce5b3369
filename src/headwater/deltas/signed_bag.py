"""Signed bags: rows, each with the tick it is stamped with and a signed count.

Data or delta? Both are signed bags. A relation's rows before a batch are a bag stamped `lo` with positive counts; the
transactions of the batch are a bag stamped with their ticks, with counts of either sign. Laws, for any bags a, b:

    a.plus(b) = b.plus(a)          a.plus(a.negated()).net() is empty          a.net().net() = a.net()
    a.matching(k).plus(b.matching(k)) = a.plus(b).matching(k)                  (selection is linear, `selected` too)
    a.positive().plus(a.negated().positive().negated()) = a.net()              (what came, and what went)
    a.upto(t).plus(a.after(t)) = a        a.picked(c).plus(b.picked(c)) = a.plus(b).picked(c)

Three implementations stand behind one contract: `on_arrow` (held in this process), `stored_bag` (what is too large for
that stays on Spark), and `headwater_lab/in_memory/bag` (plain Python, for tests and the lab). Held and stored ones
may meet in one operation.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, Self, TypeVar

from headwater.deltas.extent import Extent
from headwater.model.position import Tick


class Keys(Protocol):
    """A set of values to look up: distinct. Those of a join have no NULL, which equals nothing. Those of groups may."""

    def without(self, others: Self) -> Self:
        """Return the keys that are not among the others."""
        ...

    def plus(self, others: Self) -> Self:
        """Return the keys of both, each once."""
        ...

    @property
    def most(self) -> int:
        """How many keys there are at most, as far as that is known without looking."""
        ...

    def __len__(self) -> int:
        """Return how many keys there are."""
        ...


K = TypeVar("K", bound=Keys)


class SignedBag(Protocol[K]):
    """Rows with a tick and a signed count each."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the rows' columns."""
        ...

    @property
    def most(self) -> int:
        """How many entries there are at most, as far as that is known without looking."""
        ...

    def plus(self, other: Self) -> Self:
        """Return the rows of both."""
        ...

    def negated(self) -> Self:
        """Return the same rows with their counts' signs turned."""
        ...

    def net(self) -> Self:
        """Return equal rows of equal tick as one, with the sum of their counts. Zero sums vanish."""
        ...

    def net_if_held(self) -> Self:
        """Return the bag netted if that takes no query, and as it is otherwise."""
        ...

    def changed_by(self, changes: Self, tick: Tick) -> Self:
        """Return these rows, all of which exist, with changes added, stamped with a tick. Netted, if these are."""
        ...

    def positive(self) -> Self:
        """Return the netted rows whose count is above zero: what came, of a change. What is there, of a difference."""
        ...

    def picked(self, columns: tuple[str, ...]) -> Self:
        """Return the rows with these of their columns."""
        ...

    def restamped(self, tick: Tick) -> Self:
        """Return the rows with another tick."""
        ...

    def shifted(self, ticks: int) -> Self:
        """Return the rows with their ticks moved."""
        ...

    def upto(self, tick: Tick) -> Self:
        """Return the rows whose tick is not after this one."""
        ...

    def after(self, tick: Tick) -> Self:
        """Return the rows whose tick is after this one."""
        ...

    def at(self, ticks: Collection[Tick]) -> Self:
        """Return the rows that have one of these ticks."""
        ...

    def ticks(self) -> list[Tick]:
        """Return the ticks that rows have, in their order."""
        ...

    def keys(self, columns: tuple[str, ...], like: Self, as_columns: tuple[str, ...]) -> K:
        """Return the distinct values of columns, in the types that `like` has in `as_columns`.

        Values that these types cannot hold are left out, as they are equal to none of theirs.
        """
        ...

    def groups(self, columns: tuple[str, ...]) -> K:
        """Return the distinct values of columns, NULL being a value like any other: those of a GROUP BY."""
        ...

    def matching(self, columns: tuple[str, ...], keys: K) -> Self:
        """Return the rows whose columns hold one of the keys."""
        ...

    def selected(self, extent: Extent) -> Self:
        """Return the rows of an extent."""
        ...

    def widest(self, other: Self) -> Self:
        """Return every row of either with the larger of its two counts.

        Two exact parts of one bag overlap in rows that have the same count in both; this is their union.
        """
        ...

    def __len__(self) -> int:
        """Return how many entries there are."""
        ...
