"""`impact SOURCE:POSITION`: every row of a view that one source transaction changed, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowBag, summed_up
from headwater.errors import NotReadable
from headwater.lineage.result import ChangedRows, ImpactResult
from headwater.model.guarantee import Guarantee
from headwater.model.moment import AtPosition
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.warehouse.catalog import ViewEntry
from headwater.warehouse.query import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_impact(spark: Callable[[], SparkSession], warehouse: Warehouse, position: AtPosition) -> ImpactResult:
    """Return what the source's newest transaction up to a position changed, from the views' changes. Asks no source.

    Spark is needed only where it changed many rows.
    """
    tick = warehouse.newest_tick_upto(position)
    if tick is None:
        raise NotReadable(
            f'no transaction of source "{position.source}" is known up to {position}',
            code="HW-419",
            detail=f"the change log begins after tick {warehouse.log.horizon()}",
            hint="give the position of a commit since the first `headwater run`, or one after it",
        )
    accepted = warehouse.log.transactions(None, Tick(tick - 1), tick)
    entries = warehouse.catalog().views.values()
    frontiers = {entry.name: warehouse.frontier(entry.name) for entry in entries}
    there = [entry for entry in entries if entry.birth < tick <= frontiers[entry.name]]
    return ImpactResult(
        tick=tick,
        asked=position,
        positions=tuple(one.position for _, one in accepted),
        committed_at=max(one.committed_at for _, one in accepted),
        relations=tuple(_relation_changes(warehouse, tick)),
        views=tuple(_view_changes(spark, warehouse, entry, tick) for entry in there),
        not_yet=tuple(entry.name for entry in entries if frontiers[entry.name] < tick),
        not_born=tuple(entry.name for entry in entries if entry.birth >= tick),
    )


def _relation_changes(warehouse: Warehouse, tick: Tick) -> Iterator[ChangedRows]:
    before = Tick(tick - 1)
    for name in warehouse.log.relations():
        columns = tuple(warehouse.log.relation_schema(name).names)
        rows = ArrowBag(warehouse.log.rows(name, columns, before, tick)).net()
        if len(rows):
            yield ChangedRows(name=str(name), after=before, upto=tick, rows=_ordered(rows.table.drop_columns([TICK])))


def _view_changes(spark: Callable[[], SparkSession], warehouse: Warehouse, entry: ViewEntry, tick: Tick) -> ChangedRows:
    after, upto = _span(warehouse, entry, tick)
    few = warehouse.few_changes(entry.name, after, upto)
    if few is not None:
        return ChangedRows(name=entry.name, after=after, upto=upto, rows=_ordered(summed_up(few.drop_columns([TICK]))))
    from headwater.deltas.on_spark import quoted, to_arrow  # noqa: PLC0415 - most transactions change few rows
    from headwater.warehouse.state import net  # noqa: PLC0415 - as above

    changes = warehouse.changes_dataframe(spark(), entry.name, after, upto)
    columns = [name for name in changes.columns if name not in (TICK, COUNT)]
    rows = to_arrow(net(changes, columns).select(*quoted((*columns, COUNT))))
    return ChangedRows(name=entry.name, after=after, upto=upto, rows=_ordered(rows))


def _span(warehouse: Warehouse, entry: ViewEntry, tick: Tick) -> tuple[Tick, Tick]:
    """Return the ticks that a view shows as one state with this one."""
    if Guarantee(entry.guarantee) is Guarantee.COMPLETE:
        return Tick(tick - 1), tick
    ends = {commit.record.frontiers.get(entry.name, entry.birth) for commit in warehouse.commits.read()}
    return max(end for end in ends if end < tick), min(end for end in ends if end >= tick)


def _ordered(rows: pa.Table) -> pa.Table:
    """Return what went before what came."""
    return rows.sort_by(COUNT)
