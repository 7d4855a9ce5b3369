"""What maintaining a view's segments is expected to cost: how many rows are read for one changed row.

The unit is the row: an old row that a batch looks up, in a source, a replica or an auxiliary table, to know what a
change does. It is what a batch counts (`read_rows`). From how many rows relations and kept segments have, and from
keys:

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
from dataclasses import dataclass

from headwater.model.relation import RelationName
from headwater.views.steps.segments import Needs, SegmentedView
from headwater.views.steps.sizes import OLD_AND_NEW, Fanout, Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCost:
    """Rows read for one changed row: of an input, for every segment. Of a relation, for the whole view.

    `whole` are the rows that recomputing the view reads; `per_commit` those that are read whenever something changed;
    `there` are all rows that could be read.
    """

    segments: Mapping[RelationName, float]
    relations: Mapping[RelationName, float]
    whole: float
    per_commit: float
    there: float

    def batch(self, changed: Mapping[RelationName, int]) -> float:
        """Return how many rows a batch reads if this many rows of each relation changed in it.

        Changes that lead to the same row read it once: n reads of N rows meet N(1 - e^(-n/N)) different ones.
        """
        reads = sum(count * self.relations.get(name, 0.0) for name, count in changed.items())
        return self.per_commit - self.there * math.expm1(-reads / self.there)


def view_cost(view: SegmentedView, rows: Mapping[RelationName, int]) -> ViewCost:
    """Return what a view is expected to cost, given how many rows relations and kept segments have, as far as known."""
    described = {segment.name: segment.relation for segment in view.segments}
    sizes = Sizes(rows={name: float(count) for name, count in rows.items()}, segments=described)
    fanouts: dict[RelationName, dict[RelationName, Fanout]] = {}
    below: dict[RelationName, frozenset[RelationName]] = {}
    for segment in view.segments:
        fanouts[segment.name] = segment.step.fanouts(segment, sizes)
        below[segment.name] = frozenset[RelationName]().union(*(below.get(name, {name}) for name in segment.inputs))
        guess = min(segment.step.output_rows(sizes), sum(map(sizes.of, below[segment.name])))
        sizes.rows.setdefault(segment.name, guess)
        if segment.step.row_keys is not None:
            sizes.keys[segment.name] = frozenset(segment.step.row_keys)
        if not segment.is_kept:
            sizes.behind[segment.name] = segment.step.rows_behind(sizes)
            sizes.beneath[segment.name] = sum(map(sizes.there, segment.inputs))
    whole = sum(sizes.of(name) for name in view.relations)
    there = whole + sum(sizes.of(segment.name) for segment in view.segments[:-1] if segment.is_kept)
    return ViewCost(
        segments={
            one.name: max(
                (
                    min(fanout.read, one.step.most_read(one, name, sizes))
                    for name, fanout in fanouts[one.name].items()
                ),
                default=0.0,
            )
            for one in view.segments
        },
        relations={name: min(_through(view, fanouts, sizes, name), there) for name in view.relations},
        whole=whole,
        there=there,
        per_commit=sum(
            sizes.of(name) for segment in view.segments if segment.step.needs is Needs.EVERYTHING
            for name in segment.inputs
        ),
    )  # fmt: skip


def _through(
    view: SegmentedView,
    fanouts: Mapping[RelationName, Mapping[RelationName, Fanout]],
    sizes: Sizes,
    relation: RelationName,
) -> float:
    """Return the rows read in all segments when one row of a relation changes.

    A segment reads no more than there is for it to read, and has no more changed rows than old and new ones.
    """
    changed: dict[RelationName, float] = {relation: 1.0}
    read = 0.0
    for segment in view.segments:
        found = fanouts[segment.name]
        read += sum(
            min(changed.get(name, 0.0) * fanout.read, segment.step.most_read(segment, name, sizes))
            for name, fanout in found.items()
        )
        made = sum(changed.get(name, 0.0) * fanout.changed for name, fanout in found.items())
        changed[segment.name] = min(made, OLD_AND_NEW * sizes.of(segment.name))
    return read
