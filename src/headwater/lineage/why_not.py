"""Why a row is not in a view: walk its segments top-down, and find the first obstacle on every way to it.

A row is some columns with their values. Where a join comes to nothing because rows of a segment are missing
(`join_obstacles`), the walk goes on below, until it comes to a relation or a condition:

    city = 'Oslo', sold = 7 ──► group of city 'Oslo' ──► stores of city 'Oslo' ──► no partner in shop.sales

A union has several ways to a row; every one of them has its obstacle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import pyarrow as pa

from headwater.deltas.order import can_order, in_order, places_upto
from headwater.engine.state.reach import restrict
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.sought import OF, PLACE, Sought, numbered, same_values, sought_rows
from headwater.engine.state.tick_lookup import Run, TickLookup
from headwater.lineage.derivations import find_derivations
from headwater.lineage.join_obstacles import find_obstacle
from headwater.lineage.obstacle_texts import FormatValue, ObstacleTexts
from headwater.lineage.obstacles import Obstacle, ObstacleKind
from headwater.lineage.twins import Member, added_members
from headwater.model.relation import COUNT, RelationName, SegmentName
from headwater.views.steps.computed import First
from headwater.views.steps.derivation import (
    FromEverything,
    FromJoin,
    FromMembers,
    FromPartition,
    FromRow,
    FromWindow,
    Signed,
)
from headwater.views.steps.join import JoinView
from headwater.views.steps.keep_lineage import without_lineage
from headwater.views.steps.segments import Segment, SegmentedView
from headwater.views.text.author_words import AuthorWords
from headwater.views.text.spark_text import quoted


def why_not(
    view: SegmentedView, row: pa.Table, reading: TickLookup, run: Run, format_value: FormatValue
) -> tuple[Obstacle, ...]:
    """Return what keeps a row out of a view, nothing if it is there: `row` is one, of some of the view's columns."""
    plain = without_lineage(view)
    rows = SegmentRows(plain, reading, run, view.relations)
    texts = ObstacleTexts(
        outputs=view.output_names, segments=rows.segments, words=AuthorWords.of(plain), format_value=format_value
    )
    sought = sought_rows(row, tuple(row.column_names), pa.array([0], pa.int64()))
    found = _Walk(rows, texts).segment(plain.output, sought)
    return tuple({obstacle.text: obstacle for obstacle in found}.values())


class _Walk:
    """One walk. A step yields nothing if it has a sought row."""

    def __init__(self, rows: SegmentRows, texts: ObstacleTexts) -> None:
        self._rows = rows
        self._segments = rows.segments
        self._texts = texts

    def segment(self, segment: Segment, sought: Sought) -> Iterator[Obstacle]:
        """Yield the obstacles on the ways to sought rows of a segment."""
        made = segment.step.derivation(segment)
        match made:
            case FromJoin(join=join):
                yield from self._join(segment.name, join, sought)
            case FromPartition(input=name, keys=keys):
                yield from self._partition(segment, name, {key: key for key in keys}, sought)
            case FromRow(input=name, first=first):
                passed = {column: column for column in segment.relation.column_names}
                yield from self._partition(segment, name, passed, sought, first)
            case FromWindow(input=name, passed=passed):
                yield from self._partition(segment, name, passed, sought)
            case FromMembers(inputs=members):
                yield from self._union(segment, members, sought)
            case FromEverything():
                if not self._matching(segment, sought).num_rows:
                    yield Obstacle(kind=ObstacleKind.UNKNOWN, text=self._texts.recomputed())
            case _:
                assert_never(made)

    def _join(self, reader: RelationName, join: JoinView, sought: Sought) -> Iterator[Obstacle]:
        blocked = find_obstacle(self._rows, reader, join, sought)
        if blocked is None:
            return
        name, within = blocked.occurrence.relation.name, blocked.within
        below: list[Obstacle] = []
        if isinstance(name, SegmentName) and within is not None and blocked.kind is not ObstacleKind.CONDITION:
            keys = within.keys.table.rename_columns(list(within.columns))
            of = pa.repeat(pa.scalar(0, pa.int64()), keys.num_rows)
            below = list(self.segment(self._segments[name], sought_rows(keys, within.columns, of)))
        yield from below or [self._texts.of_join(blocked, join, sought)]

    def _partition(
        self,
        segment: Segment,
        name: RelationName,
        passed: Mapping[str, str],
        sought: Sought,
        first: First | None = None,
    ) -> Iterator[Obstacle]:
        """Yield why rows with the sought keys are missing, or what there is instead of the sought values."""
        if self._matching(segment, sought).num_rows:
            return
        passed_columns = tuple(column for column in sought.columns if column in passed)
        narrower = sought_rows(sought.rows, passed_columns, sought.rows[OF])
        below = list(self.segment(self._segments[name], narrower.renamed(tuple(passed[one] for one in passed_columns))))
        if below:
            yield from below
        elif first is not None:
            place = self._place(name, first, narrower)
            yield Obstacle(kind=ObstacleKind.NOT_FIRST, text=self._texts.not_first(first, place))
        else:
            there = self._matching(segment, narrower)
            others = tuple(column for column in sought.columns if column not in passed)
            yield Obstacle(kind=ObstacleKind.VALUE, text=self._texts.other_values(segment, there, others))

    def _place(self, name: RelationName, first: First, sought: Sought) -> int | None:
        """Return where the first of the sought rows stands in an order, counted from one."""
        rows = self._rows.of_segment(name, None).rows.counted
        mine = self._matching(self._segments[name], sought)
        if not mine.num_rows or not can_order(rows.schema, first.order):
            return None
        ordered = in_order(rows, first.order)
        before = places_upto(ordered, in_order(mine, first.order).slice(0, 1), first.order) - 1
        return int(sum(ordered[COUNT].slice(0, before).to_pylist())) + 1

    def _matching(self, segment: Segment, sought: Sought) -> pa.Table:
        """Return the rows of a segment that are sought."""
        within = restrict(segment.relation, {name: name for name in sought.columns}, sought.rows)
        read = self._rows.of_segment(segment.name, within).rows.counted
        text = (
            f"SELECT DISTINCT r.{quoted(PLACE)} AS {quoted(PLACE)} FROM sought AS s "
            f"JOIN found AS r ON {same_values('r', 's', sought.columns)}"
        )
        return read.take(self._rows.run(text, {"sought": sought.rows, "found": numbered(read)})[PLACE])

    def _union(self, segment: Segment, members: Sequence[Signed], sought: Sought) -> Iterator[Obstacle]:
        """Yield the obstacles of all members, if each has one."""
        every: list[Obstacle] = []
        for member in added_members(members, self._segments):
            own = member.join.output_names if isinstance(member, Member) else self._columns(member)
            called = dict(zip(segment.relation.column_names, own, strict=True))
            there = sought.renamed(tuple(called[name] for name in sought.columns))
            found = list(self._member(segment.name, member, there))
            if not found:
                return
            every += found
        yield from every

    def _member(self, reader: RelationName, member: RelationName | Member, sought: Sought) -> Iterator[Obstacle]:
        if not isinstance(member, Member):
            yield from self.segment(self._segments[member], sought)
            return
        below = list(self._join(reader, member.join, sought))
        yield from below
        if not below and not find_derivations(self._rows, reader, member.join, sought, member.twins).places.num_rows:
            yield Obstacle(kind=ObstacleKind.TAKEN_AWAY, text=self._texts.taken_away(member.twins))

    def _columns(self, name: RelationName) -> tuple[str, ...]:
        return self._segments[name].relation.column_names
