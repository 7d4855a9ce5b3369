"""How a view of segments is maintained: the DAG, what is kept where, how each segment gets its changes, and why not."""

from __future__ import annotations

from typing import Any, assert_never

from headwater.keeping import AllGroupTables
from headwater.relation import RelationName
from headwater.results.reading import ExplainResult
from headwater.runtime.explain_costs import ExplainedCost, explain_cost
from headwater.runtime.explain_keeping import keeping_data, keeping_lines
from headwater.runtime.explain_queries import maintenance_queries, tracing_lines, tracing_queries
from headwater.runtime.explain_reading import reading_lines, replicas_data
from headwater.runtime.understand import Understood
from headwater.views.explain import describe_view
from headwater.views.group_tables import computed_segments, must_keep
from headwater.views.keep_lineage import without_lineage
from headwater.views.segment_names import kind_of
from headwater.views.segments import (
    SEGMENTS,
    Aggregates,
    First,
    GroupStep,
    JoinStep,
    RecomputeStep,
    RegroupStep,
    Segment,
    SegmentedView,
    UnionStep,
    Windows,
)
from headwater.views.whole import order_text


def explain_segments(understood: Understood, name: str) -> ExplainResult:
    """Return a description to read, and the same as data."""
    known = understood.views[name]
    view = known.view
    readings = known.readings
    cost = explain_cost(understood, name)
    reasons = must_keep(without_lineage(view))
    told = [_tell(segment, cost, _keeping(view, segment), reasons.get(segment.name, "")) for segment in view.segments]
    is_chosen = not isinstance(understood.project.view(name).group_tables, AllGroupTables)
    lines = [
        f"view {name}",
        f"  guarantee    {known.guarantee.value}",
        f"  algorithm    {known.algorithm.name}: changes flow through {len(told)} segments, the last one is the view",
        *(line for one in told for line in _drawn(one, with_reason=is_chosen)),
        *reading_lines(understood, known),
        *keeping_lines(understood, known),
        *cost.lines,
        *_reasons(view),
        *tracing_lines(view),
    ]
    return ExplainResult(
        view=name,
        text="\n".join(lines),
        data={
            "guarantee": known.guarantee.value,
            "algorithm": known.algorithm.name,
            **keeping_data(understood, known),
            "relations": {str(relation): reading.value for relation, reading in readings.items()},
            "replicas": replicas_data(understood, known),
            "columns": {field.name: str(field.type) for field in known.schema},
            "segments": told,
            "cost": cost.data,
            "maintenance_sql": maintenance_queries(view),
            "tracing_sql": tracing_queries(view),
            "reasons": [
                {"code": why.code, "segment": why.segment.name, "what": why.what, "remedy": why.remedy}
                for why in view.reasons
            ],
        },
    )


def _keeping(view: SegmentedView, segment: Segment) -> str:
    """Return where the old rows of a segment are, if any are needed."""
    if segment is view.output:
        return "the view"
    if segment.is_kept:
        return "hidden table"
    return "computed" if segment.name in computed_segments(view) else "no"


def _tell(segment: Segment, cost: ExplainedCost, kept: str, must_keep: str) -> dict[str, Any]:
    detail, how = _step(segment)
    return {
        "name": segment.name.name,
        "step": kind_of(segment.step),
        "origin": segment.origin,
        "inputs": [_shown(one) for one in segment.inputs],
        "detail": detail,
        "kept": kept,
        "must_keep": must_keep,
        "maintained": how,
        "cost": cost.of_segment(segment.name),
        "columns": {column.name: column.type for column in segment.relation.columns},
    }


_KEPT = {
    "the view": "the view",
    "hidden table": "kept",
    "computed": "computed from its operands",
    "no": "flows through",
}


def _drawn(told: dict[str, Any], *, with_reason: bool) -> list[str]:
    kept = _KEPT[told["kept"]]
    origin = f", from view {told['origin']}" if told["origin"] else ""
    head = f"  {told['name']:12} {told['step']} of {', '.join(told['inputs'])}   [{kept}{origin}]"
    why = [f"stays kept: {told['must_keep']}"] if with_reason and told["must_keep"] else []
    return [head, *(f"  {'':12}   {line}" for line in (*told["detail"], told["maintained"], *why, told["cost"]))]


def _reasons(view: SegmentedView) -> list[str]:
    if not view.reasons:
        return ["  recomputed   nothing: every change is computed from the changes of the inputs"]
    lines = []
    for why in view.reasons:
        lines += [f"  {why.code}       {why.segment.name}: {why.what}", f"  {'':12} {why.remedy}"]
    return lines


def _step(segment: Segment) -> tuple[list[str], str]:
    """Return what a step does, and how it is maintained."""
    step = segment.step
    match step:
        case JoinStep(view=join):
            text = str(describe_view(join)).splitlines()[1:]
            need = "its other inputs' old rows that the changes reach" if len(join.occurrences) > 1 else "nothing more"
            return [line.strip() for line in text], f"from its inputs' changes, and {need}"
        case GroupStep():
            totals = ", ".join(f"{total.total} = SUM({total.column})" for total in step.totals)
            by = ", ".join(step.keys) or "nothing: one row always"
            detail = [f"by {by}", f"{step.rows} = COUNT(*)" + (f", {totals}" if totals else "")]
            own = "its own old rows of touched keys" if segment.is_kept else "its input's old rows of touched keys"
            return detail, f"from its input's changes, and {own}"
        case RegroupStep(computed=First() as first, keys=()):
            return _computed(first), "computed anew when one of the first rows of its input changes, from those"
        case RegroupStep():
            where = f"partitions by {', '.join(step.keys)}" if step.keys else "one partition: all rows"
            detail = [where, *_computed(step.computed)]
            return detail, "computed anew for touched partitions, from its input's rows of them"
        case UnionStep():
            signed = " ".join(f"{'+' if one.sign > 0 else '-'} {_shown(one.input)}" for one in step.inputs)
            return [signed], "from its inputs' changes alone"
        case RecomputeStep():
            return [" ".join(step.sql.split())], "all of it, once per commit in which an input changed"
        case _:
            assert_never(step)


def _computed(computed: Aggregates | Windows | First) -> list[str]:
    match computed:
        case First():
            skipped = f" after {computed.offset}" if computed.offset else ""
            return [f"the first {computed.limit}{skipped} ordered by {order_text(computed.order)}"]
        case Aggregates() | Windows():
            return [f"{name} = {text}" for name, text in computed.outputs]
        case _:
            assert_never(computed)


def _shown(name: RelationName) -> str:
    return name.name if name.source == SEGMENTS else str(name)
