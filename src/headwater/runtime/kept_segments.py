"""The hidden tables of a view: made when it is born, read into memory when it is maintained."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.on_spark import fresh_name, quoted, to_arrow
from headwater.position import Tick
from headwater.relation import RelationName
from headwater.runtime.segment_reader import SegmentReader
from headwater.views.segments import GroupStep, RecomputeStep, Segment, SegmentedView
from headwater.views.whole import whole_sql
from headwater.warehouse.folders import segment_folder
from headwater.warehouse.kept_table import KeptTable


def kept_segments(view: SegmentedView) -> tuple[Segment, ...]:
    """Return the segments that have a hidden table: the view itself has one that is read."""
    return tuple(segment for segment in view.segments[:-1] if segment.is_kept)


def create_segments(
    spark: SparkSession, view: SegmentedView, folder: str, plain: Mapping[RelationName, DataFrame], tick: Tick
) -> dict[RelationName, KeptTable]:
    """Compute the kept segments of a view at a tick, from plain rows of its relations, and write them."""
    frames = dict(plain)
    names = {name: fresh_name("whole") for name in (*plain, *(segment.name for segment in view.segments))}
    tables: dict[RelationName, KeptTable] = {}
    left = {segment.name for segment in kept_segments(view)}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(names[name])
    try:
        for segment in view.segments:
            if not left:
                break
            frame = spark.sql(whole_sql(segment, names))
            if segment.name in left:
                left.remove(segment.name)
                table = KeptTable.create(
                    segment_folder(folder, segment.name.name), segment.relation.arrow_schema(), tick
                )
                table.checkpoint.write_from_dataframe(frame, tick)
                frame = table.state_dataframe(spark, tick)  # read again what was written, rather than compute it again
                tables[segment.name] = table
            frame.createOrReplaceTempView(names[segment.name])
    finally:
        for registered in names.values():
            spark.catalog.dropTempView(registered)
    return tables


def segment_readers(
    spark: SparkSession,
    view: SegmentedView,
    table: KeptTable,
    segments: Mapping[RelationName, KeptTable],
    tick: Tick,
) -> dict[RelationName, SegmentReader]:
    """Read a view's kept segments into memory, and the view itself where its last step looks at its own rows."""
    tables = dict(segments)
    if isinstance(view.output.step, GroupStep | RecomputeStep):
        tables[view.output.name] = table
    described = {segment.name: segment.relation for segment in view.segments}
    readers = {}
    for name, kept in tables.items():
        rows = to_arrow(kept.state_dataframe(spark, tick).select(*quoted(described[name].column_names)))
        readers[name] = SegmentReader.of_rows(described[name], rows, tick)
    return readers
