"""Compute what a batch of ticks changes in a view: in one join, or in segments.

Through segments stamped changes flow in their order:

    the log's changes (lo, hi]  ──►  segment  ──►  segment  ──►  ...  ──►  the view's changes
                                      ▲ old rows      ▲ old rows
                            sources, replicas    segments at lo, kept or computed

Each step takes its inputs' changes and gives its own, exact at every tick of the batch; what it needs besides are old
rows at lo, of its other inputs or of itself (`views/steps/segments`). Those of a segment without a group table are
computed from what it reads (`computed_segment`). A segment whose inputs did not change costs nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, assert_never

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.deltas.first_rows import FirstRows
from headwater.deltas.lookup import RowRequest, look_up, restricted
from headwater.deltas.on_arrow import ArrowBag, ArrowLookup, ArrowRequest, ArrowRestriction, empty_table, unfolded
from headwater.deltas.on_spark import run_stamped, stamped_names
from headwater.deltas.order import Order, can_order
from headwater.engine.batch.join_batch import ViewChange, base_changes, change_join, change_view, shifted
from headwater.engine.state.accepted_log import AcceptedLog
from headwater.engine.state.computed_segment import BatchLookup, ComputedSegment
from headwater.engine.state.rewritings import Lineages
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.tick_lookup import SegmentedLookup, SegmentLookup
from headwater.errors import ImpossibleRow
from headwater.maintenance.rebase import rebase
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, RelationName, SegmentName
from headwater.views.steps.change_plan import JoinChanges, LawOverOldRows, SumOfChanges, WholeAgain
from headwater.views.steps.computed import First
from headwater.views.steps.group_tables import computed_segments
from headwater.views.steps.join import JoinView
from headwater.views.steps.keep_lineage import without_lineage
from headwater.views.steps.needed_content import needed_content
from headwater.views.steps.output_columns import plain_columns
from headwater.views.steps.segments import Segment, SegmentedView, Segments

_HOT_ROWS = 1_000_000
"""With more pairs of changes and old rows than this, it costs too much to compute each partition again at its ticks."""


def compute_view_delta(
    spark: SparkSession,
    view: SegmentedView,
    schema: pa.Schema,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: AcceptedLog,
    lookup: ArrowLookup,
    readers: Mapping[RelationName, SegmentLookup],
    computed: MutableMapping[RelationName, ArrowBag],
) -> ViewChange | None:
    """Return how a view changes over the ticks (lo, hi], or None if nothing changed that it needs.

    `schema` is that of its table of changes; `readers` and `computed` matter where it has segments.
    """
    if view.only_join is None:
        return change_segments(spark, view, guarantee, span, log, lookup, readers, computed)
    return change_view(spark, view.only_join, schema, guarantee, span, log, lookup)


def change_segments(
    spark: SparkSession,
    view: SegmentedView,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: AcceptedLog,
    lookup: ArrowLookup,
    readers: Mapping[RelationName, SegmentLookup],
    computed: MutableMapping[RelationName, ArrowBag],
) -> ViewChange | None:
    """Return how a view and what is kept for it change over the ticks (lo, hi]. None if nothing did that it needs.

    `computed` are the changes of segments that another view of the batch had too, and then of this one's.
    """
    started = time.perf_counter()
    changes = base_changes(needed_content(view), guarantee, span, log)
    if not any(len(bag) for bag in changes.values()):
        return None
    assert all(reader.tick == span[0] for reader in readers.values()), "kept segments stand where the batch begins"
    reading = BatchLookup(tick=span[0], log=log, others=lookup, kept=readers)
    computing = _computed(spark, view, reading)
    found: dict[RelationName, SegmentLookup] = {**readers, **computing}
    batch = _Batch(
        spark=spark,
        view=view,
        segments={segment.name: segment for segment in view.segments},
        span=span,
        log=log,
        lookup=SegmentedLookup(segments=found, others=lookup),
        readers=found,
        computed=frozenset(computing),
        changes=changes,
    )
    changed = sum(len(bag) for bag in changes.values())
    for segment in view.segments[:-1]:
        if segment.name not in computed:
            computed[segment.name] = batch.change(segment)
        changes[segment.name] = computed[segment.name]
    changes[view.output.name] = batch.change(view.output)
    kept = {segment.name: changes[segment.name] for segment in view.segments[:-1] if segment.is_kept}
    return ViewChange(
        rows=changes[view.output.name],
        segments={name: bag for name, bag in kept.items() if len(bag)},
        changed_rows=changed,
        read_rows=batch.read + reading.read,
        seconds_asking=batch.seconds_asking,
        seconds_joining=time.perf_counter() - started - batch.seconds_asking,
    )


def _computed(spark: SparkSession, view: SegmentedView, reading: BatchLookup) -> dict[RelationName, ComputedSegment]:
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
    """One pass over a view's segments. `changes` holds those of relations, and of the segments that are done."""

    spark: SparkSession
    view: SegmentedView
    segments: Segments
    span: tuple[Tick, Tick]
    log: AcceptedLog
    lookup: SegmentedLookup
    readers: Mapping[RelationName, SegmentLookup]
    computed: Collection[RelationName]
    """The segments that are not kept."""
    changes: Mapping[RelationName, ArrowBag]
    seconds_asking: float = field(default=0.0)
    read: Counter[RelationName] = field(default_factory=Counter)

    def change(self, segment: Segment) -> ArrowBag:
        """Return how a segment changes."""
        if not any(len(self.changes[name]) for name in segment.inputs):
            return ArrowBag(empty_table(segment.relation.arrow_schema()))
        plan = segment.step.change_plan(segment, self.segments)
        match plan:
            case JoinChanges(join=join):
                return self._join(segment, join)
            case LawOverOldRows():
                return self._law(segment, plan)
            case SumOfChanges(total=total):
                return total(self.changes)
            case WholeAgain(inputs=inputs):
                return self._recompute(segment, inputs)
            case _:
                assert_never(plan)

    def _join(self, segment: Segment, join: JoinView) -> ArrowBag:
        changes = {name: self._pruned(name, columns) for name, columns in join.relations.items()}
        schema = empty_table(segment.relation.arrow_schema()).schema
        if not any(len(bag) for bag in changes.values()):
            return ArrowBag(schema.empty_table())
        if (columns := plain_columns(join)) is not None:
            [bag] = changes.values()
            return ArrowBag(pa.table([bag.table[name] for name in (*columns, TICK, COUNT)], schema=schema)).net()
        found = change_join(self.spark, join, schema, self.span, changes, self.log, self.lookup)
        self.seconds_asking += found.seconds_asking
        for name, count in found.read_rows.items():
            self._note_read(name, count)
        return found.rows

    def _note_read(self, name: RelationName, count: int) -> None:
        """Count old rows. Of what is computed those are counted that it is computed from."""
        if name not in self.computed:
            self.read[name] += count

    def _pruned(self, name: RelationName, columns: tuple[str, ...]) -> ArrowBag:
        bag = self.changes[name]
        return bag if bag.columns == columns else bag.picked(columns).net()

    def _law(self, segment: Segment, plan: LawOverOldRows) -> ArrowBag:
        reader = self.readers[plan.old]
        if plan.first is not None and can_order(reader.relation.arrow_schema(), plan.first.order):
            return self._first(segment, plan, plan.first, reader)
        tables = self._with_old(plan.changed, plan.keys, reader)
        is_hot = tables["changes"].num_rows * tables["old"].num_rows > _HOT_ROWS
        names = stamped_names(tables).values()
        found = self._run(segment, (plan.hot_law(*names) if is_hot else None) or plan.law(*names), tables)
        impossible = plan.impossible_tick(found.table)
        if impossible is not None:
            raise ImpossibleRow(
                f'view "{self.view.name}" has no state from tick {impossible} on',
                code="HW-502",
                detail=f"a group ({segment.name.name}) would have fewer than no rows at tick {impossible}",
            )
        return found

    def _first(self, segment: Segment, plan: LawOverOldRows, computed: First, reader: SegmentLookup) -> ArrowBag:
        """Compute the first rows again at each tick, from those that can be among them at some tick of the batch."""
        changes = self.changes[plan.changed].table
        started = time.perf_counter()
        first = _first_rows(reader, computed.order, computed.last)
        showing = first.showing(changes, computed.last)
        if showing is None:  # one more row per change is enough, even if every change touches a row
            first = _first_rows(reader, computed.order, computed.last + changes.num_rows)
            showing = first.showing(changes, computed.last)
        assert showing is not None, "more rows are known than are wanted and touched"
        self.seconds_asking += time.perf_counter() - started
        self._note_read(reader.relation.name, max(first.read_rows, showing.old.num_rows))
        if not showing.changes.num_rows:
            return ArrowBag(empty_table(segment.relation.arrow_schema()))
        tables: dict[Literal["changes", "old"], pa.Table] = {"changes": showing.changes, "old": showing.old}
        return self._run(segment, plan.law(*stamped_names(tables).values()), tables)

    def _with_old(
        self, name: RelationName, keys: tuple[str, ...], reader: SegmentLookup
    ) -> dict[Literal["changes", "old"], pa.Table]:
        """Return a step's changes, and the old rows of the keys that they touch."""
        changes = self.changes[name]
        started = time.perf_counter()
        within = restricted(keys, changes.groups(keys)) if keys else None
        old = look_up(reader, _whole_rows(reader, within)).rows
        self.seconds_asking += time.perf_counter() - started
        self._note_read(reader.relation.name, len(old))
        return {"changes": changes.table, "old": old.counted}

    def _run(self, segment: Segment, sql: str, tables: Mapping[Literal["changes", "old"], pa.Table]) -> ArrowBag:
        """Run a step's law. On Spark the ticks count from the batch's beginning."""
        lo, names = self.span[0], stamped_names(tables)
        schema = empty_table(segment.relation.arrow_schema()).schema
        placed = {names["changes"]: shifted(tables["changes"], -lo), names["old"]: tables["old"]}
        found = shifted(run_stamped(self.spark, sql, placed), lo)
        return ArrowBag(found.select(schema.names).cast(schema))

    def _recompute(self, segment: Segment, inputs: tuple[RelationName, ...]) -> ArrowBag:
        """Run the whole query over what the inputs hold after every tick that changes them. What differs came then.

        Where not each tick is shown, all changes have the batch's last tick, so it is run once.
        """
        behind = {name: self._behind(name) for name in inputs}
        rows = {name: self._whole(read) for name, read in behind.items()}
        if segment.name in self.readers:
            reader = self.readers[segment.name]
            before = look_up(reader, _whole_rows(reader, None)).rows
        else:
            before = self._run_whole(segment, rows)
        changed = ArrowBag(empty_table(segment.relation.arrow_schema()))
        for tick in self._ticks(behind.values()):
            rows = {name: bag.plus(self._at(behind[name], tick)).restamped(tick).net() for name, bag in rows.items()}
            after = self._run_whole(segment, rows)
            changed = changed.plus(after.plus(before.negated()).restamped(tick).net())
            before = after
        return changed

    def _ticks(self, names: Iterable[RelationName]) -> list[Tick]:
        """Return the ticks at which some relation or segment changes."""
        return sorted({tick for name in names for tick in self.changes[name].ticks()})

    def _at(self, name: RelationName, tick: Tick) -> ArrowBag:
        """Return how a relation or segment changes at a tick."""
        return self.changes[name].upto(tick).after(Tick(tick - 1))

    def _behind(self, name: RelationName) -> RelationName:
        """Return what is to be read for an input: itself, or the relation that it copies if the copy is not kept."""
        if not isinstance(name, SegmentName) or name in self.readers:
            return name
        [relation] = self.segments[name].inputs
        return relation

    def _whole(self, name: RelationName) -> ArrowBag:
        """Return all rows of a relation or segment before the batch."""
        request: ArrowRequest = RowRequest(relation=name, wanted=self.changes[name].columns)
        result = look_up(self.lookup, request)
        self.read[name] += len(result.rows)
        return rebase(request, result, self.log, self.span[0])

    def _run_whole(self, segment: Segment, inputs: Mapping[RelationName, ArrowBag]) -> ArrowBag:
        names = stamped_names(inputs)
        tables = {names[name]: unfolded(bag) for name, bag in inputs.items()}
        rows = run_stamped(self.spark, segment.whole_sql(names), tables)
        typed = rows.select(segment.relation.column_names).cast(segment.relation.arrow_schema())
        return ArrowBag.of_plain(typed, self.span[1])


def _whole_rows(reader: SegmentLookup, within: ArrowRestriction | None) -> ArrowRequest:
    """Return the request for rows of a segment with all columns."""
    return RowRequest(relation=reader.relation.name, wanted=reader.relation.column_names, within=within)


def _first_rows(reader: SegmentLookup, order: Order, count: int) -> FirstRows:
    """Return at least the first rows of a segment in an order."""
    request = replace(_whole_rows(reader, None), order=order, limit=count)
    return FirstRows.of_result(look_up(reader, request), order)
