"""Which rows of a view may derive from some rows of a relation: the way of a change, walked with rows that are there.

    marked rows of a relation ──► outputs of derivations that have one ──► groups with their keys ──► ... ──► view rows

What is found is enough and may be too much: a union's minus is not looked at, and windows and recomputed segments are
taken whole. The caller traces what is found, and sees which rows come back to the marked ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

import pyarrow as pa

from headwater.engine.state.reach import restrict
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.sought import PLACE, numbered, same_values
from headwater.engine.state.tick_lookup import Run
from headwater.lineage.derivations import derived_outputs
from headwater.lineage.traced import Traced, roots_of_leaves
from headwater.model.relation import COUNT, Relation, RelationName
from headwater.views.steps.derivation import FromEverything, FromJoin, FromMembers, FromPartition, FromRow, FromWindow
from headwater.views.steps.join import JoinView
from headwater.views.steps.segments import Segment, SegmentedView
from headwater.views.text.spark_text import quoted


def may_derive(view: SegmentedView, rows: SegmentRows, relation: RelationName, marked: pa.Table) -> pa.Table:
    """Return rows of a view, among them all that derive from marked rows of a relation, which have `_count`."""
    marks: dict[RelationName, pa.Table] = {relation: marked}
    for segment in view.segments:
        marks[segment.name] = _counted(_Forward(rows, marks).segment(segment), segment.relation)
    return marks[view.output.name].drop_columns([COUNT])


def deriving(
    traced: Sequence[Traced], count: int, relation: RelationName, marked: pa.Table, run: Run
) -> frozenset[int]:
    """Return the places of those of `count` traced rows that derive from a marked row of a relation."""
    found: set[int] = set()
    for leaf, roots in roots_of_leaves(traced, count):
        if leaf.name == relation:
            text = (
                f"SELECT DISTINCT l.{quoted(PLACE)} AS {quoted(PLACE)} FROM leaf AS l "
                f"JOIN marked AS m ON {same_values('l', 'm', leaf.columns)}"
            )
            places = run(text, {"leaf": numbered(leaf.rows), "marked": marked})[PLACE]
            found |= {root for place in places.to_pylist() for root in roots[place]}
    return frozenset(found)


class _Forward:
    """One step. `marks` has the rows of its inputs that may derive from marked ones."""

    def __init__(self, rows: SegmentRows, marks: Mapping[RelationName, pa.Table]) -> None:
        self._rows = rows
        self._marks = marks

    def segment(self, segment: Segment) -> Iterable[pa.Table]:
        """Return rows of a segment that may derive from marked ones, some of them several times."""
        if not any(self._marks[name].num_rows for name in segment.inputs if name in self._marks):
            return []
        made = segment.step.derivation(segment)
        match made:
            case FromJoin(join=join):
                return self._join(segment.name, join)
            case FromPartition(input=name, keys=keys):
                return [self._with_keys(segment, name, keys)]
            case FromRow(input=name):
                return [self._with_keys(segment, name, segment.relation.column_names)]
            case FromMembers(inputs=inputs):
                columns = list(segment.relation.column_names)
                added = [self._marks[signed.input] for signed in inputs if signed.sign > 0]
                return [rows.drop_columns([COUNT]).rename_columns(columns) for rows in added]
            case FromWindow() | FromEverything():
                return [self._rows.of_segment(segment.name, None).rows.counted]
            case _:
                assert_never(made)

    def _join(self, reader: RelationName, join: JoinView) -> Iterable[pa.Table]:
        for occurrence in join.occurrences:
            marked = self._marks.get(occurrence.relation.name)
            if marked is not None and marked.num_rows and not occurrence.is_test:
                yield derived_outputs(self._rows, reader, join, occurrence.alias, marked)

    def _with_keys(self, segment: Segment, name: RelationName, keys: tuple[str, ...]) -> pa.Table:
        """Return the rows of a segment that agree in keys with a marked row of its input."""
        marked = self._marks[name]
        within = restrict(segment.relation, {key: key for key in keys}, marked)
        read = self._rows.of_segment(segment.name, within).rows.counted
        text = (
            f"SELECT DISTINCT r.{quoted(PLACE)} AS {quoted(PLACE)} FROM marked AS m "
            f"JOIN found AS r ON {same_values('r', 'm', keys)}"
        )
        return read.take(self._rows.run(text, {"marked": marked, "found": numbered(read)})[PLACE])


def _counted(parts: Iterable[pa.Table], relation: Relation) -> pa.Table:
    """Return rows of all parts, with `_count`, which says nothing here."""
    schema = relation.arrow_schema()
    rows = pa.concat_tables([schema.empty_table(), *(part.select(schema.names).cast(schema) for part in parts)])
    return rows.append_column(COUNT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
