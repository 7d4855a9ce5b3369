"""Compute what a batch of ticks changes in a view of segments: stamped changes flow through them, in their order.

    the log's changes (lo, hi]  ──►  segment  ──►  segment  ──►  ...  ──►  the view's changes
                                      ▲ old rows      ▲ old rows
                            sources, replicas    segments at lo, kept or computed

Each step takes its inputs' changes and gives its own, exact at every tick of the batch; what it needs besides are old
rows at lo, of its other inputs or of itself (`views/segments`). Those of a segment without a group table are computed
from what it reads (`computed_segment`). A segment whose inputs did not change costs nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, assert_never

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag, empty_table
from headwater.deltas.on_spark import run_stamped, stamped_names
from headwater.deltas.order import can_order
from headwater.deltas.unfolded import unfolded
from headwater.errors import ImpossibleRow
from headwater.guarantee import Guarantee
from headwater.lineage.rewritings import Lineages
from headwater.lineage.segment_rows import SegmentRows
from headwater.maintenance.questions import Ask, Probe
from headwater.maintenance.rebase import rebase
from headwater.position import Tick
from headwater.relation import COUNT, TICK, RelationName
from headwater.runtime.accepted_log import AcceptedLog
from headwater.runtime.batch import Performer, ViewChange, base_changes, change_join, shifted
from headwater.runtime.batch_reading import BatchReading
from headwater.runtime.computed_segment import ComputedSegment
from headwater.runtime.old_rows import OldRows
from headwater.runtime.segment_probes import SegmentLog, SegmentPerformer
from headwater.views.extremes_law import extremes_law_sql, is_extremes
from headwater.views.group_law import group_law_sql, impossible_tick
from headwater.views.group_tables import computed_segments
from headwater.views.keep_lineage import without_lineage
from headwater.views.needed_content import needed_content
from headwater.views.normal_form import JoinView
from headwater.views.plain_columns import plain_columns
from headwater.views.regroup_law import regroup_law_sql
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
)
from headwater.views.union_law import change_union
from headwater.views.whole import whole_sql

_HOT_ROWS = 1_000_000
"""So many pairs of changes and old rows are too many to compute every partition anew at each of its ticks."""


def change_segments(
    spark: SparkSession,
    view: SegmentedView,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: AcceptedLog,
    perform: Performer,
    readers: Mapping[RelationName, OldRows],
    computed: MutableMapping[RelationName, ArrowBag],
) -> ViewChange | None:
    """Return how a view and what is kept for it change over the ticks (lo, hi]; None if nothing did that it needs.

    `computed` are the changes of segments that another view of the batch had too, and then of this one's.
    """
    started = time.perf_counter()
    changes = base_changes(needed_content(view), guarantee, span, log)
    if not any(len(bag) for bag in changes.values()):
        return None
    assert all(reader.tick == span[0] for reader in readers.values()), "kept segments stand where the batch begins"
    described = {segment.name: segment.relation for segment in view.segments}
    reading = BatchReading(tick=span[0], log=log, perform=perform, kept=readers)
    found = {**readers, **_computed(spark, view, reading)}
    batch = _Batch(
        spark=spark,
        view=view,
        span=span,
        log=SegmentLog(log=log, segments=described),
        perform=SegmentPerformer(readers=found, others=perform),
        readers=found,
        changes=changes,
    )
    changed = sum(len(bag) for bag in changes.values())
    for segment in view.segments[:-1]:
        if segment.name not in computed:
            computed[segment.name] = batch.change(segment)
        changes[segment.name] = computed[segment.name]
    changes[view.output.name] = batch.change(view.output)
    kept = {segment.name: changes[segment.name].table for segment in view.segments[:-1] if segment.is_kept}
    return ViewChange(
        rows=changes[view.output.name].table,
        segments={name: rows for name, rows in kept.items() if rows.num_rows},
        changed_rows=changed,
        read_rows=batch.read + reading.read,
        seconds_asking=batch.seconds_asking,
        seconds_joining=time.perf_counter() - started - batch.seconds_asking,
    )


def _computed(spark: SparkSession, view: SegmentedView, reading: BatchReading) -> dict[RelationName, OldRows]:
    """Return the old rows of segments that are looked up and not kept."""
    plain = without_lineage(view)
    lineages = Lineages(kept={one.of: one for one in view.lineage}, cost=reading.cost)
    rows = SegmentRows(plain, reading, partial(run_stamped, spark), plain.relations, lineages)
    return {
        name: ComputedSegment(relation=rows.segments[name].relation, tick=reading.tick, rows=rows)
        for name in computed_segments(plain)
    }


@dataclass(slots=True, kw_only=True)
class _Batch:
    """One pass over a view's segments; `changes` holds those of relations, and of the segments that are done."""

    spark: SparkSession
    view: SegmentedView
    span: tuple[Tick, Tick]
    log: SegmentLog
    perform: SegmentPerformer
    readers: Mapping[RelationName, OldRows]
    changes: Mapping[RelationName, ArrowBag]
    seconds_asking: float = field(default=0.0)
    read: Counter[RelationName] = field(default_factory=Counter)

    def change(self, segment: Segment) -> ArrowBag:
        """Return how a segment changes."""
        if not any(len(self.changes[name]) for name in segment.inputs):
            return ArrowBag(empty_table(segment.relation.arrow_schema()))
        match segment.step:
            case JoinStep(view=join):
                return self._join(segment, join)
            case GroupStep():
                return self._group(segment, segment.step)
            case RegroupStep():
                return self._regroup(segment, segment.step)
            case UnionStep():
                return change_union(segment.step, segment.relation, self.changes)
            case RecomputeStep():
                return self._recompute(segment, segment.step)
            case _:
                assert_never(segment.step)

    def _join(self, segment: Segment, join: JoinView) -> ArrowBag:
        changes = {name: self._pruned(name, columns) for name, columns in join.relations.items()}
        schema = empty_table(segment.relation.arrow_schema()).schema
        if not any(len(bag) for bag in changes.values()):
            return ArrowBag(schema.empty_table())
        if (columns := plain_columns(join)) is not None:
            [bag] = changes.values()
            return ArrowBag(pa.table([bag.table[name] for name in (*columns, TICK, COUNT)], schema=schema)).net()
        found = change_join(self.spark, join, schema, self.span, changes, self.log, self.perform)
        self.seconds_asking += found.seconds_asking
        for name, count in found.read_rows.items():
            self._note_read(name, count)
        return ArrowBag(found.rows)

    def _note_read(self, name: RelationName, count: int) -> None:
        """Count old rows; of what is computed those are counted that it is computed from."""
        if not isinstance(self.readers.get(name), ComputedSegment):
            self.read[name] += count

    def _pruned(self, name: RelationName, columns: tuple[str, ...]) -> ArrowBag:
        bag = self.changes[name]
        if tuple(bag.columns) == columns:
            return bag
        return ArrowBag(bag.table.select([*columns, TICK, COUNT])).net()

    def _group(self, segment: Segment, step: GroupStep) -> ArrowBag:
        tables = self._with_old(step.input, step.keys, self.readers[segment.name])
        found = self._run(segment, group_law_sql(step, segment.relation, *stamped_names(tables).values()), tables)
        impossible = impossible_tick(step, found.table)
        if impossible is not None:
            raise ImpossibleRow(
                f'view "{self.view.name}" cannot lose rows that it does not have',
                code="HW-502",
                detail=f"a group ({segment.name.name}) would have fewer than no rows at tick {impossible}",
            )
        return found

    def _regroup(self, segment: Segment, step: RegroupStep) -> ArrowBag:
        reader = self.readers[step.input]
        if (
            isinstance(step.computed, First)
            and not step.keys
            and can_order(reader.relation.arrow_schema(), step.computed.order)
        ):
            return self._first(segment, step, step.computed, reader)
        tables = self._with_old(step.input, step.keys, reader)
        is_hot = tables["changes"].num_rows * tables["old"].num_rows > _HOT_ROWS
        law = extremes_law_sql if is_hot and is_extremes(step) else regroup_law_sql
        names = stamped_names(tables).values()
        return self._run(segment, law(step, reader.relation, segment.relation, *names), tables)

    def _first(self, segment: Segment, step: RegroupStep, computed: First, reader: OldRows) -> ArrowBag:
        """Compute the first rows anew at each tick, from those that can be among them at some tick of the batch."""
        changes = self.changes[step.input].table
        started = time.perf_counter()
        first = reader.first(computed.order, computed.last)
        showing = first.showing(changes, computed.last)
        if showing is None:  # so many more are enough, even if every change touches one of them
            first = reader.first(computed.order, computed.last + changes.num_rows)
            showing = first.showing(changes, computed.last)
        assert showing is not None, "more rows are known than are wanted and touched"
        self.seconds_asking += time.perf_counter() - started
        self._note_read(reader.relation.name, max(first.read_rows, showing.old.num_rows))
        if not showing.changes.num_rows:
            return ArrowBag(empty_table(segment.relation.arrow_schema()))
        tables: dict[Literal["changes", "old"], pa.Table] = {"changes": showing.changes, "old": showing.old}
        sql = regroup_law_sql(step, reader.relation, segment.relation, *stamped_names(tables).values())
        return self._run(segment, sql, tables)

    def _with_old(
        self, name: RelationName, keys: tuple[str, ...], reader: OldRows
    ) -> dict[Literal["changes", "old"], pa.Table]:
        """Return a step's changes, and the old rows of the keys that they touch."""
        changes = self.changes[name].table
        started = time.perf_counter()
        old = reader.lookup(reader.relation.column_names, keys, changes.select(keys))
        self.seconds_asking += time.perf_counter() - started
        self._note_read(reader.relation.name, len(old))
        return {"changes": changes, "old": old.table.drop_columns([TICK])}

    def _run(self, segment: Segment, sql: str, tables: Mapping[Literal["changes", "old"], pa.Table]) -> ArrowBag:
        """Run a step's law; on Spark the ticks count from the batch's beginning."""
        lo, names = self.span[0], stamped_names(tables)
        schema = empty_table(segment.relation.arrow_schema()).schema
        placed = {names["changes"]: shifted(tables["changes"], -lo), names["old"]: tables["old"]}
        found = shifted(run_stamped(self.spark, sql, placed), lo)
        return ArrowBag(found.select(schema.names).cast(schema))

    def _recompute(self, segment: Segment, step: RecomputeStep) -> ArrowBag:
        """Run the whole query over what the inputs hold at the end of the batch; all that differs came at that tick."""
        hi = self.span[1]
        behind = {name: self._behind(name) for name in step.inputs}
        old = {name: self._whole(read) for name, read in behind.items()}
        new = {name: rows.plus(self.changes[behind[name]]).restamped(hi).net() for name, rows in old.items()}
        after = self._run_whole(segment, new)
        if segment.name in self.readers:
            before = self.readers[segment.name].lookup(segment.relation.column_names, (), None)
        else:
            before = self._run_whole(segment, old)
        return after.plus(before.negated()).restamped(hi).net()

    def _behind(self, name: RelationName) -> RelationName:
        """Return what is to be read for an input: itself, or the relation that it copies if the copy is not kept."""
        if name.source != SEGMENTS or name in self.readers:
            return name
        [relation] = next(segment.inputs for segment in self.view.segments if segment.name == name)
        return relation

    def _whole(self, name: RelationName) -> ArrowBag:
        """Return all rows of a relation or segment before the batch."""
        probe: Probe[Any] = Probe(relation=name, wanted=tuple(self.changes[name].columns), columns=(), keys=None)
        [answer] = self.perform(Ask(probes=(probe,)))
        self.read[name] += len(answer.rows)
        return rebase(probe, answer, self.log, self.span[0])

    def _run_whole(self, segment: Segment, inputs: Mapping[RelationName, ArrowBag]) -> ArrowBag:
        names = stamped_names(inputs)
        tables = {names[name]: unfolded(bag) for name, bag in inputs.items()}
        rows = run_stamped(self.spark, whole_sql(segment, names), tables)
        typed = rows.select(segment.relation.column_names).cast(segment.relation.arrow_schema())
        ones = pa.repeat(pa.scalar(1, pa.int64()), typed.num_rows)
        return ArrowBag(typed.append_column(TICK, ones).append_column(COUNT, ones)).restamped(self.span[1])
