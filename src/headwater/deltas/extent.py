"""Extents: which rows of a relation are needed, or held.

    extent = selections AND … OR selections AND …          everything = a list of no selections passes every row

A view needs of a relation the rows that pass the selections of some occurrence: every other row joins nothing. Laws,
for extents p, q and any signed bag a (`selected` is linear: the old and the new row of an update are tested each for
itself):

    a.selected(p).selected(p) = a.selected(p)
    p.plus(q).covers(p)                    p.covers(q)  ⟹  a.selected(p).selected(q) = a.selected(q)

So a reader that selects q sees no difference between a relation and what is held of it, if p is held and covers q: in
the rows at any tick as in the changes between ticks. `covers` says yes only where that is plain from the selections;
where it says no without need, something is read that was there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from headwater.deltas.selection import Selection
from headwater.model.relation import RelationName


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The rows that pass all selections of at least one list. Made by `of`, so that equal ones are written alike.

    >>> oslo = Extent.of([Selection(column="city", compare="equal", values=("Oslo",))])
    >>> print(oslo, "|", EVERYTHING, "|", oslo.plus(EVERYTHING))
    city = 'Oslo' | all rows | all rows
    >>> EVERYTHING.covers(oslo), oslo.covers(EVERYTHING)
    (True, False)
    """

    any_of: tuple[tuple[Selection, ...], ...]

    @classmethod
    def of(cls, *lists: Iterable[Selection]) -> Self:
        """Return the extent of these lists. One whose rows another one has anyway is left out."""
        ordered = sorted({tuple(sorted(set(one), key=repr)) for one in lists}, key=lambda one: (len(one), repr(one)))
        kept: list[tuple[Selection, ...]] = []
        for one in ordered:
            if not any(_implies(one, other) for other in kept):
                kept = [other for other in kept if not _implies(other, one)]
                kept.append(one)
        return cls(any_of=tuple(kept))

    @property
    def is_everything(self) -> bool:
        """Whether every row passes."""
        return () in self.any_of

    @property
    def columns(self) -> frozenset[str]:
        """The columns that have to be known to tell whether a row passes."""
        return frozenset(selection.column for one in self.any_of for selection in one)

    def plus(self, other: Extent) -> Extent:
        """Return the extent of the rows of either."""
        return Extent.of(*self.any_of, *other.any_of)

    def covers(self, other: Extent) -> bool:
        """Tell whether every row of the other passes, as far as the selections tell."""
        return all(any(_implies(narrow, wide) for wide in self.any_of) for narrow in other.any_of)

    def passes(self, row: Mapping[str, Any]) -> bool:
        """Tell whether a row passes."""
        return any(all(selection.passes(row[selection.column]) for selection in one) for one in self.any_of)

    def __str__(self) -> str:
        """Return the extent as a person reads it."""
        if self.is_everything:
            return "all rows"
        return ", or ".join(" and ".join(map(str, one)) for one in self.any_of) or "no rows"


EVERYTHING = Extent(any_of=((),))
NOTHING = Extent(any_of=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """The rows of an extent that another one does not have.

    >>> cheap, dear = (Extent.of([Selection(column="n", compare=word, values=(5,))]) for word in ("less", "greater"))
    >>> print(Remainder(of=EVERYTHING), "|", Remainder(of=cheap.plus(dear), without=cheap))
    all rows | n > 5, or n < 5; without: n < 5
    """

    of: Extent
    without: Extent = NOTHING

    @property
    def columns(self) -> frozenset[str]:
        """The columns that have to be known to tell whether a row is in it."""
        return self.of.columns | self.without.columns

    def __str__(self) -> str:
        """Return the remainder as a person reads it."""
        return f"{self.of}; without: {self.without}" if self.without.any_of else str(self.of)


WHOLE = Remainder(of=EVERYTHING)


def _implies(narrow: tuple[Selection, ...], wide: tuple[Selection, ...]) -> bool:
    """Tell whether a row that passes the first list is sure to pass the second."""
    return all(any(one.implies(test) for one in narrow) for test in wide)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What is held of a relation, or needed of it: some columns of the rows of an extent.

    A selection's columns are among the columns.

    >>> held = Content(columns=("id", "city"))
    >>> held.covers(Content(columns=("city",))), held.covers(Content(columns=("id", "name")))
    (True, False)
    """

    columns: tuple[str, ...]
    rows: Extent = EVERYTHING

    def covers(self, other: Content) -> bool:
        """Tell whether all of the other content is in this one."""
        return set(other.columns) <= set(self.columns) and self.rows.covers(other.rows)


def all_rows(columns: Mapping[RelationName, tuple[str, ...]]) -> dict[RelationName, Content]:
    """Return columns of relations, of every row."""
    return {name: Content(columns=names) for name, names in columns.items()}
