"""Data files of a Delta table: writing one from Arrow, describing one that somebody else wrote.

Every writer writes timestamps as TIMESTAMP_MICROS. An INT96 column (Spark's old default, which turned 9999-12-31 into
1816) is refused when a file is described.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from headwater.model.relation import TICK
from headwater.storage.object_store import store_at
from headwater.storage.sought_values import noted_bounds
from headwater.storage.storage_errors import stored

ROWS_PER_GROUP = 65_536
"""A row group that is written part by part has at most this many rows: a small buffer, whatever is written."""
BYTES_PER_GROUP = 32 * 2**20
"""It has fewer where they are long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A Parquet file below a table's folder, with what a reader needs to skip it."""

    path: str
    byte_count: int
    row_count: int
    lowest: dict[str, int | str]
    highest: dict[str, int | str]
    nulls: dict[str, int]
    """How many rows have NULL, where that is known."""

    def add_action(self, *, data_change: bool) -> AddAction:
        """Return the entry that makes this file part of its table."""
        stats = {"numRecords": self.row_count, "minValues": self.lowest, "maxValues": self.highest}
        stats["nullCount"] = self.nulls
        return AddAction(self.path, self.byte_count, {}, int(time.time() * 1000), data_change, json.dumps(stats))


def place(address: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system by which Arrow reads what is at an address, and the path there."""
    return store_at(address).files()


_BOUNDED = (TICK, "sequence")


def write_rows(root: str, rows: pa.Table, *, bounded: Sequence[str] = _BOUNDED, quick: bool = False) -> DataFile:
    """Write rows to a new data file below a table's folder. It is not part of the table yet.

    A file that is written quickly takes less time and more space: it is meant to be merged soon.
    """
    path = f"part-{uuid.uuid4()}.parquet"
    footers: list[pq.FileMetaData] = []
    with stored(f"{root}/{path}"), store_at(root).writing(path) as sink:
        pq.write_table(
            rows,
            sink,
            compression="lz4" if quick else "zstd",
            use_dictionary=not quick,
            metadata_collector=footers,
        )
        return described(path, footers[0], sink.tell(), bounded)


def write_parts(
    root: str, schema: pa.Schema, parts: Iterable[pa.Table], *, bounded: Sequence[str] = _BOUNDED
) -> DataFile:
    """Write rows of a schema to a new data file, row group by row group: one of these is held, however many rows come.

    It is not part of the table yet.
    """
    path = f"part-{uuid.uuid4()}.parquet"
    with stored(f"{root}/{path}"), store_at(root).writing(path) as sink:
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            waiting: list[pa.Table] = []
            for part in parts:
                waiting.append(part)
                if _fill_a_group(waiting):
                    writer.write_table(pa.concat_tables(waiting), row_group_size=ROWS_PER_GROUP)
                    waiting = []
            if waiting:
                writer.write_table(pa.concat_tables(waiting), row_group_size=ROWS_PER_GROUP)
        return described(path, writer.writer.metadata, sink.tell(), bounded)  # a collector of it hides what went wrong


def _fill_a_group(parts: Sequence[pa.Table]) -> bool:
    """Tell whether rows are as many, or as large, as one row group should be. Columns without values take no space."""
    if sum(part.num_rows for part in parts) >= ROWS_PER_GROUP:
        return True
    columns = (column for part in parts for column in part.columns if column.null_count < part.num_rows)
    return bool(sum(column.nbytes for column in columns) >= BYTES_PER_GROUP)


def describe(root: str, path: str, bounded: Sequence[str] = _BOUNDED) -> DataFile:
    """Read a data file's footer: its size, its row count, and the bounds of some columns, where they are known."""
    store = store_at(root)
    system, base = store.files()
    with stored(f"{root}/{path}"):
        footer = pq.read_metadata(f"{base}/{path}", filesystem=system)
        return described(path, footer, store.size(path) or 0, bounded)


def described(path: str, footer: pq.FileMetaData, byte_count: int, bounded: Sequence[str] = _BOUNDED) -> DataFile:
    """Return what a footer says of a data file."""
    lowest: dict[str, int | str] = {}
    highest: dict[str, int | str] = {}
    nulls: dict[str, int] = {}
    for number in range(footer.num_columns):
        column = footer.schema.column(number)
        assert column.physical_type != "INT96", f"timestamps are TIMESTAMP_MICROS: {column.path} in {path}"
        if column.path not in bounded or footer.num_row_groups == 0:
            continue
        known = [footer.row_group(group).column(number).statistics for group in range(footer.num_row_groups)]
        if all(one is not None and one.has_null_count for one in known):
            nulls[column.path] = sum(one.null_count for one in known)
        bounds = [found for one in known if (found := noted_bounds(one)) is not None]
        if len(bounds) == len(known):
            lowest[column.path] = _written(min(low for low, _ in bounds))
            highest[column.path] = _written(max(high for _, high in bounds))
    return DataFile(
        path=path, byte_count=byte_count, row_count=footer.num_rows, lowest=lowest, highest=highest, nulls=nulls
    )


def _written(bound: int | str | date) -> int | str:
    """Return a bound as Delta's statistics have it."""
    return bound.isoformat() if isinstance(bound, date) else bound


def move_in(root: str, file: str) -> DataFile:
    """Move a data file from elsewhere in the warehouse into a table's folder. It is not part of the table yet."""
    path = f"part-{uuid.uuid4()}.parquet"
    with stored(file, f"{root}/{path}"):
        store_at(root).move_in(file, path)
    return describe(root, path, ())
