"""Compute what a batch of ticks changes in a view of segments: stamped changes flow through them, in their order.

    the log's changes (lo, hi]  ──►  segment  ──►  segment  ──►  ...  ──►  the view's changes
                                      ▲ old rows      ▲ old rows
                            sources, replicas    kept segments at lo

Each step takes its inputs' changes and gives its own, exact at every tick of the batch; what it needs besides are old
rows at lo, of its other inputs or of itself (`views/segments`). A segment whose inputs did not change costs nothing.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag, empty_table
from headwater.deltas.on_spark import run_stamped, stamped_names
from headwater.errors import ImpossibleRow
from headwater.guarantee import Guarantee
from headwater.maintenance.combinations import pieces
from headwater.maintenance.questions import Ask, Probe
from headwater.maintenance.rebase import rebase
from headwater.position import Tick
from headwater.relation import COUNT, TICK, RelationName
from headwater.runtime.accepted_log import AcceptedLog
from headwater.runtime.batch import (
    Performer,
    ViewChange,
    base_changes,
    check_old_rows,
    join_in_pieces,
    old_row_counts,
    reach_rows,
)
from headwater.runtime.segment_probes import SegmentLog, SegmentPerformer
from headwater.runtime.segment_reader import SegmentReader
from headwater.runtime.segment_stage import Stage
from headwater.views.group_law import group_law_sql, impossible_tick
from headwater.views.law import law_sql
from headwater.views.normal_form import JoinView
from headwater.views.regroup_law import regroup_law_sql
from headwater.views.segments import (
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

_FEW_ROWS = 2_000
"""So many old rows are handed over whole, rather than to wait for the keys that are touched: a job costs more."""


def change_segments(
    spark: SparkSession,
    view: SegmentedView,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: AcceptedLog,
    perform: Performer,
    readers: Mapping[RelationName, SegmentReader],
) -> ViewChange | None:
    """Return how a view and what is kept for it change over the ticks (lo, hi]; None if no relation changed."""
    changes = base_changes(view.relations, guarantee, span, log)
    if not any(len(bag) for bag in changes.values()):
        return None
    assert all(reader.tick == span[0] for reader in readers.values()), "kept segments stand where the batch begins"
    described = {segment.name: segment.relation for segment in view.segments}
    batch = _Batch(
        spark=spark,
        view=view,
        span=span,
        log=SegmentLog(log=log, segments=described),
        perform=SegmentPerformer(readers=readers, others=perform),
        readers=readers,
        changes=changes,
        stage=Stage(spark=spark, lo=span[0]),
    )
    started = time.perf_counter()
    changed = sum(len(bag) for bag in changes.values())
    batch.run()
    kept = {segment.name: changes[segment.name].table for segment in view.segments[:-1] if segment.is_kept}
    return ViewChange(
        rows=changes[view.output.name].table,
        segments={name: rows for name, rows in kept.items() if rows.num_rows},
        changed_rows=changed,
        read_rows=batch.read,
        seconds_asking=batch.seconds_asking,
        seconds_joining=time.perf_counter() - started - batch.seconds_asking,
    )


@dataclass(slots=True, kw_only=True)
class _Batch:
    """One pass over a view's segments.

    `changes` holds those of relations, and of the segments that are computed; the `stage` has those that wait.
    """

    spark: SparkSession
    view: SegmentedView
    span: tuple[Tick, Tick]
    log: SegmentLog
    perform: SegmentPerformer
    readers: Mapping[RelationName, SegmentReader]
    changes: dict[RelationName, ArrowBag]
    stage: Stage
    seconds_asking: float = field(default=0.0)
    read: Counter[RelationName] = field(default_factory=Counter)

    def run(self) -> None:
        """Compute every segment's changes."""
        for place, segment in enumerate(self.view.segments):
            if any(name in self.stage or len(self.changes[name]) for name in segment.inputs):
                self._step(segment, place)
            else:
                self.changes[segment.name] = ArrowBag(empty_table(segment.relation.arrow_schema()))
            if self.stage.is_large:
                self._show(place + 1)
        self._show(len(self.view.segments))

    def _step(self, segment: Segment, place: int) -> None:
        match segment.step:
            case JoinStep(view=join):
                self._join(segment, join, place)
            case GroupStep():
                self._group(segment, segment.step, place)
            case RegroupStep():
                self._regroup(segment, segment.step, place)
            case UnionStep():
                self._show(place)
                self.changes[segment.name] = change_union(segment.step, segment.relation, self.changes)
            case RecomputeStep():
                self._show(place)
                self.changes[segment.name] = self._recompute(segment, segment.step)
            case _:
                assert_never(segment.step)

    def _show(self, place: int) -> None:
        """Compute what waits: what is kept of it, and what the segments from a place on read."""
        read = {name for segment in self.view.segments[place:] for name in segment.inputs}
        kept = {segment.name for segment in self.view.segments if segment.is_kept or segment is self.view.output}
        found = self.stage.run(read | kept)
        for segment in self.view.segments:
            if segment.name in found and isinstance(segment.step, GroupStep):
                self._require_possible(segment, segment.step, found[segment.name])
        self.changes.update(found)

    def _join(self, segment: Segment, join: JoinView, place: int) -> None:
        if len(join.occurrences) == 1:
            self._select(segment, join)
            return
        if any(name in self.stage for name in join.relations):
            self._show(place)
        changes = {name: self._pruned(name, columns) for name, columns in join.relations.items()}
        if not any(len(bag) for bag in changes.values()):
            self.changes[segment.name] = ArrowBag(empty_table(segment.relation.arrow_schema()))
            return
        lo, hi = self.span
        started = time.perf_counter()
        bags = reach_rows(join, lo, changes, self.log, self.perform)
        self.read.update(old_row_counts(changes, bags))
        self.seconds_asking += time.perf_counter() - started
        [(_, _, part), *others] = itertools.islice(pieces(join, bags, lo, hi), 2)
        if others:
            self.changes[segment.name] = self._in_pieces(segment, join, bags)
            return
        check_old_rows(part, lo)
        words = {str(name): bag.table for name, bag in part.items()}
        self.stage.add(segment, lambda names: law_sql(join, {name: names[str(name)] for name in part}, 0), words)

    def _select(self, segment: Segment, join: JoinView) -> None:
        """Let a join of one input wait: there is nothing to ask for."""
        [(name, columns)] = join.relations.items()
        given = name if name in self.stage else self._pruned(name, columns).table
        self.stage.add(segment, lambda names: law_sql(join, {name: names["changes"]}, 0), {"changes": given})

    def _in_pieces(self, segment: Segment, join: JoinView, bags: Mapping[RelationName, ArrowBag]) -> ArrowBag:
        schema = empty_table(segment.relation.arrow_schema()).schema
        return ArrowBag(join_in_pieces(self.spark, join, schema, self.span, bags))

    def _pruned(self, name: RelationName, columns: tuple[str, ...]) -> ArrowBag:
        bag = self.changes[name]
        if tuple(bag.columns) == columns:
            return bag
        return ArrowBag(bag.table.select([*columns, TICK, COUNT])).net()

    def _group(self, segment: Segment, step: GroupStep, place: int) -> None:
        changes, old = self._with_old(step.input, step.keys, self.readers[segment.name], place)
        self.stage.add(
            segment,
            lambda names: group_law_sql(step, segment.relation, names["changes"], names["old"]),
            {"changes": changes, "old": old},
        )

    def _regroup(self, segment: Segment, step: RegroupStep, place: int) -> None:
        reader = self.readers[step.input]
        changes, old = self._with_old(step.input, step.keys, reader, place)
        self.stage.add(
            segment,
            lambda names: regroup_law_sql(step, reader.relation, segment.relation, names["changes"], names["old"]),
            {"changes": changes, "old": old},
        )

    def _with_old(
        self, name: RelationName, keys: tuple[str, ...], reader: SegmentReader, place: int
    ) -> tuple[pa.Table | RelationName, pa.Table]:
        """Return a step's input, and the old rows of the keys that change, or all of them if they are few anyway.

        Which keys change is known once the input is computed. If all old rows are taken, it can go on waiting.
        """
        columns = reader.relation.column_names
        if name in self.stage and keys and reader.row_count > _FEW_ROWS:
            self._show(place)
        changes: pa.Table | RelationName = name
        if name in self.stage:
            old = reader.lookup(columns, (), None)
        else:
            changes = self.changes[name].table
            old = reader.lookup(columns, keys, changes.select(keys))
        self.read[reader.relation.name] += len(old)
        return changes, old.table

    def _require_possible(self, segment: Segment, step: GroupStep, changes: ArrowBag) -> None:
        impossible = impossible_tick(step, changes.table)
        if impossible is not None:
            raise ImpossibleRow(
                f'view "{self.view.name}" cannot lose rows that it does not have',
                code="HW-502",
                detail=f"a group ({segment.name.name}) would have fewer than no rows at tick {impossible}",
            )

    def _recompute(self, segment: Segment, step: RecomputeStep) -> ArrowBag:
        """Run the whole query over what the inputs hold at the end of the batch; all that differs came at that tick."""
        hi = self.span[1]
        old = {name: self._whole(name) for name in step.inputs}
        new = {name: rows.plus(self.changes[name]).restamped(hi).net() for name, rows in old.items()}
        after = self._run_whole(segment, new)
        if segment.name in self.readers:
            before = self.readers[segment.name].lookup(segment.relation.column_names, (), None)
        else:
            before = self._run_whole(segment, old)
        return after.plus(before.negated()).restamped(hi).net()

    def _whole(self, name: RelationName) -> ArrowBag:
        """Return all rows of a relation or segment before the batch."""
        probe: Probe[Any] = Probe(relation=name, wanted=tuple(self.changes[name].columns), columns=(), keys=None)
        [answer] = self.perform(Ask(probes=(probe,)))
        self.read[name] += len(answer.rows)
        return rebase(probe, answer, self.log, self.span[0])

    def _run_whole(self, segment: Segment, inputs: Mapping[RelationName, ArrowBag]) -> ArrowBag:
        names = stamped_names(inputs)
        tables = {names[name]: _unfolded(bag) for name, bag in inputs.items()}
        rows = run_stamped(self.spark, whole_sql(segment, names), tables)
        typed = rows.select(segment.relation.column_names).cast(segment.relation.arrow_schema())
        ones = pa.repeat(pa.scalar(1, pa.int64()), typed.num_rows)
        return ArrowBag(typed.append_column(TICK, ones).append_column(COUNT, ones)).restamped(self.span[1])


def _unfolded(bag: ArrowBag) -> pa.Table:
    """Return plain rows: one that counts k stands k times."""
    counts = bag.table[COUNT].combine_chunks()
    places = pc.list_parent_indices(
        pa.ListArray.from_arrays(
            pa.concat_arrays([pa.array([0], pa.int32()), pc.cast(pc.cumulative_sum(counts), pa.int32())]),
            pa.nulls(pc.sum(counts).as_py() or 0),
        )
    )
    return bag.table.select(bag.columns).take(places)
