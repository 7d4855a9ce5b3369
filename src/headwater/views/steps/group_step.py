"""The group step: rows per key, and totals per key that are exact in any order (COUNT, SUM). Its law is `laws/group`.

It needs its own old rows of the touched keys: one row per key. Where it is not kept these are computed from its input's
rows with the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from sqlglot import exp

from headwater.model.relation import Relation, RelationName
from headwater.views.laws.group import group_law_sql, impossible_tick
from headwater.views.steps.change_plan import LawOverOldRows
from headwater.views.steps.derivation import FromPartition
from headwater.views.steps.partitioned import PartitionedStep
from headwater.views.steps.segments import Needs, Segment, Segments, Speech
from headwater.views.steps.sizes import OLD_AND_NEW, Estimates, Fanout, Sizes
from headwater.views.text.meaning import meaning
from headwater.views.text.spark_text import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A column summed up per key: `total` is the sum of its values that are not NULL, `known` is how many those are."""

    column: str
    total: str
    known: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStep(PartitionedStep):
    """One row per key that has rows: the key, the number of rows, and totals. NULL keys are keys.

    The output's columns are the keys (with the names they have in the input), `rows`, and each total's two columns.
    Without keys there is one row always, also over no rows at all.
    Only for totals that are exact in any order: integers and decimals.
    """

    rows: str
    totals: tuple[Total, ...] = ()

    kind = "group"
    needs = Needs.OWN
    reads_own_rows = True

    @property
    def row_keys(self) -> tuple[str, ...]:
        """Its keys."""
        return self.keys

    @property
    def aggregate_count(self) -> int:
        """Its totals."""
        return len(self.totals)

    def whole_sql(self, segment: Segment, tables: Mapping[RelationName, str]) -> str:
        """Return a GROUP BY."""
        group = segment.relation
        values = {name: quoted(name) for name in self.keys} | {self.rows: "COUNT(*)"}
        for total in self.totals:
            kind = group.column(total.total).type
            values[total.total] = f"COALESCE(CAST(SUM({quoted(total.column)}) AS {kind}), CAST(0 AS {kind}))"
            values[total.known] = f"COUNT({quoted(total.column)})"
        outputs = ", ".join(f"{values[name]} AS {quoted(name)}" for name in group.column_names)
        by = f" GROUP BY {', '.join(map(quoted, self.keys))}" if self.keys else ""
        return f"SELECT {outputs} FROM {quoted(tables[self.input])}{by}"

    def change_plan(self, segment: Segment, _segments: Segments) -> LawOverOldRows:
        """Return its law over its own old rows."""
        return LawOverOldRows(
            changed=self.input,
            old=segment.name,
            keys=self.keys,
            law=partial(group_law_sql, self, segment.relation),
            impossible_tick=partial(impossible_tick, self),
        )

    def looked_up(self, segment: Segment) -> Iterable[tuple[RelationName, tuple[str, ...]]]:
        """Return itself, by its keys."""
        return [(segment.name, self.keys)]

    def input_columns(self, _segment: Segment, segments: Segments) -> list[tuple[Relation, Mapping[str, str]]]:
        """Return its keys."""
        return [(segments[self.input].relation, {key: key for key in self.keys})]

    def unique_columns(self, _segments: Segments) -> tuple[str, ...]:
        """Return its keys."""
        return self.keys

    def passed(self, _segment: Segment, column: str, _segments: Segments) -> Iterator[tuple[RelationName, str]]:
        """Yield a key."""
        if column in self.keys:
            yield self.input, column

    def column_below(self, _segment: Segment, column: str, _segments: Segments) -> tuple[RelationName, str] | None:
        """Return a key."""
        return (self.input, column) if column in self.keys else None

    def column_meaning(self, _segment: Segment, column: str, segments: Segments) -> exp.Expr:
        """Return COUNT or SUM of what a column of the input means, or what a key means."""
        if column == self.rows:
            return exp.Count(this=exp.Star())
        for total in self.totals:
            if column in (total.total, total.known):
                function = exp.Sum if column == total.total else exp.Count
                return function(this=meaning(self.input, total.column, segments))
        return meaning(self.input, column, segments)

    def fanouts(self, segment: Segment, sizes: Sizes) -> dict[RelationName, Fanout]:
        """Return that the old row of the group is read, or computed."""
        read = 1.0 if segment.is_kept else self.rows_behind(sizes)
        return {self.input: Fanout(read=read, changed=OLD_AND_NEW)}

    def most_read(self, segment: Segment, _changed: RelationName, sizes: Sizes) -> float:
        """Return all of its groups, or all rows that they are computed from."""
        return sizes.of(segment.name) if segment.is_kept else sizes.there(self.input)

    def output_rows(self, sizes: Sizes) -> float:
        """Return how many different keys there are."""
        return sizes.of(self.input) / sizes.partition(self.input, self.keys) if self.keys else 1.0

    def estimated_rows(self, estimates: Estimates) -> float:
        """Return how many different keys there are."""
        return estimates.groups(self.input, self.keys)

    def derivation(self, _segment: Segment) -> FromPartition:
        """Return all rows with the keys."""
        return FromPartition(input=self.input, keys=self.keys)

    def words(self, _segment: Segment, speech: Speech) -> list[str]:
        """Return keys and totals."""
        by = speech.columns(self.input, self.keys) if self.keys else "nothing: one row always"
        totals = [f"SUM({speech.columns(self.input, [total.column])})" for total in self.totals]
        return [f"by {by}", ", ".join(map(speech.spelled, ["COUNT(*)", *totals]))]

    def computed_words(self, segment: Segment, speech: Speech) -> str:
        """Return its columns."""
        return speech.columns(segment.name, segment.relation.column_names)

    def maintained(self, segment: Segment) -> str:
        """Return whose old rows it needs."""
        own = "its own old rows of touched keys" if segment.is_kept else "its input's old rows of touched keys"
        return f"from its input's changes, and {own}"
