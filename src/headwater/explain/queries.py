"""The queries behind a view: how each segment gets its changes, and how rows are traced through each of its joins."""

from __future__ import annotations

from headwater.lineage.derivation_sql import possible_sql
from headwater.views.steps.keep_lineage import without_lineage
from headwater.views.steps.kept_lineage import KeptLineage
from headwater.views.steps.segments import SegmentedView

_SOUGHT = "sought"


def maintenance_queries(view: SegmentedView) -> dict[str, str]:
    """Return by segment the query that gives its changes. A union of changes and a recomputation have none."""
    segments = {segment.name: segment for segment in view.segments}
    found = {segment.name.name: segment.step.change_plan(segment, segments).sql for segment in view.segments}
    return {name: text for name, text in found.items() if text}


def tracing_queries(view: SegmentedView) -> list[dict[str, object]]:
    """Return for each join the query for what rows derive from, and where its operands' rows may be read instead."""
    kept = {one.of: one for one in view.lineage}
    return [
        {
            "segment": segment.name.name,
            "sql": possible_sql(
                join, {o.alias: o.relation.name.label for o in join.occurrences}, _SOUGHT, join.output_names
            ),
            "from": _places(kept.get(segment.name)),
        }
        for segment in without_lineage(view).segments
        if (join := segment.step.join) is not None
    ]


def tracing_lines(view: SegmentedView) -> list[str]:
    """Return which joins are traced through something that is kept for it."""
    lines = [f"{one.of.name}: {' or '.join(_places(one))}, the cheapest of them" for one in view.lineage]
    lines = lines or ["through what its joins read; `headwater advise` says whether keeping lineage would pay"]
    return [f"  {'traced' if place == 0 else '':12} {line}" for place, line in enumerate(lines)]


def _places(lineage: KeptLineage | None) -> list[str]:
    """Return where the rows of a join's operands may be read."""
    if lineage is None:
        return ["its operands"]
    whole = [lineage.whole.name.name] if lineage.is_whole_kept else []
    split = [" + ".join(name.name for name in lineage.split.values())] if lineage.split else []
    return [*whole, *split, "its operands"]
