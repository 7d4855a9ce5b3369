"""Data files of a Delta table: writing one from Arrow, describing one that somebody else wrote.

Every writer writes timestamps as TIMESTAMP_MICROS. An INT96 column (Spark's old default, which turned 9999-12-31 into
1816) is refused when a file is described.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from headwater.model.relation import TICK
from headwater.storage.sought_values import noted_bounds
from headwater.storage.storage_errors import parse_stored, stored

Parsed = TypeVar("Parsed")

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


def place(root: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system that a table's address is on, and the path there."""
    if "://" in root:
        system, path = pafs.FileSystem.from_uri(root)
        return system, str(path)
    return pafs.LocalFileSystem(), str(Path(root).absolute())


_BOUNDED = (TICK, "sequence")


def write_rows(root: str, rows: pa.Table, *, bounded: Sequence[str] = _BOUNDED, quick: bool = False) -> DataFile:
    """Write rows to a new data file below a table's folder. It is not part of the table yet.

    A file that is written quickly takes less time and more space: it is meant to be merged soon.
    """
    system, base = place(root)
    path = f"part-{uuid.uuid4()}.parquet"
    with stored(f"{root}/{path}"):
        system.create_dir(base, recursive=True)
        pq.write_table(
            rows,
            f"{base}/{path}",
            filesystem=system,
            compression="lz4" if quick else "zstd",
            use_dictionary=not quick,
        )
        sync(root, path)
    return describe(root, path, bounded)


def write_parts(
    root: str, schema: pa.Schema, parts: Iterable[pa.Table], *, bounded: Sequence[str] = _BOUNDED
) -> DataFile:
    """Write rows of a schema to a new data file, row group by row group: one of these is held, however many rows come.

    It is not part of the table yet.
    """
    system, base = place(root)
    path = f"part-{uuid.uuid4()}.parquet"
    with stored(f"{root}/{path}"):
        with pq.ParquetWriter(f"{base}/{path}", schema, filesystem=system, compression="zstd") as writer:
            waiting: list[pa.Table] = []
            for part in parts:
                waiting.append(part)
                if _fill_a_group(waiting):
                    writer.write_table(pa.concat_tables(waiting), row_group_size=ROWS_PER_GROUP)
                    waiting = []
            if waiting:
                writer.write_table(pa.concat_tables(waiting), row_group_size=ROWS_PER_GROUP)
        sync(root, path)
    return describe(root, path, bounded)


def _fill_a_group(parts: Sequence[pa.Table]) -> bool:
    """Tell whether rows are as many, or as large, as one row group should be. Columns without values take no space."""
    if sum(part.num_rows for part in parts) >= ROWS_PER_GROUP:
        return True
    columns = (column for part in parts for column in part.columns if column.null_count < part.num_rows)
    return bool(sum(column.nbytes for column in columns) >= BYTES_PER_GROUP)


def describe(root: str, path: str, bounded: Sequence[str] = _BOUNDED) -> DataFile:
    """Read a data file's footer: its size, its row count, and the bounds of some columns, where they are known."""
    system, base = place(root)
    file = f"{base}/{path}"
    with stored(f"{root}/{path}"):
        footer = pq.read_metadata(file, filesystem=system)
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
    size = system.get_file_info(file).size
    rows = footer.num_rows
    return DataFile(path=path, byte_count=size, row_count=rows, lowest=lowest, highest=highest, nulls=nulls)


def _written(bound: int | str | date) -> int | str:
    """Return a bound as Delta's statistics have it."""
    return bound.isoformat() if isinstance(bound, date) else bound


def move_in(root: str, file: str) -> DataFile:
    """Move a data file from elsewhere in the warehouse into a table's folder. It is not part of the table yet."""
    system, base = place(root)
    path = f"part-{uuid.uuid4()}.parquet"
    with stored(file, f"{root}/{path}"):
        system.move(place(file)[1], f"{base}/{path}")
        sync(root, path)
    return describe(root, path, ())


def read_text(root: str, path: str) -> str | None:
    """Return a small file's text, or None if it is not there."""
    system, base = place(root)
    with stored(f"{root}/{path}"):
        try:
            with system.open_input_stream(f"{base}/{path}") as stream:
                return str(stream.read().decode(errors="replace"))
        except (FileNotFoundError, NotADirectoryError):
            return None


def read_note(root: str, path: str, parse: Callable[[Any], Parsed]) -> Parsed | None:
    """Return what a small JSON file means, or None if it is not there. One that means nothing is refused by name."""
    text = read_text(root, path)
    return None if text is None else parse_stored(f"{root}/{path}", text, parse)


def sync(root: str, *paths: str) -> None:
    """Force files and the folders that name them to disk. Object stores do that before they answer."""
    if "://" in root:
        return
    files = [Path(root, path) for path in paths]
    for name in [*files, *sorted({file.parent for file in files})]:
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_text(root: str, path: str, text: str) -> None:
    """Replace a small file as a whole: a reader sees the old text or the new one, never a part."""
    system, base = place(root)
    file = f"{base}/{path}"
    draft = f"{file}.{uuid.uuid4()}"
    with stored(f"{root}/{path}"):
        system.create_dir(str(Path(file).parent), recursive=True)
        with system.open_output_stream(draft) as stream:
            stream.write(text.encode())
        system.move(draft, file)


def delete_folder(root: str) -> None:
    """Delete a folder and everything in it. One that is not there is fine."""
    system, base = place(root)
    if system.get_file_info(base).type == pafs.FileType.Directory:
        system.delete_dir(base)
