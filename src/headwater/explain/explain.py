"""How a view is maintained: five lines, then its join graph, how each relation is read, and what a batch visits."""

from __future__ import annotations

from dataclasses import asdict

from headwater.explain.costs import explain_cost
from headwater.explain.keeping import keeping_data, keeping_lines
from headwater.explain.reading import reading_lines, replicas_data
from headwater.explain.result import ExplainResult
from headwater.explain.segments import explain_segments
from headwater.explain.steps import StepWords
from headwater.explain.summary import summarize
from headwater.maintenance.published.optimisations import optimisations
from headwater.maintenance.visit_trees import visit_trees
from headwater.model.keeping import Maintenance
from headwater.model.project import Reading
from headwater.project.resolve import ResolvedProject
from headwater.views.laws.join import law_sql
from headwater.views.steps.explain import describe_view
from headwater.views.steps.join import JoinView


def explain_view(resolved: ResolvedProject, name: str) -> ExplainResult:
    """Return a description to read, and the same as data."""
    view = resolved.views[name].view.only_join
    return explain_segments(resolved, name) if view is None else _explain_join(resolved, name, view)


def _explain_join(resolved: ResolvedProject, name: str, view: JoinView) -> ExplainResult:
    readings = resolved.views[name].readings
    trees = visit_trees(view)
    visits = sum(tree.visit_count for tree in trees) if len(trees) == 1 else len(view.occurrences)
    described = resolved.views[name].algorithm
    cost = described.cost(view)
    probing = any(reading is Reading.PROBE for reading in readings.values())
    reading = explain_cost(resolved, name)
    words = StepWords.of(resolved.views[name].view)
    summary = summarize(resolved.views[name], reading, words)
    predicted = (
        f"{cost.queries:g} in {_rounds(cost.rounds)} predicted: {cost.formula}; each carries {cost.message_size}"
    )
    lines = [
        *summary.lines,
        "",
        words.spelling.calls(str(describe_view(view))),
        f"  guarantee    {resolved.views[name].guarantee.value}",
        f"  algorithm    {described.name} (paper {described.paper}): {described.remark}",
        f"  guarantees   {described.guarantee.value}",
        f"  needs        {', '.join(requirement.name for requirement in described.requirements) or 'nothing'}",
        f"  queries      {predicted}",
    ]
    may_ask_less = resolved.views[name].maintenance is Maintenance.RUNTIME or described.name.startswith(
        "version-numbers"
    )
    asks_less = optimisations(view) if may_ask_less else ()
    lines += [
        f"  {one.name:<24} {one.of or 'the view'}: {'yes' if one.applies else 'no'}, {one.why}" for one in asks_less
    ]
    if described.run is None:
        lines += [f"  visits       {_order(tree.levels)}" for tree in trees if len(tree.levels) > 1]
        if len(trees) > 1:
            lines.append("  visits       parts that share no equality are read whole when another part changes")
    lines += reading_lines(resolved, resolved.views[name])
    lines += keeping_lines(resolved, resolved.views[name])
    lines.append(f"  asks sources {'yes, by probes, rebased' if probing else 'never: self-maintained from replicas'}")
    tables = {relation: str(relation) for relation in view.relations}
    return ExplainResult(
        view=name,
        summary=summary.lines,
        text="\n".join(lines),
        data={
            "summary": summary.data,
            "guarantee": resolved.views[name].guarantee.value,
            "algorithm": described.name,
            **keeping_data(resolved, resolved.views[name]),
            "paper": described.paper,
            "requirements": [requirement.name for requirement in described.requirements],
            "asks_less": [asdict(one) for one in asks_less],
            "predicted": {
                "queries": cost.queries,
                "rounds": cost.rounds,
                "formula": cost.formula,
                "message_size": cost.message_size,
            },
            "visits_per_batch": visits,
            "cost": reading.data,
            "relations": {str(relation): reading.value for relation, reading in readings.items()},
            "replicas": replicas_data(resolved, resolved.views[name]),
            "columns": {field.name: str(field.type) for field in resolved.views[name].schema},
            "visit_order": [[list(level) for level in tree.levels] for tree in trees],
            "maintenance_sql": law_sql(view, tables, 0),
        },
    )


def _rounds(count: float) -> str:
    """Return rounds in words: queries of one round go out at once."""
    return "1 round" if count == 1 else f"{count:g} rounds"


def _order(levels: tuple[tuple[str, ...], ...]) -> str:
    up = [node for level in reversed(levels[1:-1]) for node in level]
    down = [node for level in levels[1:] for node in level]
    return " → ".join([*up, *levels[0], *down])
