"""Rows in memory-mapped files of this machine: looked up without being held, so that the page cache is the cache.

    a data file of a table (Parquet)  ──►  its copy (Arrow, one piece)  +  indexes (hashes, places)   mapped, not read

Copies can be made again at any time from what the warehouse holds, and belong to one machine. A data file never
changes once it has a name, so its copy is right for as long as it is there. A copy is forced to disk before it gets its
name: one that exists is whole.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headwater.deltas.indexed_rows import IndexedRows, Numbers
from headwater.storage.data_file import place
from headwater.storage.storage_errors import stored

_COPY = "rows.arrow"


@dataclass(frozen=True, slots=True)
class MappedFolder:
    """The folder of one table's copies."""

    path: Path

    def copy_of(self, file: str, schema: pa.Schema) -> IndexedRows:
        """Return the rows of a data file by its copy, which is made if it is not there."""
        columns = f"{file} {schema}"
        folder = self.path / hashlib.sha256(columns.encode()).hexdigest()[:24]
        if not (folder / _COPY).exists():
            system, base = place(file)
            with stored(file):
                rows = pq.read_table(base, columns=schema.names, filesystem=system, partitioning=None).cast(schema)
            _write(folder, rows)
        return _opened(folder)

    def write(self, rows: pa.Table) -> IndexedRows:
        """Return rows by a new file."""
        folder = self.path / f"run-{uuid.uuid4()}"
        _write(folder, rows)
        return _opened(folder)

    def keep_only(self, used: Iterable[IndexedRows]) -> None:
        """Delete the copies that none of these rows uses; what is still mapped stays readable."""
        names = {folder for rows in used if (folder := mapped_folder(rows)) is not None}
        for folder in self.path.glob("*"):
            if folder not in names:
                for file in folder.glob("*"):
                    file.unlink()
                folder.rmdir()


def mapped_folder(rows: IndexedRows) -> Path | None:
    """Return where rows are mapped from; None if they are held in memory."""
    return rows.keep.folder if isinstance(rows.keep, _InFolder) else None


@dataclass(frozen=True, slots=True)
class _InFolder:
    """Keeps the numbers of an index in a file, and returns them mapped."""

    folder: Path

    def __call__(self, name: str, numbers: Numbers) -> Numbers:
        file = self.folder / f"{name}.npy"
        draft = self.folder / f"{uuid.uuid4()}.draft"
        with draft.open("wb") as stream:
            np.save(stream, numbers)
            _force(stream.fileno())
        draft.replace(file)
        mapped: Numbers = np.load(file, mmap_mode="r")
        return mapped


def _write(folder: Path, rows: pa.Table) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{uuid.uuid4()}.draft"
    with stored(str(draft)), draft.open("wb") as stream:
        with pa.ipc.new_file(stream, rows.schema) as writer:
            writer.write_table(rows.combine_chunks())
        _force(stream.fileno())
    draft.replace(folder / _COPY)


def _opened(folder: Path) -> IndexedRows:
    with stored(str(folder)):
        table = pa.ipc.open_file(pa.memory_map(str(folder / _COPY))).read_all()
    return IndexedRows(table, _InFolder(folder))


def _force(descriptor: int) -> None:
    os.fsync(descriptor)
