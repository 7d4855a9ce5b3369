"""How many rows every segment of a view has, and how long they are: from what sources know of their columns.

| step | rows |
|---|---|
| join | Π rows of the operands, / the larger number of distinct values for every equal pair, · 1/distinct for each `column = value`, · 1/3 for any other condition |
| group, aggregates | the distinct combinations of keys, but no more than rows |
| windows | as many as before |
| first rows | the limit, for each partition |
| union | the sum of what is added |

These are the estimates that databases make, and as wrong as those where columns depend on each other. What is kept has
been counted: `counted` goes before any estimate.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from headwater.model.relation import RelationName, SegmentName
from headwater.sources.measure import ColumnMeasure, RelationMeasure
from headwater.views.steps.join import JoinView
from headwater.views.steps.segments import SegmentedView, Segments

_OTHER_CONDITION = 1 / 3
_COMPUTED_WIDTH = 8.0


@dataclass(slots=True, kw_only=True)
class RowEstimates:
    """Rows and widths of a view's segments. Each is worked out once."""

    view: SegmentedView
    relations: Mapping[RelationName, RelationMeasure]
    counted: Mapping[RelationName, float]
    _rows: dict[RelationName, float] = field(default_factory=dict)
    _segments: Segments = field(init=False)

    def __post_init__(self) -> None:
        """Find segments by name."""
        self._segments = {segment.name: segment for segment in self.view.segments}

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
        if not isinstance(name, SegmentName):
            return self.relations[name].rows
        if name not in self._rows:
            self._rows[name] = (
                self.counted[name] if name in self.counted else self._segments[name].step.estimated_rows(self)
            )
        return self._rows[name]

    def column(self, name: RelationName, held: str) -> ColumnMeasure:
        """Return what is known of a column of a relation or segment."""
        if not isinstance(name, SegmentName):
            return self.relations[name].columns[held]
        below = self._segments[name].step.column_below(self._segments[name], held, self._segments)
        if below is None:
            return ColumnMeasure(width=_COMPUTED_WIDTH, distinct=self.rows(name))
        found = self.column(*below)
        return ColumnMeasure(width=found.width, distinct=min(found.distinct, max(1.0, self.rows(name))))

    def groups(self, name: RelationName, keys: tuple[str, ...]) -> float:
        """Return how many different keys rows have. One group without keys."""
        return min(self.rows(name), prod(self.column(name, key).distinct for key in keys)) if keys else 1.0

    def joined(self, join: JoinView) -> float:
        """Return how many rows a join gives."""
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
        selections = join.selections[alias]
        others = sum(condition.aliases == {alias} for condition in join.conditions) - len(selections)
        shares = [
            min(1.0, len(one.values) / max(1.0, self.column(name, one.column).distinct))
            if one.compare == "equal"
            else _OTHER_CONDITION
            for one in selections
        ]
        return prod(shares) * float(_OTHER_CONDITION ** max(0, others))
