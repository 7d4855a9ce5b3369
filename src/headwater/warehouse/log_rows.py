"""A relation's signed rows from the change log as a Spark frame: for reads too large to pass through the driver."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql.types import StructField

from headwater.changelog import ChangeLog
from headwater.changelog.layout import row_schema, shapes, stamped_schema
from headwater.deltas.on_spark import to_dataframe
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, RelationName
from headwater.storage.spark_files import read_files, spark_schema


def spark_rows(
    spark: SparkSession, log: ChangeLog, relation: RelationName, columns: tuple[str, ...], *, after: Tick, upto: Tick
) -> DataFrame:
    """Return a relation's rows with after < tick <= upto: the columns, `_tick`, `_count`, in no particular order."""
    schema = log.schema()
    every = row_schema(schema, relation)
    wanted = pa.schema([every.field(name) for name in columns])
    stored = min(upto, log.durable_tick)
    if stored < upto:
        recent = to_dataframe(spark, log.rows(relation, columns, max(after, stored), upto))
        if after >= stored:
            return recent
        return spark_rows(spark, log, relation, columns, after=after, upto=stored).unionByName(recent)
    files = log.files(after, upto)
    if not files:
        return read_files(spark, [], stamped_schema(wanted))
    places = shapes(schema, relation)
    held = pa.schema([schema.field(TICK), schema.field(COUNT), schema.field("_relation"), *map(schema.field, places)])
    in_range = (F.col(TICK) > after) & (F.col(TICK) <= upto) & (F.col("_relation") == str(relation))
    values = [_newest(schema, places, field).alias(field.name) for field in spark_schema(wanted)]
    return read_files(spark, files, held).where(in_range).select(*values, TICK, COUNT)


def _newest(schema: pa.Schema, places: tuple[str, ...], field: StructField) -> Column:
    """Return a column's value from the struct that the row has, cast to the newest type."""
    having = [place for place in places if schema.field(place).type.get_field_index(field.name) >= 0]
    return F.coalesce(*(F.col(f"`{place}`").getField(field.name).cast(field.dataType) for place in having))
