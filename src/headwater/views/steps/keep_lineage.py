"""Keep the lineage of a view's joins: its lineage view (LV) or its split lineage tables (SLT), as further segments.

    before      operands ──► join ──► group ──► ...
    after       operands ──► lineage ──► join ──► group ──► ...          lineage: the join, with its operands' columns
                                │                                        join: a projection of it, under its old name
                                └──► split (one per operand)             split: the operand's columns, grouped

Rows of a lineage view are sought by the keys of the group that reads the join; those of a split lineage table by the
same, or by what its operand joins with. These columns come first, so that a lookup need not read the whole table.

All are maintained as any segment is, in the same batch and commit. The join is computed once: what it gave before is
read off the lineage view's changes, so segments that read it need not know. Split lineage tables hold each different
row once, with the number of rows of the lineage view that it is in: it leaves with the last of them.

Not done: the lineage view is no partial copy of its operands while a batch is computed; these are read as ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.errors import InvalidView, did_you_mean
from headwater.model.keeping import LineageKind, LineageWish
from headwater.model.relation import Column, RelationName, SegmentName
from headwater.views.compile.expressions import column, settle
from headwater.views.compile.plan import ROWS
from headwater.views.steps.build_join import build_join
from headwater.views.steps.group_step import GroupStep
from headwater.views.steps.join import JoinView, Occurrence
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.kept_lineage import KeptLineage
from headwater.views.steps.lookups import is_sought_by
from headwater.views.steps.output_columns import output_columns
from headwater.views.steps.segment_names import name_of_kind
from headwater.views.steps.segments import Segment, SegmentedView, Segments
from headwater.views.steps.unique_columns import unique_columns

_ALIAS = "o0"
_ORDERED = 3
"""By this many columns at most rows lie in order: more would hardly tell files apart."""


def keep_lineage(view: SegmentedView, wishes: Sequence[LineageWish]) -> SegmentedView:
    """Return a view with the wished lineage kept. What cannot be kept is refused."""
    kinds: dict[RelationName, set[LineageKind]] = {}
    for wish in wishes:
        kinds.setdefault(_join_of(view, wish), set()).add(wish.kind)
    for name, wished in kinds.items():
        view = _with_lineage(view, name, wished)
    return view


def without_lineage(view: SegmentedView) -> SegmentedView:
    """Return a view as it was before lineage was kept: its joins read their operands themselves."""
    added = {name for one in view.lineage for name in (one.whole.name, *one.split.values())}
    joins = {one.of: JoinStep(view=one.join) for one in view.lineage}
    segments = tuple(
        replace(segment, step=joins.get(segment.name, segment.step))
        for segment in view.segments
        if segment.name not in added
    )
    return replace(view, segments=segments, lineage=())


def joins_with_lineage(view: SegmentedView) -> Mapping[RelationName, Segment]:
    """Return the segments whose lineage can be kept, by the names under which it may be wished for.

    A join is wished for by its own name, or by that of a group that reads it.
    """
    found: dict[RelationName, Segment] = {}
    segments = {segment.name: segment for segment in view.segments}
    for segment in view.segments:
        named = _partitioned(segment, segments)
        if named.step.join is not None and not _obstacle(view, named, named.step.join):
            found[segment.name] = named
    return found


def _join_of(view: SegmentedView, wish: LineageWish) -> RelationName:
    """Return the join that a wish means."""
    segments = {segment.name: segment for segment in view.segments}
    named = segments.get(SegmentName(name=wish.of))
    if named is None:
        known = tuple(name.name for name in joins_with_lineage(view))
        raise InvalidView(
            f'view "{view.name}" has no segment "{wish.of}", so its {wish.kind.value} cannot be kept',
            code="HW-247",
            detail=f"lineage can be kept of {', '.join(known) or 'none of its segments'}",
            hint=did_you_mean(wish.of, known, otherwise=f"`headwater explain {view.name} --full` shows its segments"),
        )
    named = _partitioned(named, segments)
    why = "it is no join" if named.step.join is None else _obstacle(view, named, named.step.join)
    if why:
        raise InvalidView(
            f'no lineage can be kept of segment "{wish.of}" of view "{view.name}"',
            code="HW-248",
            detail=why,
            hint=f'remove "{wish}" from keep; it is traced through replicas, or by asking the sources, all the same',
        )
    return named.name


def _partitioned(segment: Segment, segments: Segments) -> Segment:
    """Return what a segment partitions, if it does. Else itself."""
    return segment if segment.step.partition is None else segments[segment.step.partition[0]]


def _obstacle(view: SegmentedView, segment: Segment, join: JoinView) -> str:
    """Return why the lineage of a join cannot be kept. Empty if it can."""
    if len(join.occurrences) < 2:  # noqa: PLR2004 - a join joins two
        return "it reads one thing alone, which would be its lineage"
    segments = {one.name: one for one in view.segments}
    for occurrence in join.occurrences:
        relation = occurrence.relation
        if unique_columns(relation, segments) is None:
            what = f"relation {relation.name} has no primary key" if not isinstance(relation.name, SegmentName) else ""
            return f"{what or f'rows of {relation.name.name} may be equal'}: its rows could not be identified"
        if any(one.type.startswith("array") for one in relation.columns if one.name in occurrence.columns):
            return f"{relation.name} has a column of arrays, by which nothing can be looked up"
    return "" if segment.name not in {one.of for one in view.lineage} else "it is kept already"


def _with_lineage(view: SegmentedView, name: RelationName, kinds: set[LineageKind]) -> SegmentedView:
    segment = next(one for one in view.segments if one.name == name)
    join = segment.step.join
    assert join is not None, "a join has lineage"
    writing = _Writing(view=view, segment=segment, join=join)
    lineage = writing.lineage(is_kept=LineageKind.VIEW in kinds)
    splits = dict(writing.splits(lineage)) if LineageKind.SPLIT in kinds else {}
    projection = replace(segment, step=writing.projection(lineage))
    place = view.segments.index(segment)
    kept = KeptLineage(
        of=name,
        join=join,
        whole=lineage.relation,
        is_whole_kept=lineage.is_kept,
        split={alias: split.name for alias, split in splits.items()},
        columns=writing.columns(),
        keys=writing.keys(),
    )
    segments = (*view.segments[:place], lineage, *splits.values(), projection, *view.segments[place + 1 :])
    return replace(view, segments=segments, lineage=(*view.lineage, kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writing:
    """Writes the segments that keep the lineage of one join."""

    view: SegmentedView
    segment: Segment
    join: JoinView

    def keys(self) -> dict[str, tuple[str, ...]]:
        """Return by alias what tells the operand's rows apart."""
        segments = {one.name: one for one in self.view.segments}
        return {o.alias: unique_columns(o.relation, segments) or () for o in self.join.occurrences}

    def columns(self) -> dict[str, dict[str, str]]:
        """Return by alias what the operand's columns are called: those that the view needs, and the key."""
        keys = self.keys()
        names = (f"c{number}" for number in range(sum(len(o.relation.columns) for o in self.join.occurrences)))
        return {
            o.alias: {name: next(names) for name in o.relation.column_names if name in self._held(o, keys[o.alias])}
            for o in self.join.occurrences
        }

    def _held(self, occurrence: Occurrence, key: Sequence[str]) -> set[str]:
        relation = occurrence.relation
        if isinstance(relation.name, SegmentName):
            return set(relation.column_names)
        return {*self.view.relations[relation.name], *key}

    def lineage(self, *, is_kept: bool) -> Segment:
        """Return the join with its operands' columns."""
        held = self.columns()
        first = tuple(held[alias][name] for alias, name in self._sought())
        places = {called: (alias, name) for alias, own in held.items() for name, called in own.items()}
        names = (*first, *(called for called in places if called not in first))
        values = [(called, column(*places[called])) for called in names]
        tables = {o.alias: o.relation for o in self.join.occurrences}
        tests = {o.alias for o in self.join.occurrences if o.is_test}
        conditions = [condition.expression for condition in self.join.conditions]
        step = JoinStep(view=build_join(self.view.name, tables, conditions, values, tests))
        columns = [replace(self._column(*places[called]), name=called) for called in names]
        relation = replace(
            self.segment.relation,
            name=name_of_kind("lineage", step, columns),
            columns=tuple(columns),
            not_null=frozenset(),
        )
        return Segment(relation=relation, step=step, is_kept=is_kept, origin=self.segment.origin, looked_up_by=first)

    def _column(self, alias: str, name: str) -> Column:
        return self.join.occurrence(alias).relation.column(name)

    def _sought(self) -> tuple[tuple[str, str], ...]:
        """Return by which columns of the operands, (alias, name), the join's rows are sought: its readers' keys."""
        readers = [one.step.partition for one in self.view.segments if self.segment.name in one.inputs]
        keys = [partition[1] for partition in readers if partition is not None]
        plain = output_columns(self.join)
        found = dict.fromkeys(plain[name] for name in (keys[0] if keys else plain) if name in plain)
        return tuple(one for one in found if is_sought_by(self._column(*one).type))[:_ORDERED]

    def _led_to(self) -> dict[str, tuple[str, ...]]:
        """Return by alias the columns by which its rows are sought: the join's own, or those of edges from there."""
        found: dict[str, tuple[str, ...]] = {}
        for alias, name in self._sought():
            found[alias] = (*found.get(alias, ()), name)
        while ways := [edge for edge in self.join.edges if (edge.left in found) != (edge.right in found)]:
            edge = ways[0]
            alias, place = (edge.right, 1) if edge.left in found else (edge.left, 0)
            found[alias] = tuple(pair[place] for pair in edge.pairs)[:_ORDERED]
        return found

    def splits(self, lineage: Segment) -> Iterator[tuple[str, Segment]]:
        """Yield by alias the operand's rows that are in the join, each once."""
        rows = Column(name=ROWS, type="bigint", native="bigint")
        sought = self._led_to()
        for alias, own in self.columns().items():
            first = tuple(own[name] for name in sought.get(alias, ()))
            keys = (*first, *(called for called in own.values() if called not in first))
            columns = (*(lineage.relation.column(key) for key in keys), rows)
            step = GroupStep(input=lineage.name, keys=keys, rows=ROWS)
            relation = replace(lineage.relation, name=name_of_kind("split", step, columns), columns=columns)
            yield (
                alias,
                Segment(relation=relation, step=step, is_kept=True, origin=self.segment.origin, looked_up_by=first),
            )

    def projection(self, lineage: Segment) -> JoinStep:
        """Return what the join gave, from the rows of the lineage view."""
        held = self.columns()
        meant = {(alias, name): column(_ALIAS, called) for alias, own in held.items() for name, called in own.items()}
        values = [(output.name, settle(output.expression, meant)) for output in self.join.outputs]
        return JoinStep(view=build_join(self.view.name, {_ALIAS: lineage.relation}, (), values))
