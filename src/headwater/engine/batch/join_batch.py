"""Compute what a batch of ticks changes in one view: reach by batched SWEEP, then the law on Spark."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from headwater.deltas.extent import Content
from headwater.deltas.lookup import B, Lookup
from headwater.deltas.on_arrow import ArrowBag, ArrowLookup
from headwater.deltas.on_spark import run_stamped, stamped_names
from headwater.engine.state.accepted_log import AcceptedLog
from headwater.maintenance.batched_sweep import batched_sweep
from headwater.maintenance.combinations import pieces
from headwater.maintenance.published.messages import ViewHistory
from headwater.maintenance.rebase import Log, refuse_negative
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, RelationName
from headwater.views.laws.join import law_sql
from headwater.views.steps.join import JoinView


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChange:
    """The signed rows by which a view changes in a batch, stamped with their ticks, and what finding them took.

    `segments` has the same of the segments that are kept for it, where they changed. `changed_rows` counts what changed
    of what it needs, `read_rows` the old rows that were read for that, by relation or segment.
    """

    rows: ArrowBag
    segments: Mapping[RelationName, ArrowBag] = field(default_factory=dict)
    changed_rows: int = 0
    read_rows: Mapping[RelationName, int] = field(default_factory=dict)
    seconds_asking: float
    seconds_joining: float


def change_view(
    spark: SparkSession,
    view: JoinView,
    schema: pa.Schema,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: AcceptedLog,
    lookup: ArrowLookup,
) -> ViewChange | None:
    """Return how a view changes over the ticks (lo, hi], or None if nothing changed that it needs."""
    started = time.perf_counter()
    needed = {name: Content(columns=columns, rows=view.extents[name]) for name, columns in view.relations.items()}
    changes = base_changes(needed, guarantee, span, log)
    if not any(len(bag) for bag in changes.values()):
        return None
    change = change_join(spark, view, schema, span, changes, log, lookup)
    return replace(change, seconds_joining=time.perf_counter() - started - change.seconds_asking)


def base_changes(
    needed: Mapping[RelationName, Content], guarantee: Guarantee, span: tuple[Tick, Tick], log: ViewHistory[B]
) -> dict[RelationName, B]:
    """Return how what is needed of relations changes over the ticks (lo, hi]. If not each tick is shown, all at hi.

    Rows that are not needed are left out before anything is netted: netting is what takes long.
    """
    lo, hi = span
    changes: dict[RelationName, B] = {
        name: log.changes(name, content.columns, lo, hi).selected(content.rows) for name, content in needed.items()
    }
    if guarantee is not Guarantee.COMPLETE:
        changes = {name: bag.restamped(hi) for name, bag in changes.items()}
    return {name: bag.net() for name, bag in changes.items()}


def change_join(
    spark: SparkSession,
    view: JoinView,
    schema: pa.Schema,
    span: tuple[Tick, Tick],
    changes: Mapping[RelationName, ArrowBag],
    log: Log[ArrowBag],
    lookup: ArrowLookup,
) -> ViewChange:
    """Return how a join changes over the ticks (lo, hi], given how what it reads changes."""
    started = time.perf_counter()
    relevant = {name: bag.selected(view.extents[name]) for name, bag in changes.items()}
    bags = reach_rows(view, span[0], relevant, log, lookup)
    asked = time.perf_counter()
    rows = ArrowBag(schema.empty_table())
    if any(len(bag) for bag in relevant.values()):
        rows = join_in_pieces(spark, view, schema, span, bags)
    return ViewChange(
        rows=rows,
        changed_rows=sum(len(bag) for bag in changes.values()),
        read_rows=old_row_counts(relevant, bags),
        seconds_asking=asked - started,
        seconds_joining=time.perf_counter() - asked,
    )


def old_row_counts(changes: Mapping[RelationName, B], reached: Mapping[RelationName, B]) -> Counter[RelationName]:
    """Return how many rows are reached that are no changes themselves."""
    return Counter({name: len(bag) - len(changes[name]) for name, bag in reached.items()})


def join_in_pieces(
    spark: SparkSession,
    view: JoinView,
    schema: pa.Schema,
    span: tuple[Tick, Tick],
    bags: Mapping[RelationName, ArrowBag],
) -> ArrowBag:
    """Run the law over stamped rows, in as many pieces as hot keys make needful.

    Only what was read can contradict the log. Before a later piece a row may stand below zero: it was deleted, and its
    old self was not reached, because nothing that changes in the batch joins it.
    """
    check_old_rows(bags, span[0])
    tables = []
    for after, _, part in pieces(view, bags, *span):
        names = stamped_names(part)
        counted = {names[relation]: shifted(bag.table, -after) for relation, bag in part.items()}
        tables.append(shifted(run_stamped(spark, law_sql(view, names, 0), counted), after))
    return ArrowBag(pa.concat_tables([table.select(schema.names).cast(schema) for table in tables]))


def reach_rows(
    view: JoinView, lo: Tick, changes: Mapping[RelationName, B], log: Log[B], lookup: Lookup[Any, B]
) -> Mapping[RelationName, B]:
    """Return the changes of what a join reads, and the old rows that they can join, stamped `lo`."""
    sweep = batched_sweep(view, lo, changes, log)
    try:
        requests = next(sweep)
        while True:
            requests = sweep.send(lookup.lookup(requests))
    except StopIteration as finished:
        bags: Mapping[RelationName, B] = finished.value
    return bags


def shifted(table: pa.Table, ticks: int) -> pa.Table:
    """Return the rows with their ticks moved: counted from the batch's beginning, so that no query ever differs."""
    moved = pc.add(table[TICK], pa.scalar(ticks, pa.int64()))
    return table.set_column(table.column_names.index(TICK), TICK, moved)


def check_old_rows(bags: Mapping[RelationName, ArrowBag], lo: Tick) -> None:
    """Refuse old rows that would have to exist fewer than zero times."""
    for relation, bag in bags.items():
        old = pc.equal(bag.table[TICK], lo)
        negative = pc.sum(pc.and_(old, pc.less(bag.table[COUNT], 0))).as_py()
        refuse_negative(negative or 0, str(relation), lo)
