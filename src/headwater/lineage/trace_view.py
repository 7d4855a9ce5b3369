"""`trace`: select rows of a view at a tick, and find the source rows that derived them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.on_spark import run_stamped, to_arrow
from headwater.engine.state.tick_reader import TickReader
from headwater.errors import InvalidView, WarehouseRefused
from headwater.lineage.result import TracedRelation, TraceResult
from headwater.lineage.trace import trace
from headwater.lineage.traced import leaves, source_rows
from headwater.model.guarantee import Guarantee
from headwater.model.moment import Moment
from headwater.model.position import Tick
from headwater.model.relation import COUNT
from headwater.project.outdated_view import refuse_outdated
from headwater.project.resolve import ResolvedProject
from headwater.spark.view_errors import said_by_spark
from headwater.views.steps.keep_lineage import without_lineage
from headwater.warehouse.query import Warehouse
from headwater.warehouse.state import net
from headwater.warehouse.traces import note_trace


def shown_tick(warehouse: Warehouse, name: str, tick: Tick) -> Tick:
    """Return the tick whose state a reader of a view sees at a tick."""
    entry = warehouse.view(name)
    if Guarantee(entry.guarantee) is Guarantee.COMPLETE:
        return tick
    ends = (commit.record.frontiers.get(name, entry.birth) for commit in warehouse.commits.read())
    return max((end for end in ends if entry.birth <= end <= tick), default=entry.birth)


def trace_view(
    spark: SparkSession,
    resolved: ResolvedProject,
    name: str,
    *,
    where: str | None,
    at: Moment | None,
    whole_rows: bool,
) -> TraceResult:
    """Return the source rows that derived the rows of a view for which a condition is true, all without one.

    With `whole_rows` source rows are shown with all their columns; what is kept of them has only those that views need,
    so that their sources may have to be asked.
    """
    warehouse = Warehouse.open(resolved.project.warehouse, resolved.project.settings.reading)
    view = resolved.views[name].view
    refuse_outdated(warehouse.view(name), view)
    tick = shown_tick(warehouse, name, warehouse.resolve_at(name, at))
    selected = select_rows(warehouse.view_entries(spark, name, tick), where, name, resolved.views[name].schema)
    wanted = {
        relation: resolved.relations[relation].column_names if whole_rows else columns
        for relation, columns in without_lineage(view).relations.items()
    }

    with TickReader(spark=spark, resolved=resolved, warehouse=warehouse, view=view, tick=tick) as reader:
        traced = trace(view, selected, reader, partial(run_stamped, spark), wanted, reader.cost)
    origins = {leaf.name: leaf.origin for leaf in leaves(traced)}
    relations = tuple(
        TracedRelation(relation=str(relation), origin=origins[relation], rows=rows)
        for relation, rows in source_rows(traced).items()
    )
    with contextlib.suppress(WarehouseRefused):  # it is only counted for advice, and the folder may be read-only
        note_trace(warehouse.path, name, datetime.now(UTC))
    return TraceResult(view=name, tick=tick, rows=selected, relations=relations, tree=traced)


def select_rows(entries: DataFrame, where: str | None, name: str, schema: pa.Schema) -> pa.Table:
    """Return the rows of a view for which a condition is true, each once, with `_count`. Entries sum up to its rows."""
    try:
        rows = net(entries, schema.names)
        found = to_arrow(rows if where is None else rows.where(where))
    except PySparkException as error:
        raise InvalidView(
            f'Spark cannot tell for which rows of "{name}" this is true: {where}',
            code="HW-133",
            detail=said_by_spark(error),
            hint=f"write a condition on its columns: {', '.join(schema.names)}",
        ) from None
    counted = pa.schema([*schema, pa.field(COUNT, pa.int64())])
    return found.select(counted.names).cast(counted)
