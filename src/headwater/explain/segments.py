"""How a view of segments is maintained: the DAG, what is kept where, how each segment gets its changes, and why not."""

from __future__ import annotations

from typing import Any

from headwater.explain.costs import ExplainedCost, explain_cost
from headwater.explain.keeping import keeping_data, keeping_lines
from headwater.explain.reading import reading_lines, replicas_data
from headwater.explain.result import ExplainResult
from headwater.explain.steps import StepWords
from headwater.explain.summary import summarize
from headwater.lineage.derivation_sql import possible_sql
from headwater.model.keeping import AllGroupTables
from headwater.project.resolve import ResolvedProject
from headwater.views.steps.group_tables import computed_segments, must_keep
from headwater.views.steps.keep_lineage import without_lineage
from headwater.views.steps.kept_lineage import KeptLineage
from headwater.views.steps.segments import Segment, SegmentedView


def explain_segments(resolved: ResolvedProject, name: str) -> ExplainResult:
    """Return a description to read, and the same as data."""
    resolved_view = resolved.views[name]
    view = resolved_view.view
    readings = resolved_view.readings
    cost = explain_cost(resolved, name)
    reasons = must_keep(without_lineage(view))
    words = StepWords.of(view)
    described = [
        _describe(
            segment, segment.step.words(segment, words), cost, _keeping(view, segment), reasons.get(segment.name, "")
        )
        for segment in view.segments
    ]
    summary = summarize(resolved_view, cost, words)
    is_chosen = not isinstance(resolved.project.view(name).group_tables, AllGroupTables)
    lines = [
        *summary.lines,
        "",
        f"view {name}",
        f"  guarantee    {resolved_view.guarantee.value}",
        f"  algorithm    {resolved_view.algorithm.name}: {_flow(len(described))}",
        *(line for one in described for line in _lines(one, with_reason=is_chosen)),
        *reading_lines(resolved, resolved_view),
        *keeping_lines(resolved, resolved_view),
        *_reasons(view),
        *tracing_lines(view),
    ]
    return ExplainResult(
        view=name,
        summary=summary.lines,
        text="\n".join(lines),
        data={
            "summary": summary.data,
            "guarantee": resolved_view.guarantee.value,
            "algorithm": resolved_view.algorithm.name,
            **keeping_data(resolved, resolved_view),
            "relations": {str(relation): reading.value for relation, reading in readings.items()},
            "replicas": replicas_data(resolved, resolved_view),
            "columns": {field.name: str(field.type) for field in resolved_view.schema},
            "segments": described,
            "cost": cost.data,
            "maintenance_sql": maintenance_queries(view),
            "tracing_sql": tracing_queries(view),
            "reasons": [
                {"code": why.code, "segment": why.segment.name, "what": why.what, "remedy": why.remedy}
                for why in view.reasons
            ],
        },
    )


def _flow(count: int) -> str:
    return f"changes flow through {count} segments, the last one is the view"


def _keeping(view: SegmentedView, segment: Segment) -> str:
    """Return where the old rows of a segment are, if any are needed."""
    if segment is view.output:
        return "the view"
    if segment.is_kept:
        return "auxiliary table"
    return "computed" if segment.name in computed_segments(view) else "no"


def _describe(segment: Segment, does: list[str], cost: ExplainedCost, kept: str, must_keep: str) -> dict[str, Any]:
    return {
        "name": segment.name.name,
        "step": segment.step.kind,
        "origin": segment.origin,
        "inputs": [one.label for one in segment.inputs],
        "detail": does,
        "kept": kept,
        "must_keep": must_keep,
        "maintained": segment.step.maintained(segment),
        "cost": cost.of_segment(segment.name),
        "columns": {column.name: column.type for column in segment.relation.columns},
    }


_KEPT = {
    "the view": "the view",
    "auxiliary table": "kept",
    "computed": "computed from its operands",
    "no": "flows through",
}


def _lines(described: dict[str, Any], *, with_reason: bool) -> list[str]:
    kept = _KEPT[described["kept"]]
    origin = f", from view {described['origin']}" if described["origin"] else ""
    head = f"  {described['name']:12} {described['step']} of {', '.join(described['inputs'])}   [{kept}{origin}]"
    why = [f"stays kept: {described['must_keep']}"] if with_reason and described["must_keep"] else []
    return [
        head,
        *(f"  {'':12}   {line}" for line in (*described["detail"], described["maintained"], *why, described["cost"])),
    ]


def _reasons(view: SegmentedView) -> list[str]:
    lines = []
    for why in view.reasons:
        lines += [f"  {why.code}       {why.segment.name}: {why.what}", f"  {'':12} {why.remedy}"]
    return lines


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
                join, {o.alias: o.relation.name.label for o in join.occurrences}, "sought", join.output_names
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
