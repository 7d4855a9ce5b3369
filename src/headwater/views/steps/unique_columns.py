"""Which columns identify the rows of a relation or segment, if any do: no two rows agree in all of them."""

from __future__ import annotations

from headwater.model.relation import Relation, SegmentName
from headwater.views.steps.segments import Segments


def unique_columns(relation: Relation, segments: Segments) -> tuple[str, ...] | None:
    """Return columns that identify rows: () if there is one row at most, None if rows may be equal."""
    if not isinstance(relation.name, SegmentName):
        return relation.key if relation.key and set(relation.key) <= set(relation.column_names) else None
    return segments[relation.name].step.unique_columns(segments)
