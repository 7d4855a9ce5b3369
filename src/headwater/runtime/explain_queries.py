"""The queries behind a view: how each segment gets its changes, and how rows are traced through each of its joins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from headwater.lineage.derivation_sql import possible_sql
from headwater.relation import RelationName
from headwater.views.group_law import group_law_sql
from headwater.views.keep_lineage import without_lineage
from headwater.views.kept_lineage import KeptLineage
from headwater.views.law import law_sql
from headwater.views.regroup_law import regroup_law_sql
from headwater.views.segments import (
    SEGMENTS,
    GroupStep,
    JoinStep,
    RecomputeStep,
    RegroupStep,
    Segment,
    SegmentedView,
    UnionStep,
)

_CHANGES, _OLD, _SOUGHT = "changes", "old", "sought"


def maintenance_queries(view: SegmentedView) -> dict[str, str]:
    """Return by segment the query that gives its changes; a union of changes and a recomputation have none."""
    segments = {segment.name: segment for segment in view.segments}
    found = {segment.name.name: _maintenance(segment, segments) for segment in view.segments}
    return {name: text for name, text in found.items() if text}


def tracing_queries(view: SegmentedView) -> list[dict[str, object]]:
    """Return for each join the query for what rows derive from, and where its operands' rows may be read instead."""
    kept = {one.of: one for one in view.lineage}
    return [
        {
            "segment": segment.name.name,
            "sql": possible_sql(
                segment.step.view,
                {o.alias: _shown(o.relation.name) for o in segment.step.view.occurrences},
                _SOUGHT,
                segment.step.view.output_names,
            ),
            "from": _places(kept.get(segment.name)),
        }
        for segment in without_lineage(view).segments
        if isinstance(segment.step, JoinStep)
    ]


def tracing_lines(view: SegmentedView) -> list[str]:
    """Return which joins are traced through something that is kept for it."""
    lines = [f"{one.of.name}: {' or '.join(_places(one))}, whichever is cheapest" for one in view.lineage]
    lines = lines or ["through what its joins read; `headwater advise` says whether keeping lineage would pay"]
    return [f"  {'traced' if place == 0 else '':12} {line}" for place, line in enumerate(lines)]


def _places(lineage: KeptLineage | None) -> list[str]:
    """Return where the rows of a join's operands may be read."""
    if lineage is None:
        return ["its operands"]
    whole = [lineage.whole.name.name] if lineage.is_whole_kept else []
    split = [" + ".join(name.name for name in lineage.split.values())] if lineage.split else []
    return [*whole, *split, "its operands"]


def _maintenance(segment: Segment, segments: Mapping[RelationName, Segment]) -> str:
    match segment.step:
        case JoinStep(view=join):
            return law_sql(join, {name: _shown(name) for name in join.relations}, 0)
        case GroupStep():
            return group_law_sql(segment.step, segment.relation, _CHANGES, _OLD)
        case RegroupStep(input=name):
            return regroup_law_sql(segment.step, segments[name].relation, segment.relation, _CHANGES, _OLD)
        case UnionStep() | RecomputeStep():
            return ""
        case _:
            assert_never(segment.step)


def _shown(name: RelationName) -> str:
    return name.name if name.source == SEGMENTS else str(name)
