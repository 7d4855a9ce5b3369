"""By which columns the rows of a relation or segment are told apart, if by any: no two rows agree in all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from headwater.relation import Relation, RelationName
from headwater.views.normal_form import JoinView
from headwater.views.output_columns import output_columns
from headwater.views.segments import (
    SEGMENTS,
    Aggregates,
    First,
    GroupStep,
    JoinStep,
    RecomputeStep,
    RegroupStep,
    Segment,
    UnionStep,
    Windows,
)


def unique_columns(relation: Relation, segments: Mapping[RelationName, Segment]) -> tuple[str, ...] | None:
    """Return columns that tell rows apart; () where there is one row at most, None where rows may be equal."""
    if relation.name.source != SEGMENTS:
        return relation.key if relation.key and set(relation.key) <= set(relation.column_names) else None
    segment = segments[relation.name]
    match segment.step:
        case JoinStep(view=join):
            return _of_join(join, segments)
        case GroupStep(keys=keys):
            return keys
        case RegroupStep():
            return _of_regroup(segment.step, segments)
        case UnionStep() | RecomputeStep():
            return None
        case _:
            assert_never(segment.step)


def _of_regroup(step: RegroupStep, segments: Mapping[RelationName, Segment]) -> tuple[str, ...] | None:
    match step.computed:
        case Aggregates():
            return step.keys
        case First():
            return unique_columns(segments[step.input].relation, segments)
        case Windows():
            return None
        case _:
            assert_never(step.computed)


def _of_join(join: JoinView, segments: Mapping[RelationName, Segment]) -> tuple[str, ...] | None:
    """Return the outputs that hold what tells the rows of all occurrences apart, as they are."""
    called = {held: name for name, held in output_columns(join).items()}
    found: list[str] = []
    for occurrence in join.occurrences:
        own = unique_columns(occurrence.relation, segments)
        if own is None or not all((occurrence.alias, name) in called for name in own):
            return None
        found += [called[occurrence.alias, name] for name in own]
    return tuple(found)
