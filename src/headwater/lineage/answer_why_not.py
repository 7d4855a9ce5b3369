"""`why-not`: what keeps a row out of a view, and whether a transaction that would bring it is on its way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from headwater.deltas.compare import format_row
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import run_stamped
from headwater.engine.state.tick_reader import TickReader
from headwater.lineage.obstacles import Obstacle
from headwater.lineage.result import Pending, WhyNotResult
from headwater.lineage.trace_view import shown_tick
from headwater.lineage.typed_row import typed_row
from headwater.lineage.why_not import why_not
from headwater.model.moment import Moment
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.observe.status import Stop
from headwater.project.outdated_view import refuse_outdated
from headwater.project.resolve import ResolvedProject
from headwater.warehouse.query import Warehouse


def find_why_not(
    spark: SparkSession, resolved: ResolvedProject, name: str, row: str, at: Moment | None
) -> WhyNotResult:
    """Return what keeps a row out of a view at a moment, and at its frontier also what is pending."""
    warehouse = Warehouse.open(resolved.project.warehouse)
    view = resolved.views[name].view
    refuse_outdated(warehouse.view(name), view)
    tick = shown_tick(warehouse, name, warehouse.resolve_at(name, at))
    given = typed_row(spark, name, view.output.relation.columns, row)
    with TickReader(spark=spark, resolved=resolved, warehouse=warehouse, view=view, tick=tick) as reader:
        run = partial(run_stamped, spark)
        obstacles = why_not(view, given, reader, run, lambda value: format_row((value,))[1:-1])
    warehouse.log.refresh()
    stopped = warehouse.head().record.stopped.get(name)
    return WhyNotResult(
        view=name,
        tick=tick,
        row={column: given[column][0].as_py() for column in given.column_names},
        obstacles=obstacles,
        pending=tuple(pending(warehouse, obstacles, tick)) if at is None else (),
        stopped=None
        if stopped is None or at is not None
        else Stop(tick=tick, code=stopped.code, summary=stopped.summary, hint=stopped.hint),
    )


def pending(warehouse: Warehouse, obstacles: Sequence[Obstacle], tick: Tick) -> Iterator[Pending]:
    """Yield the first accepted transaction after a tick that brings rows which are missing."""
    for missing in (obstacle.missing for obstacle in obstacles if obstacle.missing is not None):
        columns = missing.within.columns
        rows = ArrowBag(warehouse.log.rows(missing.relation, columns, tick, warehouse.log.last_tick))
        found = rows.matching(columns, missing.within.keys).table
        first = pc.min(found[TICK].filter(pc.greater(found[COUNT], 0))).as_py()
        if first is not None:
            [(at, one), *_] = warehouse.log.transactions(missing.relation.source, Tick(first - 1), Tick(first))
            yield Pending(tick=at, position=one.position, text=f"{missing.relation} gets such a row")
