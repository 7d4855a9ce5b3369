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
from types import MappingProxyType
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.first_rows import FirstRows, Showing
from headwater.deltas.lookup import Restriction, RowRequest, look_up, restricted
from headwater.deltas.on_arrow import ArrowBag, empty_table
from headwater.deltas.on_spark import run_stamped, stamped_names
from headwater.deltas.order import Order, can_order
from headwater.deltas.stored_bag import AnyKeys, Bag, BagLookup, BagRequest, held_result, rows_of
from headwater.engine.batch.join_batch import ViewChange, base_changes, change_join, change_view
from headwater.engine.state.computed_segment import BatchLookup, ComputedSegment
from headwater.engine.state.rewritings import Lineages
from headwater.engine.state.runner import Rows, Runner, Spool
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.tick_lookup import SegmentedLookup, SegmentLookup
from headwater.engine.state.whole_segments import WholeSegments
from headwater.errors import ImpossibleRow
from headwater.maintenance.published.messages import ViewHistory
from headwater.maintenance.rebase import rebase
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import TICK, RelationName, SegmentName
from headwater.storage.stored_rows import parts
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
_MORE_FIRST_ROWS = 1_000
_TABLES = tuple(stamped_names(("changes", "old")).values())
"""The names of a step's changes and of old rows in its law."""


def compute_view_delta(
    runner: Runner,
    view: SegmentedView,
    schema: pa.Schema,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: ViewHistory[Bag],
    lookup: BagLookup,
    readers: Mapping[RelationName, SegmentLookup],
    computed: MutableMapping[RelationName, Bag],
    folders: Mapping[RelationName, str],
) -> ViewChange | None:
    """Return how a view changes over the ticks (lo, hi], or None if nothing changed that it needs.

    `schema` is that of its table of changes; `readers` and `computed` matter where it has segments. `folders` has the
    folders of tables for which many rows are written, by segment.
    """
    if view.only_join is None:
        return change_segments(runner, view, guarantee, span, log, lookup, readers, computed, folders)
    folder = folders.get(view.output.name)
    return change_view(runner, view.only_join, schema, guarantee, span, log, lookup, folder)


def change_segments(
    runner: Runner,
    view: SegmentedView,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: ViewHistory[Bag],
    lookup: BagLookup,
    readers: Mapping[RelationName, SegmentLookup],
    computed: MutableMapping[RelationName, Bag],
    folders: Mapping[RelationName, str] = MappingProxyType({}),
) -> ViewChange | None:
    """Return how a view and what is kept for it change over the ticks (lo, hi]. None if nothing did that it needs.

    `computed` are the changes of segments that another view of the batch had too, and then of this one's.
    """
    started = time.perf_counter()
    base = base_changes(needed_content(view), guarantee, span, log)
    if not any(bag.most for bag in base.values()):
        return None
    changes = {name: runner.formed(bag) for name, bag in base.items()}
    assert all(reader.tick == span[0] for reader in readers.values()), "kept segments stand where the batch begins"
    reading = BatchLookup(tick=span[0], log=log, others=lookup, kept=readers)
    computing = _computed(runner, view, reading)
    found: dict[RelationName, SegmentLookup] = {**readers, **computing}
    batch = _Batch(
        runner=runner,
        view=view,
        segments={segment.name: segment for segment in view.segments},
        span=span,
        log=log,
        lookup=SegmentedLookup(segments=found, others=lookup),
        readers=found,
        computed=frozenset(computing),
        folders=folders,
        changes=changes,
    )
    changed = sum(bag.most for bag in changes.values())
    for segment in view.segments[:-1]:
        if segment.name not in computed:
            computed[segment.name] = batch.change(segment)
        changes[segment.name] = computed[segment.name]
    changes[view.output.name] = batch.change(view.output)
    kept = {segment.name: changes[segment.name] for segment in view.segments[:-1] if segment.is_kept}
    return ViewChange(
        rows=changes[view.output.name],
        segments={name: bag for name, bag in kept.items() if bag.most},
        changed_rows=changed,
        read_rows=batch.read + reading.read,
        seconds_asking=batch.seconds_asking,
        seconds_joining=time.perf_counter() - started - batch.seconds_asking,
    )


def _computed(runner: Runner, view: SegmentedView, reading: BatchLookup) -> dict[RelationName, ComputedSegment]:
    """Return the old rows of segments that are looked up and not kept."""
    plain = without_lineage(view)
    lineages = Lineages(kept={one.of: one for one in view.lineage}, cost=reading.cost)
    rows = SegmentRows(plain, reading, partial(run_stamped, runner.spark), plain.relations, lineages)
    whole = WholeSegments(view=plain, reading=reading, runner=runner)
    return {
        name: ComputedSegment(relation=rows.segments[name].relation, tick=reading.tick, rows=rows, whole=whole)
        for name in computed_segments(plain)
    }


@dataclass(slots=True, kw_only=True)
class _Batch:
    """One pass over a view's segments. `changes` holds those of relations, and of the segments that are done."""

    runner: Runner
    view: SegmentedView
    segments: Segments
    span: tuple[Tick, Tick]
    log: ViewHistory[Bag]
    lookup: SegmentedLookup
    readers: Mapping[RelationName, SegmentLookup]
    computed: Collection[RelationName]
    """The segments that are not kept."""
    folders: Mapping[RelationName, str]
    changes: Mapping[RelationName, Bag]
    seconds_asking: float = field(default=0.0)
    read: Counter[RelationName] = field(default_factory=Counter)

    def change(self, segment: Segment) -> Bag:
        """Return how a segment changes. Many rows are written where its table is, if it has one."""
        if not any(self.changes[name].most for name in segment.inputs):
            return ArrowBag(empty_table(segment.relation.arrow_schema()))
        plan = segment.step.change_plan(segment, self.segments)
        match plan:
            case JoinChanges(join=join):
                return self._join(segment, join)
            case LawOverOldRows():
                return self._law(segment, plan)
            case SumOfChanges(total=total):
                return self.runner.settled(total(self.changes), self.folders.get(segment.name))
            case WholeAgain(inputs=inputs):
                return self._recompute(segment, inputs)
            case _:
                assert_never(plan)

    def _join(self, segment: Segment, join: JoinView) -> Bag:
        changes = {name: self._pruned(name, columns) for name, columns in join.relations.items()}
        schema = empty_table(segment.relation.arrow_schema()).schema
        if not any(bag.most for bag in changes.values()):
            return ArrowBag(schema.empty_table())
        if (columns := plain_columns(join)) is not None:
            [bag] = changes.values()
            picked = bag.typed(schema, columns).net()
            return self.runner.settled(picked, self.folders.get(segment.name))
        folder = self.folders.get(segment.name)
        found = change_join(self.runner, join, schema, self.span, changes, self.log, self.lookup, folder)
        self.seconds_asking += found.seconds_asking
        for name, count in found.read_rows.items():
            self._note_read(name, count)
        return found.rows

    def _note_read(self, name: RelationName, count: int) -> None:
        """Count old rows. Of what is computed those are counted that it is computed from."""
        if name not in self.computed:
            self.read[name] += count

    def _pruned(self, name: RelationName, columns: tuple[str, ...]) -> Bag:
        """Return the changes of an input with the columns that a join needs. Stored ones are netted by its law."""
        bag = self.changes[name]
        if bag.columns == columns:
            return bag
        return bag.picked(columns).net_if_held()

    def _law(self, segment: Segment, plan: LawOverOldRows) -> Bag:
        reader = self.readers[plan.old]
        if plan.first is not None and can_order(reader.relation.arrow_schema(), plan.first.order):
            first = self._first(segment, plan, plan.first, reader)
            if first is not None:
                return first
        changes, old = self._with_old(plan.changed, plan.keys, reader)
        is_hot = changes.most * old.most > _HOT_ROWS
        sql = self.runner.text(
            segment, is_hot, lambda: (plan.hot_law(*_TABLES) if is_hot else None) or plan.law(*_TABLES)
        )
        is_large = plan.alters_partitions and self._alters_many(changes, old, plan.keys)
        found = self._run(segment, sql, changes, old, is_large=is_large)
        impossible = [tick for rows in parts(found) if (tick := plan.impossible_tick(rows)) is not None]
        if impossible:
            raise ImpossibleRow(
                f'view "{self.view.name}" has no state from tick {min(impossible)} on',
                code="HW-502",
                detail=f"a group ({segment.name.name}) would have fewer than no rows at tick {min(impossible)}",
            )
        return found

    def _first(self, segment: Segment, plan: LawOverOldRows, computed: First, reader: SegmentLookup) -> Bag | None:
        """Compute the first rows again at each tick, from those that can be among them at some tick of the batch.

        None if these are too many to be held.
        """
        started = time.perf_counter()
        showing = self._showing(self.runner.settled(self.changes[plan.changed]), computed, reader)
        self.seconds_asking += time.perf_counter() - started
        if showing is None:
            return None
        if not showing.changes.num_rows:
            return ArrowBag(empty_table(segment.relation.arrow_schema()))
        old = ArrowBag.of_counted(showing.old, self.span[0])
        sql = self.runner.text(segment, False, lambda: plan.law(*_TABLES))
        return self._run(segment, sql, ArrowBag(showing.changes), old)

    def _showing(self, changes: Bag, computed: First, reader: SegmentLookup) -> Showing | None:
        """Return what of a batch can show among the first rows. None if it is too much."""
        wanted = computed.last
        while wanted <= self.runner.held_rows:
            first = _first_rows(reader, computed.order, wanted)
            near = self._few(first.reaching(rows) for rows in parts(changes))
            if near is None:
                return None
            showing = first.showing(pa.concat_tables(near), computed.last)
            if showing is not None:
                self._note_read(reader.relation.name, max(first.read_rows, showing.old.num_rows))
                return showing
            # one more row per change is enough, even if every change touches a row
            wanted = min(2 * wanted + _MORE_FIRST_ROWS, computed.last + changes.most)
        return None

    def _few(self, parts: Iterable[pa.Table]) -> list[pa.Table] | None:
        """Return the parts that come, or None once they are too many rows to be held."""
        few, row_count = [], 0
        for part in parts:
            row_count += part.num_rows
            if row_count > self.runner.held_rows:
                return None
            few.append(part)
        return few

    def _with_old(self, name: RelationName, keys: tuple[str, ...], reader: SegmentLookup) -> tuple[Bag, Bag]:
        """Return a step's changes, and the old rows of the keys that they touch."""
        changes = self.changes[name]
        started = time.perf_counter()
        within: Restriction[AnyKeys] | None = restricted(keys, changes.groups(keys)) if keys else None
        old = look_up(reader, _whole_rows(reader, within)).rows
        self.seconds_asking += time.perf_counter() - started
        self._note_read(reader.relation.name, old.most)
        return changes, old

    def _alters_many(self, changes: Bag, old: Bag, keys: tuple[str, ...]) -> bool:
        """Tell whether held partitions have more rows than may be held, over all ticks at which they change."""
        if changes.held is None or old.held is None:
            return False  # the law runs on frames as it is
        if 2 * changes.most * (changes.most + old.most) <= self.runner.held_rows:
            return False
        return 2 * _partition_rows(changes.held.table, old.held.table, keys) > self.runner.held_rows

    def _run(self, segment: Segment, sql: str, changes: Bag, old: Bag, *, is_large: bool = False) -> Bag:
        """Run a step's law. On Spark the ticks count from the batch's beginning."""
        lo, (of_changes, of_old) = self.span[0], _TABLES
        schema = empty_table(segment.relation.arrow_schema()).schema
        tables: dict[str, Rows] = {of_changes: rows_of(changes.shifted(-lo)), of_old: old.counted}
        folder = self.folders.get(segment.name)
        return self.runner.run(sql, tables, schema, shifted=lo, folder=folder, is_large=is_large)

    def _recompute(self, segment: Segment, inputs: tuple[RelationName, ...]) -> Bag:
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
        folder = self.folders.get(segment.name)
        changed = Spool(schema=empty_table(segment.relation.arrow_schema()).schema, runner=self.runner, folder=folder)
        ticks = self._ticks(behind.values())
        for tick in ticks:  # from the rows before the batch: plans on the tick before would double each time
            shown = {name: bag.changed_by(self.changes[behind[name]].upto(tick), tick) for name, bag in rows.items()}
            after = self._run_whole(segment, shown)
            if tick != ticks[-1]:
                after = self.runner.settled(after)  # it is needed twice
            differs = after.plus(before.negated()).restamped(tick).net()
            changed.add(self.runner.settled(differs, folder))
            before = after
        return changed.bag()

    def _ticks(self, names: Iterable[RelationName]) -> list[Tick]:
        """Return the ticks at which some relation or segment changes."""
        return sorted({tick for name in names for tick in self.changes[name].ticks()})

    def _behind(self, name: RelationName) -> RelationName:
        """Return what is to be read for an input: itself, or the relation that it copies if the copy is not kept."""
        if not isinstance(name, SegmentName) or name in self.readers:
            return name
        [relation] = self.segments[name].inputs
        return relation

    def _whole(self, name: RelationName) -> Bag:
        """Return all rows of a relation or segment before the batch."""
        request: BagRequest = RowRequest(relation=name, wanted=self.changes[name].columns)
        result = look_up(self.lookup, request)
        self.read[name] += result.rows.most
        return self.runner.formed(rebase(request, result, self.log, self.span[0]))

    def _run_whole(self, segment: Segment, inputs: Mapping[RelationName, Bag]) -> Bag:
        """Return what the whole query gives, stamped with the batch's last tick."""
        names = stamped_names(inputs)
        tables = {names[name]: bag.plain() for name, bag in inputs.items()}
        sql = self.runner.text(segment, tuple(names.items()), lambda: segment.whole_sql(names))
        return self.runner.whole(sql, tables, segment.relation.arrow_schema(), self.span[1])


def _partition_rows(changes: pa.Table, old: pa.Table, keys: tuple[str, ...]) -> int:
    """Return how many rows the partitions of some keys have at most, summed up over the ticks at which they change."""
    if not keys:
        return len(set(changes[TICK].to_pylist())) * int(changes.num_rows + old.num_rows)
    turns = changes.group_by([*keys, TICK]).aggregate([]).select(keys)
    rows = pa.concat_tables([changes.select(keys), old.select(keys)])
    counted = [
        pa.table([*table.columns, *(pa.repeat(one, table.num_rows) for one in (turn, row))], [*keys, "turns", "rows"])
        for table, turn, row in ((turns, 1, 0), (rows, 0, 1))
    ]
    summed = pa.concat_tables(counted).group_by(list(keys)).aggregate([("turns", "sum"), ("rows", "sum")])
    total: int = pc.sum(pc.multiply(summed["turns_sum"], summed["rows_sum"])).as_py()
    return total or 0


def _whole_rows(reader: SegmentLookup, within: Restriction[AnyKeys] | None) -> BagRequest:
    """Return the request for rows of a segment with all columns."""
    return RowRequest(relation=reader.relation.name, wanted=reader.relation.column_names, within=within)


def _first_rows(reader: SegmentLookup, order: Order, count: int) -> FirstRows:
    """Return at least the first rows of a segment in an order."""
    request = replace(_whole_rows(reader, None), order=order, limit=count)
    return FirstRows.of_result(held_result(look_up(reader, request)), order)
