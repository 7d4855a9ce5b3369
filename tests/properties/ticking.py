"""Views of any SQL maintained on Spark over random transactions, held at every tick against Spark's own evaluation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

import pyarrow as pa
from pyspark.sql import SparkSession
from runners import HELD, runner_of

from headwater.deltas.compare import Row, difference
from headwater.deltas.lookup import RowResult, SawTicks, Sight
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import run_stamped, stamped_names
from headwater.deltas.stored_bag import AnyKeys, Bag, BagRequest, BagResult
from headwater.engine.batch.segment_batch import change_segments
from headwater.engine.state.runner import Runner
from headwater.engine.state.segment_reader import SegmentReader
from headwater.judge.complete_orders import judged_text
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import AllGroupTables, GroupTables
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation, RelationName
from headwater.spark.types import SelectTypes
from headwater.storage.stored_rows import parts
from headwater.views.compile.compile_view import compile_view
from headwater.views.laws.exact_sums import exact_sums_on_spark
from headwater.views.laws.join import renamed_sql
from headwater.views.steps.group_tables import keep_group_tables
from headwater.views.steps.recompute_step import RecomputeStep
from headwater.views.steps.segments import SegmentedView
from headwater.views.text.upstream_views import ViewText, whole_text

Bags = dict[RelationName, Counter[Row]]


@dataclass(frozen=True)
class Story:
    """Relations, their rows before the first tick, and what every tick changes."""

    relations: Mapping[RelationName, Relation]
    before: Bags
    ticks: Sequence[Bags]

    def at(self, tick: int) -> Bags:
        state = {name: Counter(rows) for name, rows in self.before.items()}
        for changed in self.ticks[:tick]:
            for name, rows in changed.items():
                for row, count in rows.items():
                    state[name][row] += count
        return state

    @cached_property
    def states(self) -> list[Bags]:
        return [self.at(tick) for tick in range(len(self.ticks) + 1)]


def random_story(
    relations: Mapping[RelationName, Relation],
    before: Mapping[RelationName, Sequence[Row]],
    random: Random,
    row: Callable[[RelationName], Row],
    tick_count: int,
) -> Story:
    """Return a story of inserts, deletes and updates; a relation with a key has each key once."""
    state = {name: Counter(rows) for name, rows in before.items()}
    ticks = []
    for _ in range(tick_count):
        changed: Bags = {}
        for name in random.sample(sorted(relations, key=str), random.choice((1, 1, 2))):
            change: Counter[Row] = Counter()
            there = [held for held, count in state[name].items() if count > 0]
            for gone in random.sample(there, min(len(there), random.choice((0, 1, 2)))):
                change[gone] -= 1
            for _ in range(random.choice((0, 1, 2))):
                come = row(name)
                width = len(relations[name].key)
                taken = [*(held for held in there if not change[held]), *(held for held in change if change[held] > 0)]
                if not width or all(come[:width] != held[:width] for held in taken):
                    change[come] += 1
            for held, count in change.items():
                state[name][held] += count
            changed[name] = change
        ticks.append(changed)
    return Story(relations, {name: Counter(rows) for name, rows in before.items()}, ticks)


Computed = dict[tuple[int, int], dict[RelationName, Bag]]
"""How segments change in each batch, for views that are maintained together."""


def check_every_tick(
    spark: SparkSession,
    sql: str,
    story: Story,
    batches: Sequence[tuple[int, int]],
    *,
    lower: Sequence[ViewText] = (),
    computed: Computed | None = None,
    group_tables: GroupTables | None = None,
    answered_late: bool = False,
    held_rows: int = HELD,
) -> SegmentedView:
    """Maintain a view over a story, batch by batch, and compare it with Spark at every tick.

    `lower` are the views that it reads; `computed` is what other views of the same story had, and then this one's too.
    Sources that answer late show what they hold after the last tick. Bags of more than `held_rows` are stored.
    """
    with runner_of(spark, held_rows) as runner:
        return _checked(runner, sql, story, batches, lower, computed, group_tables, answered_late=answered_late)


def _checked(
    runner: Runner,
    sql: str,
    story: Story,
    batches: Sequence[tuple[int, int]],
    lower: Sequence[ViewText],
    computed: Computed | None,
    group_tables: GroupTables | None,
    *,
    answered_late: bool,
) -> SegmentedView:
    spark = runner.spark
    types = SelectTypes(spark=spark, view="v").columns
    compiled = compile_view("v", sql, story.relations, types, lower=lower)
    view = keep_group_tables(compiled, group_tables or AllGroupTables())
    settled = judged_text(whole_text(sql, lower), story.relations.values())
    right = original_states(spark, exact_sums_on_spark(settled, story.relations, types), story)
    together = {} if computed is None else computed
    readers = _born(spark, view, story, right[0])
    every_tick = not any(isinstance(segment.step, RecomputeStep) for segment in view.segments)
    state = Counter(right[batches[0][0]])
    for lo, hi in batches:
        sources = _Sources(story, Tick(len(story.ticks) if answered_late else lo))
        change = change_segments(
            runner, view, Guarantee.COMPLETE, (Tick(lo), Tick(hi)), _Log(story), sources, readers,
            together.setdefault((lo, hi), {}) if every_tick else {},
        )  # fmt: skip
        for name, reader in readers.items():
            kept = None if change is None else change.rows if name == view.output.name else change.segments.get(name)
            reader.absorb([] if kept is None else parts(kept), Tick(hi))
        rows = [] if change is None else [row for part in parts(change.rows) for row in part.to_pylist()]
        for tick in range(lo + 1, hi + 1):
            for one in rows:
                if one[TICK] == tick:
                    state[tuple(one[name] for name in view.output_names)] += one[COUNT]
            if every_tick or tick == hi:
                differs = difference(right[tick], state)
                assert not differs, f"{sql}\nat tick {tick}: {differs.text(5)}"
    return view


def original_states(spark: SparkSession, sql: str, story: Story) -> list[Counter[Row]]:
    """Return what Spark gives for a text at every tick."""
    names = stamped_names(story.relations)
    text = renamed_sql(sql, names)
    found = []
    for bags in story.states:
        columns = run_stamped(spark, text, {names[name]: plain for name, plain in _plain(story, bags).items()}).columns
        found.append(Counter(zip(*(column.to_pylist() for column in columns), strict=True)))
    return found


def _born(
    spark: SparkSession, view: SegmentedView, story: Story, right: Counter[Row]
) -> dict[RelationName, SegmentReader]:
    """Return readers of the kept segments, computed whole before the first tick; the last one is the view."""
    placed = _plain(story, story.states[0])
    readers = {}
    for segment in view.segments:
        names = stamped_names(segment.inputs)
        rows = run_stamped(spark, segment.whole_sql(names), {names[name]: placed[name] for name in names})
        expected = segment.relation.arrow_schema()
        assert [(one.name, one.type) for one in rows.schema] == [(one.name, one.type) for one in expected]
        placed[segment.name] = rows.cast(expected)
        if segment.is_kept:
            counted = ArrowBag.of_plain(rows, Tick(0)).counted
            readers[segment.name] = SegmentReader.of_parts(segment.relation, [counted], Tick(0))
    differs = difference(right, Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True)))
    assert not differs, f"{view.sql}\nat birth: {differs.text(5)}"
    return readers


def _plain(story: Story, bags: Bags) -> dict[RelationName, pa.Table]:
    return {name: _arrow(story.relations[name], list(rows.elements())) for name, rows in bags.items()}


def _arrow(relation: Relation, rows: Sequence[Row]) -> pa.Table:
    schema = relation.arrow_schema()
    return pa.table([pa.array([row[n] for row in rows], field.type) for n, field in enumerate(schema)], schema=schema)


def _bag(relation: Relation, columns: Sequence[str], rows: Sequence[tuple[Row, int, int]]) -> ArrowBag:
    """Return rows with their ticks and counts, in some columns."""
    table = _arrow(relation, [row for row, _, _ in rows]).select(list(columns))
    table = table.append_column(TICK, pa.array([tick for _, tick, _ in rows], pa.int64()))
    return ArrowBag(table.append_column(COUNT, pa.array([count for _, _, count in rows], pa.int64())))


@dataclass(frozen=True)
class _Log:
    """A story as a change log."""

    story: Story

    def changes(self, name: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> ArrowBag:
        rows = [
            (row, tick, count)
            for tick in range(after + 1, upto + 1)
            for row, count in self.story.ticks[tick - 1].get(name, {}).items()
            if count
        ]
        return _bag(self.story.relations[name], columns, rows)

    def seen_after(self, name: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        assert isinstance(sight, SawTicks)
        return self.changes(name, columns, tick, max(tick, sight.upto))

    def unseen_upto(self, name: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        assert isinstance(sight, SawTicks)
        return self.changes(name, columns, min(tick, sight.upto), tick)


@dataclass(frozen=True)
class _Sources:
    """Answers probes with a story's rows at a tick."""

    story: Story
    tick: Tick

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        return [
            RowResult(
                rows=self._rows(probe.relation, probe.wanted, probe.columns, probe.keys), sight=SawTicks(upto=self.tick)
            )
            for probe in requests
        ]

    def _rows(self, name: RelationName, wanted: tuple[str, ...], columns: tuple[str, ...], keys: AnyKeys | None) -> Bag:
        there = [(row, int(self.tick), count) for row, count in self.story.states[self.tick][name].items() if count]
        relation = self.story.relations[name]
        rows = _bag(relation, relation.column_names, there)
        found = rows if keys is None else rows.matching(columns, keys)
        return found.picked(wanted)
