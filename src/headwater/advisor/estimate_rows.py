"""How many rows every segment of a view has, and how long they are: from what sources know of their columns.

| step | rows |
|---|---|
| join | Π rows of the operands, / the larger number of distinct values for every equal pair, · 1/distinct for each `column = value`, · 1/3 for any other condition |
| group, aggregates | the distinct combinations of keys, but no more than rows |
| windows | as many as before |
| first rows | so many of each partition |
| union | the sum of what is added |

These are the estimates that databases make, and as wrong as those where columns depend on each other. What is kept has
been counted: `known` goes before any estimate.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import assert_never

from headwater.relation import RelationName
from headwater.sources.measure import ColumnMeasure, RelationMeasure
from headwater.views.normal_form import JoinView
from headwater.views.output_columns import output_columns
from headwater.views.segments import (
    SEGMENTS,
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

_OTHER_CONDITION = 1 / 3
_COMPUTED_WIDTH = 8.0


@dataclass(slots=True, kw_only=True)
class RowEstimates:
    """Rows and widths of a view's segments; each is worked out once."""

    view: SegmentedView
    relations: Mapping[RelationName, RelationMeasure]
    known: Mapping[RelationName, float]
    _rows: dict[RelationName, float] = field(default_factory=dict)

    def segment_rows(self) -> dict[RelationName, float]:
        """Return the rows of every segment."""
        return {segment.name: self.rows(segment.name) for segment in self.view.segments}

    def segment_row_sizes(self) -> dict[RelationName, float]:
        """Return the bytes of a row of every segment."""
        return {
            segment.name: sum(self.column(segment.name, name).width for name in segment.relation.column_names)
            for segment in self.view.segments
        }

    def rows(self, name: RelationName) -> float:
        """Return the rows of a relation or segment."""
        if name.source != SEGMENTS:
            return self.relations[name].rows
        if name not in self._rows:
            self._rows[name] = self.known[name] if name in self.known else self._estimated(self._segment(name))
        return self._rows[name]

    def column(self, name: RelationName, held: str) -> ColumnMeasure:
        """Return what is known of a column of a relation or segment."""
        if name.source != SEGMENTS:
            return self.relations[name].columns[held]
        below = _column_below(self._segment(name), held, self.view)
        if below is None:
            return ColumnMeasure(width=_COMPUTED_WIDTH, distinct=self.rows(name))
        found = self.column(*below)
        return ColumnMeasure(width=found.width, distinct=min(found.distinct, max(1.0, self.rows(name))))

    def _segment(self, name: RelationName) -> Segment:
        return next(segment for segment in self.view.segments if segment.name == name)

    def _estimated(self, segment: Segment) -> float:
        match segment.step:
            case JoinStep(view=join):
                return self._joined(join)
            case GroupStep(input=name, keys=keys):
                return self._groups(name, keys)
            case RegroupStep(input=name, keys=keys, computed=computed):
                if isinstance(computed, Windows):
                    return self.rows(name)
                of_each = computed.limit if isinstance(computed, First) else 1
                return min(self.rows(name), of_each * self._groups(name, keys))
            case UnionStep(inputs=inputs):
                return sum(self.rows(signed.input) for signed in inputs if signed.sign > 0)
            case RecomputeStep(inputs=inputs):
                return sum(self.rows(name) for name in inputs)
            case _:
                assert_never(segment.step)

    def _groups(self, name: RelationName, keys: tuple[str, ...]) -> float:
        return min(self.rows(name), prod(self.column(name, key).distinct for key in keys)) if keys else 1.0

    def _joined(self, join: JoinView) -> float:
        read = {o.alias: o.relation.name for o in join.occurrences}
        rows = prod(self.rows(name) for name in read.values())
        equal = [
            max(self.column(read[edge.left], left).distinct, self.column(read[edge.right], right).distinct)
            for edge in join.edges
            for left, right in edge.pairs
        ]
        passing = prod(self._passing(join, o.alias, o.relation.name) for o in join.occurrences)
        linking = sum(len(condition.aliases) > 1 for condition in join.conditions)
        return rows * passing * _OTHER_CONDITION ** max(0, linking - len(equal)) / prod(max(1.0, one) for one in equal)

    def _passing(self, join: JoinView, alias: str, name: RelationName) -> float:
        """Return the share of an occurrence's rows that pass its own conditions, as one guesses it."""
        known = join.selections[alias]
        others = sum(condition.aliases == {alias} for condition in join.conditions) - len(known)
        shares = [
            min(1.0, len(one.values) / max(1.0, self.column(name, one.column).distinct))
            if one.compare == "equal"
            else _OTHER_CONDITION
            for one in known
        ]
        return prod(shares) * float(_OTHER_CONDITION ** max(0, others))


def _column_below(segment: Segment, held: str, view: SegmentedView) -> tuple[RelationName, str] | None:
    """Return the column below that a segment's column is, as it is; None where it is computed."""
    match segment.step:
        case JoinStep(view=join):
            found = output_columns(join).get(held)
            return None if found is None else (join.occurrence(found[0]).relation.name, found[1])
        case GroupStep(input=name, keys=keys) | RegroupStep(input=name, keys=keys):
            is_passed = held in keys or (
                isinstance(segment.step, RegroupStep) and isinstance(segment.step.computed, First)
            )
            return (name, held) if is_passed else None
        case UnionStep(inputs=inputs):
            place = segment.relation.column_names.index(held)
            first = next(one for one in view.segments if one.name == inputs[0].input)
            return first.name, first.relation.column_names[place]
        case RecomputeStep():
            return None
        case _:
            assert_never(segment.step)
