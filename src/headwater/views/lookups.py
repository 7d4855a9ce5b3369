"""Whose old rows the steps of a view look up, by which columns, and where these columns lead.

A step needs old rows of segments besides its inputs' changes (`segments`). They are found in a group table; or they are
computed from what the segment reads, as far down as the columns lead there (`lineage/segment_rows`):

    a join       by its outputs that are columns of what it reads, then along its equalities
    a group      by its keys, and a regroup by those of its keys that it shows
    a union      by position, in every input
    recompute    by nothing
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from headwater.relation import Relation, RelationName
from headwater.views.normal_form import JoinView
from headwater.views.output_columns import output_columns
from headwater.views.partition_columns import partition_columns
from headwater.views.segments import (
    SEGMENTS,
    GroupStep,
    JoinStep,
    RecomputeStep,
    RegroupStep,
    Segment,
    UnionStep,
)

Lookups = Mapping[RelationName, frozenset[tuple[str, ...]]]
"""By segment, the columns by which its old rows are looked up; () where all of them are."""
Held = tuple[Relation, Sequence[str]]
"""A relation or segment, and some of its columns."""


def lookups(segments: Sequence[Segment]) -> Lookups:
    """Return the segments whose old rows some step looks up; the last one is the view, and read as a table."""
    found: dict[RelationName, set[tuple[str, ...]]] = {}
    for segment in segments:
        for name, columns in _lookups_of(segment):
            if name.source == SEGMENTS:
                found.setdefault(name, set()).add(columns)
    return {name: frozenset(by) for name, by in found.items()}


def _lookups_of(segment: Segment) -> Iterable[tuple[RelationName, tuple[str, ...]]]:
    step = segment.step
    match step:
        case JoinStep(view=join):
            return _join_lookups(join)
        case GroupStep(keys=keys):
            return [(segment.name, keys)]
        case RegroupStep(input=name, keys=keys):
            return [(name, keys)]
        case RecomputeStep(inputs=inputs):
            return [(name, ()) for name in inputs]
        case UnionStep():
            return []
        case _:
            assert_never(step)


def _join_lookups(join: JoinView) -> Iterable[tuple[RelationName, tuple[str, ...]]]:
    """Yield what a sweep may ask: by every equality, and everything where equalities do not lead everywhere."""
    if len(join.occurrences) == 1:
        return
    is_connected = len(_reached(join, {join.occurrences[0].alias})) == len(join.occurrences)
    for occurrence in join.occurrences:
        if not is_connected:
            yield occurrence.relation.name, ()
        for _, columns in _neighbours(join, occurrence.alias):
            yield occurrence.relation.name, columns


def _neighbours(join: JoinView, alias: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield the occurrences that share an equality with one, and the columns of the one that they lead to."""
    for edge in join.edges:
        if edge.left == alias:
            yield edge.right, tuple(own for own, _ in edge.pairs)
        if edge.right == alias:
            yield edge.left, tuple(own for _, own in edge.pairs)


def _reached(join: JoinView, start: set[str], leads: Leads | None = None) -> set[str]:
    """Return the occurrences that some lead to along equalities; with `leads`, along those that lead on below."""
    reached = set(start)
    while more := {
        occurrence.alias
        for occurrence in join.occurrences
        if occurrence.alias not in reached
        for neighbour, columns in _neighbours(join, occurrence.alias)
        if neighbour in reached and (leads is None or leads.to(occurrence.relation, columns))
    }:
        reached |= more
    return reached


def is_sought_by(kind: str) -> bool:
    """Tell whether rows are looked up by values of a type: not by floating numbers, nor by arrays.

    >>> is_sought_by("decimal(12,2)"), is_sought_by("double"), is_sought_by("array<int>")
    (True, False, False)
    """
    return not kind.startswith(("float", "double", "array"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Leads:
    """Where columns lead in a view's segments, of which some are kept."""

    segments: Mapping[RelationName, Segment]
    kept: Collection[RelationName]

    def to(self, relation: Relation, columns: Iterable[str]) -> bool:
        """Tell whether values of columns lead to few rows of everything that such rows come from."""
        sought = [name for name in columns if is_sought_by(relation.column(name).type)]
        if not sought:
            return False
        if relation.name.source != SEGMENTS or relation.name in self.kept:
            return True
        return self.below(self.segments[relation.name], sought)

    def below(self, segment: Segment, columns: Collection[str]) -> bool:
        """Tell the same of a segment whose rows are computed."""
        carried = self._carried(segment, columns)
        match segment.step:
            case JoinStep(view=join):
                pinned = {o.alias for o, held in zip(join.occurrences, carried, strict=True) if self.to(*held)}
                return bool(pinned) and len(_reached(join, pinned, self)) == len(join.occurrences)
            case GroupStep() | RegroupStep() | UnionStep():
                return all(self.to(*held) for held in carried)
            case RecomputeStep():
                return False
            case _:
                assert_never(segment.step)

    def relations(self, segment: Segment, columns: Collection[str]) -> Iterator[Held]:
        """Yield the relations that a lookup comes to where the rows of a segment are computed, and by what columns."""
        for relation, held in self._carried(segment, columns):
            if held and relation.name.source != SEGMENTS:
                yield relation, held
            elif held and relation.name not in self.kept:
                yield from self.relations(self.segments[relation.name], held)

    def _carried(self, segment: Segment, columns: Collection[str]) -> list[Held]:
        """Return for every input, of a join for every occurrence, which of its columns hold columns of a segment."""
        step = segment.step
        match step:
            case JoinStep(view=join):
                plain = output_columns(join)
                pairs = [plain[name] for name in columns if name in plain]
                return [(o.relation, [name for alias, name in pairs if alias == o.alias]) for o in join.occurrences]
            case GroupStep(input=name, keys=keys):
                return [self._input(name, {key: key for key in keys}, columns)]
            case RegroupStep(input=name):
                return [self._input(name, partition_columns(step), columns)]
            case UnionStep():
                own = segment.relation.column_names
                return [
                    self._input(name, dict(zip(own, self.segments[name].relation.column_names, strict=True)), columns)
                    for name in segment.inputs
                ]
            case RecomputeStep():
                return []
            case _:
                assert_never(step)

    def _input(self, name: RelationName, called: Mapping[str, str], columns: Collection[str]) -> Held:
        return self.segments[name].relation, [called[column] for column in columns if column in called]
