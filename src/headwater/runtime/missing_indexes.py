"""Which columns a view will probe that have no index: the source would scan the relation in every batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headwater.project import Reading
from headwater.relation import Relation, RelationName
from headwater.views.group_tables import looked_up_below
from headwater.views.segments import SEGMENTS, SegmentedView


def missing_indexes(view: SegmentedView, readings: Mapping[RelationName, Reading]) -> Iterator[str]:
    """Yield a warning for every index that lacks."""
    for relation, columns in (*_along_equalities(view), *looked_up_below(view)):
        if relation.name.source == SEGMENTS or readings[relation.name] is not Reading.PROBE:
            continue
        if not any(index[:1] and index[0] in columns for index in relation.indexes):
            listed = ", ".join(columns)
            yield (
                f'view "{view.name}" probes {relation.name} by {listed}, which has no index: every batch will scan '
                f"it. Create one at the source (CREATE INDEX ON {relation.name.name} ({listed})), "
                f"or read it as a replica"
            )


def _along_equalities(view: SegmentedView) -> Iterator[tuple[Relation, Sequence[str]]]:
    """Yield what joins ask for."""
    for join in view.joins:
        for edge in join.edges:
            yield join.occurrence(edge.left).relation, [own for own, _ in edge.pairs]
        for edge in join.edges:
            yield join.occurrence(edge.right).relation, [own for _, own in edge.pairs]
