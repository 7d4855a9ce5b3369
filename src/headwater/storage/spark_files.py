"""Data files between Spark and Delta tables, without a Delta jar: Delta says which files, Spark reads and writes them.

Big results never pass through the driver: executors write Parquet below the table's folder, into a folder of its own
for each write, and the commit then registers the files. A folder that was never registered belongs to nobody and is
removed by housekeeping once it is old.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.fs as pafs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headwater.deltas.on_spark import quoted
from headwater.storage.data_file import DataFile, describe, place, sync
from headwater.storage.storage_errors import refuse_empty

ROWS_PER_FILE = 100_000
"""A file of rows that lie in order has at most this many: the fewer, the less is read beside what is sought."""
ROWS_PER_GROUP = 2048
_ROWS_PER_GROUP = "parquet.block.row.count.limit"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark types of Arrow columns. A timestamp without a zone stays one."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def read_files(spark: SparkSession, files: Sequence[str], schema: pa.Schema) -> DataFrame:
    """Return the rows of data files with exactly these columns. Nothing is inferred and no file is opened yet."""
    if not files:
        return spark.createDataFrame([], spark_schema(schema))
    refuse_empty(files)
    return spark.read.schema(spark_schema(schema)).parquet(*files)


def write_files(frame: DataFrame, root: str, order: Sequence[str] = (), bounded: Sequence[str] = ()) -> list[DataFile]:
    """Let the executors write a frame below a table's folder. The files are not part of the table yet.

    With an order, rows lie in that of these columns, in many small files whose bounds tell them apart. Of the `bounded`
    columns the bounds are noted too.
    """
    kind = frame.sparkSession.conf.get(_TIMESTAMPS)
    assert kind == "TIMESTAMP_MICROS", f"timestamps are TIMESTAMP_MICROS: {_TIMESTAMPS} is {kind}"
    folder = f"data-{uuid.uuid4()}"
    if order:
        columns = quoted(order)
        ordered = frame.repartitionByRange(*columns).sortWithinPartitions(*columns)
        writing = ordered.write.option("maxRecordsPerFile", ROWS_PER_FILE).option(_ROWS_PER_GROUP, ROWS_PER_GROUP)
        writing.parquet(f"{root}/{folder}", compression="zstd")
    else:
        frame.write.parquet(f"{root}/{folder}", compression="zstd")
    system, base = place(root)
    found = system.get_file_info(pafs.FileSelector(f"{base}/{folder}"))
    names = sorted(info.base_name for info in found if info.base_name.endswith(".parquet"))
    described = [describe(root, f"{folder}/{name}", (*order, *bounded)) for name in names]
    filled = [file for file in described if file.row_count]
    if filled:
        sync(root, *(file.path for file in filled))
    return filled
