"""`impact RELATION --row`: the rows of views that derive from a source row."""

from __future__ import annotations

from functools import partial, reduce
from operator import and_

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.lookup import RowRequest, look_up
from headwater.deltas.on_spark import quoted, run_stamped, to_dataframe
from headwater.engine.state.reach import restrict
from headwater.engine.state.segment_rows import SegmentRows
from headwater.engine.state.sought import PLACE, numbered, same_values
from headwater.engine.state.tick_lookup import Run
from headwater.engine.state.tick_reader import TickReader
from headwater.errors import NotReadable, did_you_mean
from headwater.lineage.forward import deriving, may_derive
from headwater.lineage.result import DerivedRows, RowImpactResult
from headwater.lineage.trace import trace
from headwater.lineage.trace_view import select_rows, shown_tick
from headwater.lineage.typed_row import typed_row
from headwater.model.moment import Moment
from headwater.model.relation import Relation
from headwater.project.outdated_view import refuse_outdated
from headwater.project.resolve import ResolvedProject
from headwater.views.steps.keep_lineage import without_lineage
from headwater.warehouse.query import Warehouse


def find_row_impact(
    spark: SparkSession, resolved: ResolvedProject, relation: str, row: str, at: Moment | None
) -> RowImpactResult:
    """Return the rows of every view that derive from rows of a relation with given values, at a moment of each view."""
    described = _relation(resolved, relation)
    given = typed_row(spark, str(described.name), described.columns, row)
    warehouse = Warehouse.open(resolved.project.warehouse, resolved.project.settings.reading)
    kept = warehouse.catalog().views
    readers = [name for name, one in resolved.views.items() if name in kept and described.name in one.view.relations]
    return RowImpactResult(
        relation=str(described.name),
        row={column: given[column][0].as_py() for column in given.column_names},
        views=tuple(_in_view(spark, resolved, warehouse, name, described, given, at) for name in readers),
    )


def _relation(resolved: ResolvedProject, text: str) -> Relation:
    relations = {str(name): relation for name, relation in resolved.relations.items()}
    if text not in relations:
        raise NotReadable(
            f'no view reads a relation "{text}"',
            code="HW-137",
            detail=f"views read: {', '.join(sorted(relations))}",
            hint=did_you_mean(text, tuple(relations), otherwise="write SOURCE.TABLE, as a view's SQL does"),
        )
    return relations[text]


def _in_view(
    spark: SparkSession,
    resolved: ResolvedProject,
    warehouse: Warehouse,
    name: str,
    relation: Relation,
    given: pa.Table,
    at: Moment | None,
) -> DerivedRows:
    """Find forward what may derive from the rows, then trace it and see what does."""
    view, run = resolved.views[name].view, partial(run_stamped, spark)
    refuse_outdated(warehouse.view(name), view)
    tick = shown_tick(warehouse, name, warehouse.resolve_at(name, at))
    plain = without_lineage(view)
    needed = {*plain.relations[relation.name], *given.column_names}
    columns = tuple(column for column in relation.column_names if column in needed)
    wanted = {**plain.relations, relation.name: columns}
    with TickReader(spark=spark, resolved=resolved, warehouse=warehouse, view=view, tick=tick) as reader:
        marked = _marked(reader, relation, columns, given, run)
        possible = may_derive(plain, SegmentRows(plain, reader, run, wanted), relation.name, marked)
        entries = warehouse.view_entries(spark, name, tick)
        selected = select_rows(_among(entries, to_dataframe(spark, possible)), None, name, resolved.views[name].schema)
        traced = trace(view, selected, reader, run, wanted, reader.cost)
    places = sorted(deriving(traced, selected.num_rows, relation.name, marked, run))
    return DerivedRows(view=name, tick=tick, rows=selected.take(pa.array(places, pa.int64())), of=marked)


def _marked(reader: TickReader, relation: Relation, columns: tuple[str, ...], given: pa.Table, run: Run) -> pa.Table:
    """Return the rows of a relation that have the given values."""
    within = restrict(relation, {one: one for one in given.column_names}, given)
    found = look_up(reader, RowRequest(relation=relation.name, wanted=columns, within=within)).rows.counted
    [place] = quoted([PLACE])
    same = same_values("r", "g", given.column_names)
    text = f"SELECT r.{place} AS {place} FROM found AS r JOIN given AS g ON {same}"
    return found.take(run(text, {"found": numbered(found), "given": given})[PLACE])


def _among(entries: DataFrame, rows: DataFrame) -> DataFrame:
    """Return the entries whose rows are among others."""
    same = reduce(and_, (entries[name].eqNullSafe(rows[name]) for name in quoted(rows.columns)))
    return entries.join(rows, same, "left_semi")
