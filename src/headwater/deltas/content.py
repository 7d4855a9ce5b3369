"""What is held of a relation, or needed of it: some columns of the rows of an extent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.deltas.extent import EVERYTHING, Extent
from headwater.model.relation import RelationName


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Columns and rows of a relation; a selection's columns are among the columns.

    >>> held = Content(columns=("id", "city"))
    >>> held.covers(Content(columns=("city",))), held.covers(Content(columns=("id", "name")))
    (True, False)
    """

    columns: tuple[str, ...]
    rows: Extent = EVERYTHING

    def covers(self, other: Content) -> bool:
        """Tell whether whoever needs the other finds all of it here."""
        return set(other.columns) <= set(self.columns) and self.rows.covers(other.rows)


def all_rows(columns: Mapping[RelationName, tuple[str, ...]]) -> dict[RelationName, Content]:
    """Return columns of relations, of every row."""
    return {name: Content(columns=names) for name, names in columns.items()}
