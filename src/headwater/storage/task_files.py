"""Data files on an object store, read and written by tasks of Spark through Arrow: pip's Spark knows no such store.

    read    a number of the list of files  ──►  that file's rows
    write   a partition's rows             ──►  what was written, a `DataFile` as JSON for each file

A task gets addresses, and how their store is reached, without secrets: those are in the environment of the executor, or
come with the machine. A file's name is new in every attempt, and only those of the attempt that counts come back, so
a task that is tried again, or runs twice, leaves files that belong to nobody and nothing else.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.storage.data_file import DataFile, described, place
from headwater.storage.merge_files import fitted
from headwater.storage.object_store import reach, store_at
from headwater.storage.storage_errors import stored

_ROWS_PER_BATCH = 65_536
WRITTEN = "written string"
"""The columns of what writing tasks return."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesToRead:
    """Files whose rows are wanted with exactly these columns. What a file lacks is NULL."""

    files: Sequence[str]
    schema: pa.Schema
    options: Mapping[str, str]

    def rows(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files with these numbers."""
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                yield from self._rows_of(self.files[number])

    def _rows_of(self, file: str) -> Iterator[pa.RecordBatch]:
        reach(file, self.options)
        system, path = place(file)
        with stored(file), pq.ParquetFile(path, filesystem=system, pre_buffer=True) as opened:
            held = set(opened.schema_arrow.names)
            columns = [name for name in self.schema.names if name in held]
            for rows in opened.iter_batches(_ROWS_PER_BATCH, columns=columns):
                yield from _whole(pa.Table.from_batches([rows]), self.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesToWrite:
    """The folder below an address that files are written to, and how large they and their row groups become."""

    root: str
    folder: str
    bounded: Sequence[str]
    rows_per_file: int
    rows_per_group: int
    options: Mapping[str, str]

    def written(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows of a partition, and yield what was written."""
        reach(self.root, self.options)
        groups = _groups((batch for batch in batches if batch.num_rows), self.rows_per_group)
        first = next(groups, None)
        while first is not None:
            file, first = self._write(first, groups)
            yield pa.RecordBatch.from_pydict({"written": [json.dumps(asdict(file))]})

    def _write(self, first: pa.Table, following: Iterator[pa.Table]) -> tuple[DataFile, pa.Table | None]:
        """Write row groups to one file until it is full, and return the first that did not go into it."""
        name = f"{self.folder}/part-{uuid.uuid4()}.parquet"
        footers: list[pq.FileMetaData] = []
        group: pa.Table | None = first
        with stored(f"{self.root}/{name}"), store_at(self.root).writing(name) as sink:
            with pq.ParquetWriter(sink, first.schema, compression="zstd", metadata_collector=footers) as writer:
                row_count = 0
                while group is not None and row_count < self.rows_per_file:
                    writer.write_table(group, row_group_size=self.rows_per_group)
                    row_count += group.num_rows
                    group = next(following, None)
            return described(name, footers[0], sink.tell(), self.bounded), group


def read_written(said: Iterable[str]) -> list[DataFile]:
    """Return what writing tasks said that they wrote."""
    return [DataFile(**json.loads(one)) for one in said]


def _whole(rows: pa.Table, schema: pa.Schema) -> list[pa.RecordBatch]:
    """Return rows with all columns of a schema."""
    whole: list[pa.RecordBatch] = fitted(rows, schema).to_batches()
    return whole


def _groups(batches: Iterable[pa.RecordBatch], row_count: int) -> Iterator[pa.Table]:
    """Yield rows in row groups of a size, the last with what is left."""
    waiting: list[pa.RecordBatch] = []
    waiting_count = 0
    for batch in batches:
        waiting.append(batch)
        waiting_count += batch.num_rows
        if waiting_count >= row_count:
            gathered = pa.Table.from_batches(waiting)
            whole_count = waiting_count - waiting_count % row_count
            for start in range(0, whole_count, row_count):
                yield gathered.slice(start, row_count)
            waiting = gathered.slice(whole_count).to_batches()
            waiting_count -= whole_count
    if waiting_count:
        yield pa.Table.from_batches(waiting)
