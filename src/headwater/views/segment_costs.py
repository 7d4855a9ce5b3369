"""What maintaining a view's segments is expected to cost: how many rows are read for one changed row.

The unit is the row: an old row that a batch looks up, in a source, a replica or a hidden table, to know what a change
does. It is what a batch counts (`read_rows`). From how many rows relations and kept segments have, and from keys:

    a join       its other occurrences, along its equalities: as many rows of each as one value finds there
    a group      the old row of its group
    a regroup    its partition's rows; the first rows where there is LIMIT
    a union      nothing
    recompute    all rows of its inputs, once per commit, whatever has changed

A row of a segment without a group table is computed: then the rows are read that it comes from. However many rows are
looked up, no more are read than there are.

How many rows a segment has that nobody has counted is guessed, and guesses multiply: it is taken to have no more than
all relations below it together.

How many different values a column has is not known. Of a key there are as many as rows; a column that equals the key of
another relation has as many as that one has rows; of any other column √rows are assumed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from headwater.relation import Relation, RelationName
from headwater.views.normal_form import JoinView
from headwater.views.segments import (
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

_OLD_AND_NEW = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCost:
    """Rows read for one changed row: of an input, for every segment; of a relation, for the whole view.

    `whole` are the rows that recomputing the view reads; `per_commit` those that are read whenever something changed;
    `there` are all rows that could be read.
    """

    segments: Mapping[RelationName, float]
    relations: Mapping[RelationName, float]
    whole: float
    per_commit: float
    there: float

    def batch(self, changed: Mapping[RelationName, int]) -> float:
        """Return how many rows a batch reads in which so many rows of relations changed.

        Changes that lead to the same row read it once: n reads of N rows meet N(1 - e^(-n/N)) different ones.
        """
        reads = sum(count * self.relations.get(name, 0.0) for name, count in changed.items())
        return self.per_commit - self.there * math.expm1(-reads / self.there)


@dataclass(slots=True, kw_only=True)
class _Sizes:
    """How many rows there are of what, and by what its rows are found one at a time."""

    rows: dict[RelationName, float]
    keys: dict[RelationName, frozenset[str]] = field(default_factory=dict)
    behind: dict[RelationName, float] = field(default_factory=dict)
    """Of segments that are not kept: how many rows are read to compute one of theirs."""
    beneath: dict[RelationName, float] = field(default_factory=dict)
    """Of segments that are not kept: how many rows there are to compute all of theirs from."""

    def of(self, name: RelationName) -> float:
        return max(1.0, self.rows.get(name, 1.0))

    def read(self, name: RelationName, rows: float) -> float:
        """Return how many rows are read to look up so many of a relation or segment: all there are, at most."""
        return min(rows * self.behind.get(name, 1.0), self.there(name))

    def there(self, name: RelationName) -> float:
        """Return how many rows can be read to know all of a relation or segment."""
        return self.beneath[name] if name in self.beneath else self.of(name)

    def is_key(self, relation: Relation, columns: tuple[str, ...]) -> bool:
        key = self.keys.get(relation.name) or frozenset(relation.key)
        return bool(key) and key <= set(columns)

    def found(self, relation: Relation, columns: tuple[str, ...], *, equal_to: float | None = None) -> float:
        """Return how many rows one value finds; `equal_to` values there are on the other side, if they are a key."""
        rows = self.of(relation.name)
        if self.is_key(relation, columns):
            return 1.0
        return rows / (math.sqrt(rows) if equal_to is None else min(rows, equal_to))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spread:
    """What one changed row of an input leads to: rows read, and changed rows of the output."""

    read: float
    changed: float


def view_cost(view: SegmentedView, rows: Mapping[RelationName, int]) -> ViewCost:
    """Return what a view is expected to cost, given how many rows relations and kept segments have, as far as known."""
    sizes = _Sizes(rows={name: float(count) for name, count in rows.items()})
    described = {segment.name: segment.relation for segment in view.segments}
    spreads: dict[RelationName, dict[RelationName, _Spread]] = {}
    below: dict[RelationName, frozenset[RelationName]] = {}
    for segment in view.segments:
        spreads[segment.name] = _spreads(segment, described, sizes)
        below[segment.name] = frozenset[RelationName]().union(*(below.get(name, {name}) for name in segment.inputs))
        guess = min(_output_rows(segment, described, sizes), sum(map(sizes.of, below[segment.name])))
        sizes.rows.setdefault(segment.name, guess)
        _note_key(segment, sizes)
        if not segment.is_kept:
            sizes.behind[segment.name] = _behind(segment, described, sizes)
            sizes.beneath[segment.name] = sum(map(sizes.there, segment.inputs))
    whole = sum(sizes.of(name) for name in view.relations)
    there = whole + sum(sizes.of(segment.name) for segment in view.segments[:-1] if segment.is_kept)
    return ViewCost(
        segments={
            one.name: max(
                (min(spread.read, _most(one, name, sizes)) for name, spread in spreads[one.name].items()), default=0.0
            )
            for one in view.segments
        },
        relations={name: min(_through(view, spreads, sizes, name), there) for name in view.relations},
        whole=whole,
        there=there,
        per_commit=sum(
            sizes.of(name) for segment in view.segments if isinstance(segment.step, RecomputeStep)
            for name in segment.inputs
        ),
    )  # fmt: skip


def _through(
    view: SegmentedView,
    spreads: Mapping[RelationName, Mapping[RelationName, _Spread]],
    sizes: _Sizes,
    relation: RelationName,
) -> float:
    """Return the rows read in all segments when one row of a relation changes.

    A segment reads no more than there is for it to read, and has no more changed rows than old and new ones.
    """
    changed: dict[RelationName, float] = {relation: 1.0}
    read = 0.0
    for segment in view.segments:
        found = spreads[segment.name]
        read += sum(
            min(changed.get(name, 0.0) * spread.read, _most(segment, name, sizes)) for name, spread in found.items()
        )
        made = sum(changed.get(name, 0.0) * spread.changed for name, spread in found.items())
        changed[segment.name] = min(made, _OLD_AND_NEW * sizes.of(segment.name))
    return read


def _most(segment: Segment, changed: RelationName, sizes: _Sizes) -> float:
    """Return how many rows a segment can read at most, however many rows of an input have changed."""
    match segment.step:
        case JoinStep(view=join):
            return sum(sizes.there(one.relation.name) for one in join.occurrences) - sizes.there(changed)
        case GroupStep() if segment.is_kept:
            return sizes.of(segment.name)
        case _:
            return sum(map(sizes.there, segment.inputs))


def _spreads(
    segment: Segment, described: Mapping[RelationName, Relation], sizes: _Sizes
) -> dict[RelationName, _Spread]:
    step = segment.step
    match step:
        case JoinStep(view=join):
            return _join_spreads(join, sizes)
        case GroupStep():
            read = 1.0 if segment.is_kept else _behind(segment, described, sizes)
            return {step.input: _Spread(read=read, changed=_OLD_AND_NEW)}
        case RegroupStep(computed=First() as first, keys=()):
            return {step.input: _Spread(read=min(first.last, sizes.of(step.input)), changed=_OLD_AND_NEW)}
        case RegroupStep():
            partition = sizes.found(described[step.input], step.keys) if step.keys else sizes.of(step.input)
            changed = _OLD_AND_NEW * (partition if isinstance(step.computed, Windows) else 1.0)
            return {step.input: _Spread(read=sizes.read(step.input, partition), changed=changed)}
        case UnionStep():
            return dict.fromkeys(segment.inputs, _Spread(read=0.0, changed=1.0))
        case RecomputeStep():
            return dict.fromkeys(segment.inputs, _Spread(read=0.0, changed=_OLD_AND_NEW))
        case _:
            assert_never(step)


def _join_spreads(join: JoinView, sizes: _Sizes) -> dict[RelationName, _Spread]:
    found: dict[RelationName, _Spread] = {}
    for occurrence in join.occurrences:
        one = _spread_from(join, occurrence.alias, sizes)
        before = found.get(occurrence.relation.name, _Spread(read=0.0, changed=0.0))
        found[occurrence.relation.name] = _Spread(read=before.read + one.read, changed=before.changed + one.changed)
    return found


def _spread_from(join: JoinView, start: str, sizes: _Sizes) -> _Spread:
    """Return what one row of an occurrence leads to, along equalities; what none leads to is read whole."""
    reached, read, changed = {start: 1.0}, 0.0, 1.0
    while len(reached) < len(join.occurrences):
        alias, rows, fan = _next(join, reached, sizes)
        reached[alias] = min(rows, sizes.of(join.occurrence(alias).relation.name))
        read += sizes.read(join.occurrence(alias).relation.name, rows)
        changed *= fan
    return _Spread(read=read, changed=changed)


def _next(join: JoinView, reached: Mapping[str, float], sizes: _Sizes) -> tuple[str, float, float]:
    """Return the occurrence that the fewest rows are read of next, how many, and how many per row that leads there."""
    choices = []
    for edge in join.edges:
        for own, other, pairs in (
            (edge.left, edge.right, edge.pairs),
            (edge.right, edge.left, [(b, a) for a, b in edge.pairs]),
        ):
            if own in reached and other not in reached:
                here, there = join.occurrence(own).relation, join.occurrence(other).relation
                is_key = sizes.is_key(here, tuple(a for a, _ in pairs))
                columns = tuple(b for _, b in pairs)
                fan = sizes.found(there, columns, equal_to=sizes.of(here.name) if is_key else None)
                choices.append((reached[own] * fan, other, fan))
    if choices:
        rows, alias, fan = min(choices)
        return alias, rows, fan
    alias = next(one.alias for one in join.occurrences if one.alias not in reached)
    whole = sizes.of(join.occurrence(alias).relation.name)
    return alias, whole, whole


def _output_rows(segment: Segment, described: Mapping[RelationName, Relation], sizes: _Sizes) -> float:
    step = segment.step
    match step:
        case JoinStep(view=join):
            start = join.occurrences[0]
            return sizes.of(start.relation.name) * _spread_from(join, start.alias, sizes).changed
        case GroupStep() | RegroupStep(computed=Aggregates()):
            rows = sizes.of(step.input)
            return rows / sizes.found(described[step.input], step.keys) if step.keys else 1.0
        case RegroupStep(computed=First() as first, keys=()):
            return min(first.limit, sizes.of(step.input))
        case RegroupStep():
            return sizes.of(step.input)
        case UnionStep():
            return sum(sizes.of(signed.input) for signed in step.inputs if signed.sign > 0)
        case RecomputeStep():
            return max(sizes.of(name) for name in segment.inputs)
        case _:
            assert_never(step)


def _behind(segment: Segment, described: Mapping[RelationName, Relation], sizes: _Sizes) -> float:
    """Return how many rows are read to compute one row of a segment."""
    step = segment.step
    match step:
        case JoinStep(view=join):
            return sum(sizes.read(occurrence.relation.name, 1.0) for occurrence in join.occurrences)
        case GroupStep() | RegroupStep():
            partition = sizes.found(described[step.input], step.keys) if step.keys else sizes.of(step.input)
            return sizes.read(step.input, partition)
        case UnionStep():
            return sum(sizes.read(name, 1.0) for name in segment.inputs)
        case RecomputeStep():
            return sum(sizes.of(name) for name in segment.inputs)
        case _:
            assert_never(step)


def _note_key(segment: Segment, sizes: _Sizes) -> None:
    step = segment.step
    if isinstance(step, GroupStep) or (isinstance(step, RegroupStep) and isinstance(step.computed, Aggregates)):
        sizes.keys[segment.name] = frozenset(step.keys)
