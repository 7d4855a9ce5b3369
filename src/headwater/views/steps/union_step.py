"""The union step: a sum of inputs with signs. UNION ALL, and rows minus those that matched. Its law is `laws/union`.

It needs nothing but its inputs' changes. Columns go by their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from headwater.deltas.extent import EVERYTHING, Extent
from headwater.model.relation import Relation, RelationName
from headwater.views.laws.union import change_union
from headwater.views.steps.change_plan import SumOfChanges
from headwater.views.steps.derivation import FromMembers, Signed
from headwater.views.steps.segments import Held, Leads, Needs, Segment, Segments, Speech
from headwater.views.steps.sizes import Estimates, Fanout, Sizes
from headwater.views.text.meaning import meaning
from headwater.views.text.spark_text import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class UnionStep:
    """The sum of inputs with signs. All have the output's column types, in order."""

    inputs: tuple[Signed, ...]

    kind = "union"
    join = None
    partition = None
    row_keys = None
    needs = Needs.NOTHING
    reads_own_rows = False
    join_count = 0
    aggregate_count = 0

    @property
    def identity(self) -> str:
        """All that it says."""
        return repr(self)

    @property
    def operands(self) -> tuple[RelationName, ...]:
        """Its inputs."""
        return tuple(signed.input for signed in self.inputs)

    @property
    def needed_rows(self) -> Mapping[RelationName, Extent]:
        """All."""
        return dict.fromkeys(self.operands, EVERYTHING)

    @property
    def _added(self) -> list[RelationName]:
        return [signed.input for signed in self.inputs if signed.sign > 0]

    def whole_sql(self, segment: Segment, tables: Mapping[RelationName, str]) -> str:
        """Return what is added, without what is taken away: all copies count."""
        added = [f"SELECT * FROM {quoted(tables[name])}" for name in self._added]
        taken = [f"SELECT * FROM {quoted(tables[signed.input])}" for signed in self.inputs if signed.sign < 0]
        text = " UNION ALL ".join(added)
        if taken:
            text = f"({text}) EXCEPT ALL ({' UNION ALL '.join(taken)})"
        return f"SELECT * FROM ({text}) AS united({', '.join(map(quoted, segment.relation.column_names))})"

    def change_plan(self, segment: Segment, _segments: Segments) -> SumOfChanges:
        """Return the sum of its inputs' changes."""
        return SumOfChanges(total=partial(change_union, self, segment.relation))

    def looked_up(self, _segment: Segment) -> Iterable[tuple[RelationName, tuple[str, ...]]]:
        """Return nothing."""
        return []

    def leads_below(self, carried: Sequence[Held], leads: Leads) -> bool:
        """Tell whether every input is led to."""
        return all(leads(*held) for held in carried)

    def input_columns(self, segment: Segment, segments: Segments) -> list[tuple[Relation, Mapping[str, str]]]:
        """Return the columns of every input at the same places."""
        own = segment.relation.column_names
        given = [segments[name].relation for name in segment.inputs]
        return [(relation, dict(zip(own, relation.column_names, strict=True))) for relation in given]

    def unique_columns(self, _segments: Segments) -> None:
        """Return none: a row may be in two inputs."""
        return

    def passed(self, segment: Segment, column: str, segments: Segments) -> Iterator[tuple[RelationName, str]]:
        """Yield the column at the same place of all that is added."""
        place = segment.relation.column_names.index(column)
        yield from ((name, segments[name].relation.column_names[place]) for name in self._added)

    def column_below(self, segment: Segment, column: str, segments: Segments) -> tuple[RelationName, str]:
        """Return the column at the same place of the first input."""
        place = segment.relation.column_names.index(column)
        return self.operands[0], segments[self.operands[0]].relation.column_names[place]

    def column_meaning(self, segment: Segment, column: str, segments: Segments) -> exp.Expr:
        """Return what the column at the same place means in the first input that is added."""
        return meaning(*next(iter(self.passed(segment, column, segments))), segments)

    def fanouts(self, _segment: Segment, _sizes: Sizes) -> dict[RelationName, Fanout]:
        """Return that a change is passed on."""
        return dict.fromkeys(self.operands, Fanout(read=0.0, changed=1.0))

    def most_read(self, segment: Segment, _changed: RelationName, sizes: Sizes) -> float:
        """Return all rows of its inputs."""
        return sum(map(sizes.there, segment.inputs))

    def rows_behind(self, sizes: Sizes) -> float:
        """Return one row of every input."""
        return sum(sizes.read(name, 1.0) for name in dict.fromkeys(self.operands))

    def output_rows(self, sizes: Sizes) -> float:
        """Return the rows of all that is added."""
        return sum(map(sizes.of, self._added))

    def estimated_rows(self, estimates: Estimates) -> float:
        """Return the rows of all that is added."""
        return sum(map(estimates.rows, self._added))

    def derivation(self, _segment: Segment) -> FromMembers:
        """Return the same row of a member."""
        return FromMembers(inputs=self.inputs)

    def words(self, _segment: Segment, _speech: Speech) -> list[str]:
        """Return its inputs with their signs."""
        return [" ".join(f"{'+' if one.sign > 0 else '-'} {one.input.label}" for one in self.inputs)]

    def computed_words(self, segment: Segment, speech: Speech) -> str:
        """Return its columns."""
        return speech.columns(segment.name, segment.relation.column_names)

    def maintained(self, _segment: Segment) -> str:
        """Return that it needs nothing more."""
        return "from its inputs' changes alone"
