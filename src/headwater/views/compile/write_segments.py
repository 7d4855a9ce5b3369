"""From nodes to segments: names, pruned columns, joins, and what is kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headwater.model.relation import Column, Relation, SegmentName
from headwater.views.compile.draft import Draft
from headwater.views.compile.expressions import column
from headwater.views.compile.plan import (
    ROWS,
    Grouped,
    Joined,
    Node,
    Regrouped,
    SourceRelation,
    United,
    known_of,
    total_of,
)
from headwater.views.compile.prune_columns import inputs_of, kept_places, needed_columns, nodes_in_order
from headwater.views.compile.reasons import UNTYPED, WHYS, NoIncrementalForm
from headwater.views.steps.build_join import build_join
from headwater.views.steps.computed import Aggregates, Windows
from headwater.views.steps.derivation import Signed
from headwater.views.steps.group_step import GroupStep, Total
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.lookups import lookups
from headwater.views.steps.regroup_step import RegroupStep
from headwater.views.steps.segment_names import segment_name
from headwater.views.steps.segments import RecomputeReason, Segment, Step
from headwater.views.steps.union_step import UnionStep
from headwater.views.text.bounds import is_too_deep


@dataclass(slots=True, kw_only=True)
class SegmentWriter:
    """The segments of one view, as they are written."""

    view: str
    needed: Mapping[Node, frozenset[str]]
    origins: Mapping[Node, str]
    segments: list[Segment] = field(default_factory=list)
    reasons: list[RecomputeReason] = field(default_factory=list)
    written: dict[Node, Relation] = field(default_factory=dict)

    def relation(self, node: Node) -> Relation:
        """Return what a node became."""
        return node.relation if isinstance(node, SourceRelation) else self.written[node]

    def write(self, node: Node, columns: Sequence[Column], step: Step) -> None:
        """Add what a node became."""
        never_null = frozenset(one.name for one in columns if one.name in node.never_null)
        before = len(self.segments)
        self.written[node] = self.add(columns, step, self.origins[node], never_null)
        if isinstance(node, Regrouped) and len(self.segments) > before:
            why = next(one for one in WHYS if one.code == node.why)
            named = self.written[node].name
            self.reasons.append(RecomputeReason(code=why.code, segment=named, what=why.what, remedy=why.remedy))

    def add(
        self, columns: Sequence[Column], step: Step, origin: str, never_null: frozenset[str] = frozenset()
    ) -> Relation:
        """Return the segment that means this: one that is there, or else a new one."""
        named = segment_name(step, columns)
        known = next((segment.relation for segment in self.segments if segment.name == named), None)
        if known is None:
            known = Relation(name=named, columns=tuple(columns), not_null=never_null)
            self.segments.append(Segment(relation=known, step=step, is_kept=False, origin=origin))
        return known

    def finish(self, columns: Sequence[Column], step: Step) -> None:
        """Add the last segment, which goes by the view's own name."""
        named = SegmentName(name=self.view)
        self.segments.append(Segment(relation=Relation(name=named, columns=tuple(columns)), step=step, is_kept=False))

    def join(
        self,
        tables: Mapping[str, Relation],
        conditions: Sequence[exp.Expr],
        values: Sequence[tuple[str, exp.Expr]],
        tests: Collection[str] = (),
    ) -> JoinStep:
        """Return the step that joins relations and segments. `tests` are aliases."""
        if any(is_too_deep(part) for part in (*conditions, *(value for _, value in values))):
            raise NoIncrementalForm(UNTYPED, "")
        return JoinStep(view=build_join(self.view, tables, conditions, values, tests))


def write_segments(
    view: str, root: Joined, names: Sequence[str], draft: Draft
) -> tuple[tuple[Segment, ...], tuple[RecomputeReason, ...]]:
    """Return the segments that give a root node's rows, whose columns get the view's names, and their reasons."""
    needed = needed_columns(root, draft.lower)
    writer = SegmentWriter(view=view, needed=needed, origins=draft.origins)
    order = nodes_in_order(root)
    last = _united_alone(root, order, writer)
    for node in order[:-1]:
        if node is not last:
            _write(node, writer)
    finished = [
        Column(name=name, type=one.type, native=one.type) for name, one in zip(names, root.columns, strict=True)
    ]
    if last is not None:
        writer.finish(finished, _union(last, writer))
    else:
        values = list(zip(names, root.values, strict=True))
        tables = {o.alias: writer.relation(o.node) for o in root.occurrences}
        writer.finish(finished, writer.join(tables, root.conditions, values, _tests(root)))
    return keep_needed(writer.segments), tuple(writer.reasons)


def keep_needed(segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """Return the segments with those marked as kept whose old rows are looked up, and the view."""
    asked = {segments[-1].name, *lookups(segments)}
    return tuple(replace(segment, is_kept=segment.name in asked) for segment in segments)


def _united_alone(root: Joined, order: Sequence[Node], writer: SegmentWriter) -> United | None:
    """Return the union that the view is, if it is nothing more: then the union itself gets the view's names."""
    only = root.occurrences[0].node if len(root.occurrences) == 1 and not root.conditions else None
    if not isinstance(only, United) or sum(only in inputs_of(node) for node in order) != 1:
        return None
    kept = [only.columns[place] for place in kept_places(only, writer.needed[only])]
    listed = [column(root.occurrences[0].alias, one.name) for one in kept]
    return only if list(root.values) == listed else None


def _write(node: Node, writer: SegmentWriter) -> None:
    needed = writer.needed[node]
    match node:
        case Joined():
            kept = [(node.columns[place], node.values[place]) for place in kept_places(node, needed)]
            tables = {o.alias: writer.relation(o.node) for o in node.occurrences}
            values = [(one.name, value) for one, value in kept]
            step = writer.join(tables, node.conditions, values, _tests(node))
            writer.write(node, [one for one, _ in kept], step)
        case Grouped():
            _write_group(node, needed, writer)
        case Regrouped():
            _write_regroup(node, needed, writer)
        case United():
            step_columns = [node.columns[place] for place in kept_places(node, needed)]
            writer.write(node, step_columns, _union(node, writer))
        case SourceRelation():
            raise AssertionError("a relation is no segment")


def _tests(node: Joined) -> frozenset[str]:
    return frozenset(o.alias for o in node.occurrences if o.is_test)


def _write_group(node: Grouped, needed: frozenset[str], writer: SegmentWriter) -> None:
    totals = [name for name in node.totals if {total_of(name), known_of(name)} & needed]
    step = GroupStep(
        input=writer.relation(node.input).name,
        keys=node.keys,
        rows=ROWS,
        totals=tuple(Total(column=name, total=total_of(name), known=known_of(name)) for name in totals),
    )
    kept = {*node.keys, ROWS, *(f(name) for name in totals for f in (total_of, known_of))}
    writer.write(node, [one for one in node.columns if one.name in kept], step)


def _write_regroup(node: Regrouped, needed: frozenset[str], writer: SegmentWriter) -> None:
    computed = node.computed
    columns = list(node.columns)
    if isinstance(computed, (Aggregates, Windows)):
        outputs = tuple(one for one in computed.outputs if one[0] in needed) or computed.outputs[:1]
        computed = replace(computed, outputs=outputs)
        kept = {name for name, _ in outputs}
        own = set(node.keys) if isinstance(computed, Aggregates) else set()
        columns = [one for one in columns if one.name in kept or one.name in own]
    writer.write(node, columns, RegroupStep(input=writer.relation(node.input).name, keys=node.keys, computed=computed))


def _union(node: United, writer: SegmentWriter) -> UnionStep:
    places = kept_places(node, writer.needed[node])
    signed = []
    for branch in node.branches:
        wanted = tuple(branch.names[place] for place in places)
        relation = writer.relation(branch.node)
        if relation.column_names != wanted:
            relation = _project(relation, wanted, writer.origins[node], writer)
        signed.append(Signed(input=relation.name, sign=branch.sign))
    return UnionStep(inputs=tuple(signed))


def _project(relation: Relation, wanted: Sequence[str], origin: str, writer: SegmentWriter) -> Relation:
    """Add a segment with some columns of another, in an order: a union needs exactly its own."""
    values = [(f"c{place}", column("o0", held)) for place, held in enumerate(wanted)]
    columns = [replace(relation.column(held), name=f"c{place}") for place, held in enumerate(wanted)]
    return writer.add(columns, writer.join({"o0": relation}, (), values), origin)
