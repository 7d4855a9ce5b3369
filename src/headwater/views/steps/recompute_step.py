"""The recompute step: anything that Spark can run over whole inputs, once per commit in which one of them changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.deltas.extent import EVERYTHING, Extent
from headwater.model.relation import Relation, RelationName
from headwater.views.compile.expressions import column as column_of
from headwater.views.steps.change_plan import WholeAgain
from headwater.views.steps.derivation import FromEverything
from headwater.views.steps.segments import Held, Leads, Needs, Segment, Segments, Speech
from headwater.views.steps.sizes import OLD_AND_NEW, Estimates, Fanout, Sizes
from headwater.views.text.spark_text import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputeStep:
    """Spark SQL over whole inputs, run once per commit: `sql` writes `{name}` for each input's table."""

    inputs: tuple[RelationName, ...]
    sql: str

    kind = "recompute"
    join = None
    partition = None
    row_keys = None
    needs = Needs.EVERYTHING
    reads_own_rows = True
    join_count = 0
    aggregate_count = 0

    @property
    def identity(self) -> str:
        """All that it says."""
        return repr(self)

    @property
    def operands(self) -> tuple[RelationName, ...]:
        """Its inputs."""
        return self.inputs

    @property
    def needed_rows(self) -> Mapping[RelationName, Extent]:
        """All."""
        return dict.fromkeys(self.inputs, EVERYTHING)

    def whole_sql(self, _segment: Segment, tables: Mapping[RelationName, str]) -> str:
        """Return its own text over tables."""
        sql = self.sql
        for name in self.inputs:
            sql = sql.replace(f"{{{name}}}", quoted(tables[name]))
        return sql

    def change_plan(self, _segment: Segment, _segments: Segments) -> WholeAgain:
        """Return the whole query."""
        return WholeAgain(inputs=self.inputs)

    def looked_up(self, _segment: Segment) -> Iterable[tuple[RelationName, tuple[str, ...]]]:
        """Return all rows of its inputs."""
        return [(name, ()) for name in self.inputs]

    def leads_below(self, _carried: Sequence[Held], _leads: Leads) -> bool:
        """Return that nothing leads to few rows."""
        return False

    def input_columns(self, _segment: Segment, segments: Segments) -> list[tuple[Relation, Mapping[str, str]]]:
        """Return nothing of any input: what it does with columns is not known."""
        return [(segments[name].relation, {}) for name in self.inputs]

    def unique_columns(self, _segments: Segments) -> None:
        """Return none."""
        return

    def passed(self, _segment: Segment, _column: str, _segments: Segments) -> Iterable[tuple[RelationName, str]]:
        """Return nothing."""
        return []

    def column_below(self, _segment: Segment, _column: str, _segments: Segments) -> None:
        """Return none."""
        return

    def column_meaning(self, segment: Segment, column: str, _segments: Segments) -> exp.Expr:
        """Return its own column."""
        return column_of(segment.name.name, column)

    def fanouts(self, _segment: Segment, _sizes: Sizes) -> dict[RelationName, Fanout]:
        """Return nothing read for a changed row: what is read once per commit counts by itself."""
        return dict.fromkeys(self.inputs, Fanout(read=0.0, changed=OLD_AND_NEW))

    def most_read(self, _segment: Segment, _changed: RelationName, sizes: Sizes) -> float:
        """Return all rows of its inputs."""
        return sum(map(sizes.there, self.inputs))

    def rows_behind(self, sizes: Sizes) -> float:
        """Return all rows of its inputs."""
        return sum(map(sizes.of, self.inputs))

    def output_rows(self, sizes: Sizes) -> float:
        """Return as many as its largest input has."""
        return max(map(sizes.of, self.inputs))

    def estimated_rows(self, estimates: Estimates) -> float:
        """Return as many as its inputs have."""
        return sum(map(estimates.rows, self.inputs))

    def derivation(self, _segment: Segment) -> FromEverything:
        """Return all rows of its inputs."""
        return FromEverything(inputs=self.inputs)

    def words(self, _segment: Segment, _speech: Speech) -> list[str]:
        """Return that it is all of the text."""
        return ["the view's whole SQL"]

    def computed_words(self, _segment: Segment, _speech: Speech) -> str:
        """Return that it is all of the view."""
        return "the whole view"

    def maintained(self, _segment: Segment) -> str:
        """Return when it is computed."""
        return "all of it, once per commit in which an input changed"
