"""The regroup step: what is computed within a partition, again for every partition that changes (`computed`).

Its law is `laws/regroup`, or `laws/extremes` for MIN and MAX of a hot partition. It needs its input's old rows of the
touched partitions; for the first rows of everything those that can be among the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import sqlglot
from sqlglot import exp

from headwater.model.relation import Relation, RelationName
from headwater.views.compile.expressions import settle
from headwater.views.laws.extremes import extremes_law_sql, is_extremes
from headwater.views.laws.regroup import regroup_law_sql
from headwater.views.steps.change_plan import LawOverOldRows
from headwater.views.steps.computed import Aggregates, Computed, First, Windows
from headwater.views.steps.derivation import FromPartition, FromRow, FromWindow
from headwater.views.steps.partitioned import PartitionedStep
from headwater.views.steps.segments import Needs, Segment, Segments, Speech
from headwater.views.steps.sizes import OLD_AND_NEW, Estimates, Fanout, Sizes
from headwater.views.steps.unique_columns import unique_columns
from headwater.views.text.meaning import meaning, text_of
from headwater.views.text.spark_text import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class RegroupStep(PartitionedStep):
    """What is computed within a partition, again for every partition that changes. Keys may be none: one partition.

    The output's columns are the keys and the outputs of `Aggregates`, the outputs of `Windows`, or the input's columns
    for `First`. Without keys `Aggregates` gives one row always.
    """

    computed: Computed

    kind = "regroup"
    needs = Needs.PARTITIONS
    reads_own_rows = False

    @property
    def row_keys(self) -> tuple[str, ...] | None:
        """Its keys, if it has one row for each."""
        return self.keys if isinstance(self.computed, Aggregates) else None

    @property
    def aggregate_count(self) -> int:
        """Its functions."""
        return 0 if isinstance(self.computed, First) else len(self.computed.outputs)

    @property
    def first(self) -> First | None:
        """The first rows of all, if it gives these."""
        return self.computed if isinstance(self.computed, First) and not self.keys else None

    def whole_sql(self, segment: Segment, tables: Mapping[RelationName, str]) -> str:
        """Return what is computed, over all partitions."""
        columns = segment.relation.column_names
        rows = self.computed.sql(self.keys, quoted(tables[self.input]), columns)
        return f"SELECT {', '.join(map(quoted, columns))} FROM ({rows}) AS regrouped"

    def change_plan(self, segment: Segment, segments: Segments) -> LawOverOldRows:
        """Return its law over its input's old rows."""
        given = segments[self.input].relation
        return LawOverOldRows(
            changed=self.input,
            old=self.input,
            keys=self.keys,
            law=partial(regroup_law_sql, self, given, segment.relation),
            hot_law=partial(self._hot_law_sql, given, segment.relation),
            first=self.first,
            alters_partitions=isinstance(self.computed, Windows),
        )

    def _hot_law_sql(self, given: Relation, regrouped: Relation, changes: str, old: str) -> str | None:
        return extremes_law_sql(self, given, regrouped, changes, old) if is_extremes(self) else None

    def looked_up(self, _segment: Segment) -> Iterable[tuple[RelationName, tuple[str, ...]]]:
        """Return its input, by its keys."""
        return [(self.input, self.keys)]

    def input_columns(self, _segment: Segment, segments: Segments) -> list[tuple[Relation, Mapping[str, str]]]:
        """Return those of its keys that it shows."""
        return [(segments[self.input].relation, self.computed.partition_columns(self.keys))]

    def unique_columns(self, segments: Segments) -> tuple[str, ...] | None:
        """Return the keys of aggregates, and of first rows what tells the rows of the input apart."""
        match self.computed:
            case Aggregates():
                return self.keys
            case First():
                return unique_columns(segments[self.input].relation, segments)
            case Windows():
                return None

    def passed(self, segment: Segment, column: str, _segments: Segments) -> Iterator[tuple[RelationName, str]]:
        """Yield a column that it gives as it is."""
        if column in self.computed.passed(self.keys, segment.relation.column_names):
            yield self.input, column

    def column_below(self, _segment: Segment, column: str, _segments: Segments) -> tuple[RelationName, str] | None:
        """Return a key, and any column of first rows."""
        return (self.input, column) if column in self.keys or isinstance(self.computed, First) else None

    def column_meaning(self, _segment: Segment, column: str, segments: Segments) -> exp.Expr:
        """Return a function over what the columns of its input mean, or what a column means that it gives as it is."""
        text = None if isinstance(self.computed, First) else dict(self.computed.outputs).get(column)
        if text is None:
            return meaning(self.input, column, segments)
        partition = ", ".join(text_of(meaning(self.input, key, segments)) for key in self.keys) or "1"
        tree = sqlglot.parse_one(text.replace("{partition}", partition), read="spark")
        given = segments[self.input].relation.column_names
        return settle(tree, {("", one): meaning(self.input, one, segments) for one in given})

    def fanouts(self, _segment: Segment, sizes: Sizes) -> dict[RelationName, Fanout]:
        """Return that its partition is read. Of the first rows of all, these."""
        if self.first is not None:
            return {self.input: Fanout(read=min(self.first.last, sizes.of(self.input)), changed=OLD_AND_NEW)}
        rows = sizes.partition(self.input, self.keys)
        changed = OLD_AND_NEW * (rows if isinstance(self.computed, Windows) else 1.0)
        return {self.input: Fanout(read=sizes.read(self.input, rows), changed=changed)}

    def most_read(self, _segment: Segment, _changed: RelationName, sizes: Sizes) -> float:
        """Return all rows of its input."""
        return sizes.there(self.input)

    def output_rows(self, sizes: Sizes) -> float:
        """Return one row per partition, the first rows, or as many as its input has."""
        if isinstance(self.computed, Aggregates):
            return sizes.of(self.input) / sizes.partition(self.input, self.keys) if self.keys else 1.0
        return sizes.of(self.input) if self.first is None else min(self.first.limit, sizes.of(self.input))

    def estimated_rows(self, estimates: Estimates) -> float:
        """Return one row per partition, the first rows of each, or as many as its input has."""
        match self.computed:
            case Windows():
                return estimates.rows(self.input)
            case First(limit=of_each):
                return min(estimates.rows(self.input), of_each * estimates.groups(self.input, self.keys))
            case Aggregates():
                return min(estimates.rows(self.input), estimates.groups(self.input, self.keys))

    def derivation(self, segment: Segment) -> FromPartition | FromRow | FromWindow:
        """Return the whole partition, or the row itself for first rows."""
        match self.computed:
            case Aggregates():
                return FromPartition(input=self.input, keys=self.keys)
            case First():
                return FromRow(input=self.input, first=self.computed)
            case Windows():
                passed = self.computed.passed(self.keys, segment.relation.column_names)
                return FromWindow(input=self.input, keys=self.keys, computed=self.computed, passed=passed)

    def words(self, segment: Segment, speech: Speech) -> list[str]:
        """Return what it computes, and for which partitions."""
        if isinstance(self.computed, First):
            skipped = f" after {self.computed.offset}" if self.computed.offset else ""
            by = f" by {speech.ordered(self.input, self.computed.order)}" if self.computed.order else ""
            return [f"the first {self.computed.limit} rows{skipped}{by}"]
        where = f"for each {speech.columns(self.input, self.keys)}" if self.keys else "over all rows"
        return [f"{self.computed_words(segment, speech)}, {where}"]

    def computed_words(self, segment: Segment, speech: Speech) -> str:
        """Return the columns that are not taken over as they are."""
        if isinstance(self.computed, First):
            return f"the first {self.computed.limit} rows"
        made = [name for name, text in self.computed.outputs if text.strip("`") != name]
        return speech.columns(segment.name, made) or "which rows there are"

    def maintained(self, _segment: Segment) -> str:
        """Return when it is computed, and from what."""
        if self.first is not None:
            return "recomputed when one of the first rows of its input changes, from those"
        return "recomputed for touched partitions, from its input's rows of them"
