"""Whose old rows the steps of a view look up, by which columns, and where these columns lead.

A step needs old rows of segments besides its inputs' changes (`Step.looked_up`). They are found in a group table; or
they are computed from what the segment reads, as far down as the columns lead there (`Step.input_columns`,
`engine/state/segment_rows`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headwater.model.relation import Relation, RelationName, SegmentName
from headwater.views.steps.segments import Held, Segment

Lookups = Mapping[RelationName, frozenset[tuple[str, ...]]]
"""By segment, the columns by which its old rows are looked up; () where all of them are."""


def lookups(segments: Sequence[Segment]) -> Lookups:
    """Return the segments whose old rows some step looks up. The last one is the view, and read as a table."""
    found: dict[RelationName, set[tuple[str, ...]]] = {}
    for segment in segments:
        for name, columns in segment.step.looked_up(segment):
            if isinstance(name, SegmentName):
                found.setdefault(name, set()).add(columns)
    return {name: frozenset(by) for name, by in found.items()}


def is_sought_by(kind: str) -> bool:
    """Tell whether rows are looked up by values of a type: not by floating numbers, nor by arrays.

    >>> is_sought_by("decimal(12,2)"), is_sought_by("double"), is_sought_by("array<int>")
    (True, False, False)
    """
    return not kind.startswith(("float", "double", "array"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WaysBelow:
    """Where columns lead in a view's segments, of which some are kept."""

    segments: Mapping[RelationName, Segment]
    kept: Collection[RelationName]

    def to(self, relation: Relation, columns: Iterable[str]) -> bool:
        """Tell whether values of columns lead to few rows of everything that such rows come from."""
        sought = [name for name in columns if is_sought_by(relation.column(name).type)]
        if not sought:
            return False
        if not isinstance(relation.name, SegmentName) or relation.name in self.kept:
            return True
        return self.below(self.segments[relation.name], sought)

    def below(self, segment: Segment, columns: Collection[str]) -> bool:
        """Tell the same of a segment whose rows are computed."""
        return segment.step.leads_below(self._carried(segment, columns), self.to)

    def relations(self, segment: Segment, columns: Collection[str]) -> Iterator[Held]:
        """Yield the relations that a lookup comes to where the rows of a segment are computed, and by what columns."""
        for relation, held in self._carried(segment, columns):
            if held and not isinstance(relation.name, SegmentName):
                yield relation, held
            elif held and relation.name not in self.kept:
                yield from self.relations(self.segments[relation.name], held)

    def _carried(self, segment: Segment, columns: Collection[str]) -> list[Held]:
        """Return for every operand of a segment which of its columns hold columns of the segment."""
        return [
            (relation, [called[column] for column in columns if column in called])
            for relation, called in segment.step.input_columns(segment, self.segments)
        ]
