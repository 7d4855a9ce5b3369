"""Obstacles in words that the view's author knows: relations, their columns, and the conditions as written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowRestriction
from headwater.engine.state.sought import Sought
from headwater.lineage.join_obstacles import Blocked
from headwater.lineage.obstacles import Missing, Obstacle, ObstacleKind
from headwater.lineage.twins import Twin
from headwater.model.relation import RelationName, SegmentName
from headwater.views.steps.computed import First
from headwater.views.steps.join import JoinView, Output
from headwater.views.steps.segments import Segment
from headwater.views.text.author_words import AuthorWords

FormatValue = Callable[[object], str]
"""Writes a value for a person."""

_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ObstacleTexts:
    """Writes obstacles of one view. `outputs` are its columns, which need no explaining."""

    outputs: tuple[str, ...]
    segments: Mapping[RelationName, Segment]
    words: AuthorWords
    format_value: FormatValue

    def of_join(self, blocked: Blocked, join: JoinView, sought: Sought) -> Obstacle:
        """Return where a join comes to nothing."""
        name, within, test = blocked.occurrence.relation.name, blocked.within, blocked.test
        missing = None
        if blocked.kind in (ObstacleKind.NO_ROW, ObstacleKind.NO_PARTNER):
            where = self._title(name)
            text = f"{where} has no rows" if within is None else f"no row of {where} has {self._keys(name, within)}"
            if test is not None:
                text += f", which {self.words.of_expression(test.of.expression, join)} needs"
            if within is not None and not isinstance(name, SegmentName):
                missing = Missing(relation=name, within=within)
        elif test is not None and isinstance(test.of, Output):
            wanted = self.format_value(sought.rows[test.of.name][0].as_py())
            is_output = join.output_names == self.outputs
            called = test.of.name if is_output else self.words.of_expression(test.of.expression, join)
            text = f"{called} is not {wanted}{self._examples(blocked, join, called)}"
        else:
            assert test is not None, "a condition that is not true is known"
            text = f"not true: {self.words.of_expression(test.of.expression, join)}{self._examples(blocked, join)}"
        return Obstacle(kind=blocked.kind, text=text, missing=missing)

    def other_values(self, segment: Segment, there: pa.Table, others: Sequence[str]) -> str:
        """Return what a group has instead of what is sought."""
        rows = there.slice(0, _EXAMPLES).to_pylist()
        texts = [
            " and ".join(f"{self._called(segment.name, one)} = {self.format_value(row[one])}" for one in others)
            for row in rows
        ]
        return f"there is another value: {', or '.join(dict.fromkeys(texts))}"

    def not_first(self, first: First, place: int | None) -> str:
        """Return that a row is beyond LIMIT, or before OFFSET. `place` is where it stands in the order, if known."""
        if first.offset:
            shown = f"places {first.offset + 1:,} to {first.last:,} are shown"
        else:
            shown = "only the first is shown" if first.limit == 1 else f"the first {first.limit:,} are shown"
        return f"it is at place {place:,}, {shown}" if place is not None else f"of those in ORDER BY, {shown}"

    def taken_away(self, twins: Sequence[Twin]) -> str:
        """Return that there is a partner which must not be."""
        tests = [
            self.words.of_expression(condition.expression, twin.taken)
            for twin in twins
            for condition in twin.taken.conditions
            if condition.aliases & {o.alias for o in twin.further}
        ]
        return f"there is a row that must not be there: one with {' and '.join(tests) or 'any values'}"

    def recomputed(self) -> str:
        """Return that nothing more can be said."""
        return "the view's SQL does not give it; it is computed as a whole, so no single reason is known"

    def _title(self, name: RelationName) -> str:
        if not isinstance(name, SegmentName):
            return str(name)
        columns = self.segments[name].relation.column_names
        return f"the rows of {', '.join(self._called(name, column) for column in columns)}"

    def _called(self, name: RelationName, column: str) -> str:
        return column if not isinstance(name, SegmentName) else self.words.of_column(name, column)

    def _keys(self, name: RelationName, within: ArrowRestriction) -> str:
        rows = within.keys.table.slice(0, _EXAMPLES).to_pylist()
        texts = [
            " and ".join(
                f"{self._called(name, column)} = {self.format_value(value)}"
                for column, value in zip(within.columns, row.values(), strict=True)
            )
            for row in rows
        ]
        more = f", nor any of {len(within.keys) - len(rows)} others" if len(within.keys) > len(rows) else ""
        return f"{' or '.join(texts)}{more}"

    def _examples(self, blocked: Blocked, join: JoinView, of: str = "") -> str:
        """Return values that do not fit, of one column alone if they have it."""
        read = {o.alias: o.relation.name for o in join.occurrences}
        every = [held for example in blocked.examples for held in example]
        named_columns = {(alias, column) for alias, column in every if self._named(read[alias], column) == of} or set(
            every
        )
        texts = [
            " and ".join(
                f"{self._named(read[alias], column)} = {self.format_value(value)}"
                for (alias, column), value in example.items()
                if (alias, column) in named_columns
            )
            for example in blocked.examples
        ]
        return f" (with {', or '.join(texts)})" if texts else ""

    def _named(self, name: RelationName, column: str) -> str:
        return self.words.of_column(name, column)
