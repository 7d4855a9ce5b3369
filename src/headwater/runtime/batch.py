"""Compute what a batch of ticks changes in one view: reach by batched SWEEP, then the law on Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag, ArrowKeys
from headwater.deltas.on_spark import run_stamped, stamped_names
from headwater.guarantee import Guarantee
from headwater.maintenance.batched_sweep import batched_sweep
from headwater.maintenance.combinations import pieces
from headwater.maintenance.questions import Answer, Ask
from headwater.maintenance.rebase import refuse_negative
from headwater.position import Tick
from headwater.relation import COUNT, TICK, RelationName
from headwater.runtime.accepted_log import AcceptedLog
from headwater.views.law import law_sql
from headwater.views.normal_form import JoinView

Performer = Callable[[Ask[ArrowKeys]], Sequence[Answer[ArrowBag]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChange:
    """The signed rows by which a view changes in a batch, stamped with their ticks, and what finding them took."""

    rows: pa.Table
    seconds_asking: float
    seconds_joining: float


def change_view(
    spark: SparkSession,
    view: JoinView,
    schema: pa.Schema,
    guarantee: Guarantee,
    span: tuple[Tick, Tick],
    log: AcceptedLog,
    perform: Performer,
) -> ViewChange | None:
    """Return how a view changes over the ticks (lo, hi], or None if none of its relations changed."""
    lo, hi = span
    changes = {name: log.changes(name, columns, lo, hi) for name, columns in view.relations.items()}
    if guarantee is not Guarantee.COMPLETE:
        changes = {name: bag.restamped(hi) for name, bag in changes.items()}
    changes = {name: bag.net() for name, bag in changes.items()}
    if not any(len(bag) for bag in changes.values()):
        return None
    started = time.perf_counter()
    sweep = batched_sweep(view, lo, changes, log)
    try:
        ask = next(sweep)
        while True:
            ask = sweep.send(perform(ask))
    except StopIteration as finished:
        bags: Mapping[RelationName, ArrowBag] = finished.value
    asked = time.perf_counter()
    tables = []
    for after, _, part in pieces(view, bags, lo, hi):
        names = stamped_names(part)
        for relation, bag in part.items():
            _check_old_rows(str(relation), bag, after)
        shifted = {names[relation]: _shifted(bag.table, -after) for relation, bag in part.items()}
        tables.append(_shifted(run_stamped(spark, law_sql(view, names, 0), shifted), after))
    rows = pa.concat_tables([table.select(schema.names).cast(schema) for table in tables])
    return ViewChange(rows=rows, seconds_asking=asked - started, seconds_joining=time.perf_counter() - asked)


def _shifted(table: pa.Table, ticks: int) -> pa.Table:
    """Return the rows with their ticks moved: counted from the batch's beginning, so that no query ever differs."""
    moved = pc.add(table[TICK], pa.scalar(ticks, pa.int64()))
    return table.set_column(table.column_names.index(TICK), TICK, moved)


def _check_old_rows(relation: str, bag: ArrowBag, lo: Tick) -> None:
    old = pc.equal(bag.table[TICK], lo)
    negative = pc.sum(pc.and_(old, pc.less(bag.table[COUNT], 0))).as_py()
    refuse_negative(negative or 0, relation, lo)
