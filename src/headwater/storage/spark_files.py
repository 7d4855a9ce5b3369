"""Data files between Spark and Delta tables, without a Delta jar: Delta says which files, Spark reads and writes them.

Big results never pass through the driver: executors write Parquet below the table's folder, into a folder of its own
for each write, and the commit then registers the files. A folder that was never registered belongs to nobody and is
removed by housekeeping once it is old.

Files on this machine, or on a folder that all machines share, are read and written by Spark itself; those on an object
store by tasks through Arrow (`task_files`), unless the project names a scheme by which its Spark reads them (`s3a`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from headwater.deltas.on_spark import quoted, to_arrow
from headwater.storage.data_file import DataFile, describe
from headwater.storage.object_store import is_remote, options_of, spark_address, store_at
from headwater.storage.storage_errors import refuse_empty, stored
from headwater.storage.task_files import WRITTEN, FilesToRead, FilesToWrite, read_written

ROWS_PER_FILE = 100_000
"""A file of rows that lie in order has at most this many: the fewer, the less is read beside what is sought."""
ROWS_PER_GROUP = 2048
_UNORDERED_ROWS_PER_GROUP = 131_072
_NO_LIMIT = 1 << 62
_ROWS_PER_GROUP = "parquet.block.row.count.limit"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_PARTITIONS = "spark.sql.shuffle.partitions"


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the Spark types of Arrow columns. A timestamp without a zone stays one."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def read_files(spark: SparkSession, files: Sequence[str], schema: pa.Schema) -> DataFrame:
    """Return the rows of data files with exactly these columns. Nothing is inferred and no file is opened yet."""
    if not files:
        return spark.createDataFrame([], spark_schema(schema))
    refuse_empty(files)
    if is_remote(files[0]) and spark_address(files[0]) is None:
        reading = FilesToRead(files=tuple(files), schema=schema, options=options_of(files[0]))
        tasks = min(len(files), int(spark.conf.get(_PARTITIONS) or 1))
        return spark.range(0, len(files), 1, tasks).mapInArrow(reading.rows, spark_schema(schema))
    return spark.read.schema(spark_schema(schema)).parquet(*(spark_address(file) or file for file in files))


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
        frame = frame.repartitionByRange(*columns).sortWithinPartitions(*columns)
    if is_remote(root):
        return _written_by_tasks(frame, root, folder, order, (*order, *bounded))
    return _written_by_spark(frame, root, folder, order, (*order, *bounded))


def _written_by_tasks(
    frame: DataFrame, root: str, folder: str, order: Sequence[str], bounded: Sequence[str]
) -> list[DataFile]:
    writing = FilesToWrite(
        root=root,
        folder=folder,
        bounded=tuple(bounded),
        rows_per_file=ROWS_PER_FILE if order else _NO_LIMIT,
        rows_per_group=ROWS_PER_GROUP if order else _UNORDERED_ROWS_PER_GROUP,
        options=options_of(root),
    )
    with stored(root):
        said = to_arrow(frame.mapInArrow(writing.written, WRITTEN))
    return read_written(said["written"].to_pylist())


def _written_by_spark(
    frame: DataFrame, root: str, folder: str, order: Sequence[str], bounded: Sequence[str]
) -> list[DataFile]:
    writing = frame.write
    if order:
        writing = writing.option("maxRecordsPerFile", ROWS_PER_FILE).option(_ROWS_PER_GROUP, ROWS_PER_GROUP)
    writing.parquet(f"{root}/{folder}", compression="zstd")
    store = store_at(root)
    names = [name for name in store.names(folder) if name.endswith(".parquet")]
    described = [describe(root, f"{folder}/{name}", bounded) for name in names]
    filled = [file for file in described if file.row_count]
    if filled:
        store.sync(*(file.path for file in filled))
    return filled
