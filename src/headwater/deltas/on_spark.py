"""Run SQL over Arrow tables on Spark: Arrow in, Arrow out, one job where the data is small.

A batch's tables are small, so the fixed costs of a Spark job are what matters:
- a session of its own for small batches, kept, with one shuffle partition. Inputs of one partition
  leave the planner no reason to exchange anything: hash joins without a broadcast, one stage, one task;
- the text of a query must not change from batch to batch: Spark compiles code for it, literals included, and keeps the
  code by its text. Compiling costs more than running.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

_ONE_TASK_ROWS = 50_000
_numbers = itertools.count()


def to_dataframe(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return an Arrow table as a DataFrame.

    Chunks are combined first: PySpark 4.3 silently drops the rows after an empty chunk.
    """
    return spark.createDataFrame(table.combine_chunks())


def quoted(columns: Iterable[str]) -> list[str]:
    """Return column names as Spark's expressions need them, whatever characters are in them.

    >>> quoted(["id", "a.b", "tick`s"])
    ['`id`', '`a.b`', '`tick``s`']
    """
    return ["`" + column.replace("`", "``") + "`" for column in columns]


def fresh_name(prefix: str) -> str:
    """Return a name for a temporary view that no other thread uses."""
    return f"{prefix}_{next(_numbers)}"


def run_stamped(spark: SparkSession, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Run a query over tables given by the names it uses, and return its rows."""
    small = sum(table.num_rows for table in tables.values()) <= _ONE_TASK_ROWS
    session = _session(spark, small=small)
    try:
        for name, table in tables.items():
            frame = to_dataframe(session, table)
            (frame.coalesce(1).hint("shuffle_hash") if small else frame).createOrReplaceTempView(name)
        return session.sql(sql).toArrow()
    finally:
        for name in tables:
            session.catalog.dropTempView(name)


@cache
def _session(spark: SparkSession, *, small: bool) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", 1 if small else spark.sparkContext.defaultParallelism)
    return session
