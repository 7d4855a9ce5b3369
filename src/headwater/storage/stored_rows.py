"""Write a large bag where it stays: executors write its data files, and what turns out to be little is read back.

frame  ──►  data files below a folder  ──►  a stored bag over these files; a held one, if they have few rows
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.stored_bag import Bag, StoredBag, held
from headwater.model.relation import COUNT, TICK
from headwater.storage.few_rows import read_in_parts
from headwater.storage.object_store import store_at
from headwater.storage.spark_files import read_files, spark_schema, write_files


def write_bag(frame: DataFrame, schema: pa.Schema, root: str, held_rows: int) -> Bag:
    """Return what a frame gives, written below a folder: held if it is no more than some rows, and then in no file."""
    ordered = frame.select(*(f"`{name}`" for name in schema.names)).to(spark_schema(schema))
    files = write_files(ordered, root, bounded=(TICK,))
    paths = tuple(f"{root}/{file.path}" for file in files)
    row_count = sum(file.row_count for file in files)
    if row_count > held_rows:
        return of_files(frame.sparkSession, paths, schema, row_count)
    rows = pa.concat_tables([schema.empty_table(), *read_in_parts(paths, schema)])
    for folder in {path.rpartition("/")[0] for path in paths}:
        store_at(folder).delete()
    return ArrowBag(rows.combine_chunks())


def of_files(spark: SparkSession, paths: tuple[str, ...], schema: pa.Schema, row_count: int) -> StoredBag:
    """Return the bag whose entries some data files hold."""
    return StoredBag(frame=read_files(spark, paths, schema), schema=schema, most=row_count, files=paths)


def count_parts(bag: Bag) -> Iterator[pa.ChunkedArray]:
    """Yield the counts of a bag's entries, part by part."""
    if (stored := bag.stored) is None:
        yield held(bag).table[COUNT]
        return
    for part in read_in_parts(_files(stored), pa.schema([stored.schema.field(COUNT)])):
        yield part[COUNT]


def parts(bag: Bag) -> Iterator[pa.Table]:
    """Yield the entries of a bag in small tables. One that is stored has been written."""
    if (stored := bag.stored) is None:
        yield held(bag).table
        return
    yield from read_in_parts(_files(stored), stored.schema)


def _files(bag: StoredBag) -> tuple[str, ...]:
    assert bag.files is not None, "a stored bag is written before its entries are read here"
    return bag.files
