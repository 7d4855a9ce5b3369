"""Rows in memory-mapped files of this machine: looked up without being held, so that the page cache is the cache.

    rows (Arrow, one piece)  +  indexes (hashes, places)  ──►  files  ──►  mapped, a page is read when it is needed

Mapped files belong to one process, which makes them from what the warehouse holds: nothing is lost with them, and none
is ever used again after a restart.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from headwater.deltas.indexed_rows import IndexedRows, Numbers
from headwater.storage.storage_errors import stored

_FOLDER = "mapped"


@dataclass(frozen=True, slots=True)
class MappedFolder:
    """The folder of one reader's mapped rows."""

    path: Path

    @classmethod
    def below(cls, table: str) -> Self:
        """Return a new folder below that of a table."""
        return cls(Path(table) / _FOLDER / str(uuid.uuid4()))

    def write(self, rows: pa.Table) -> IndexedRows:
        """Return rows mapped from a new file."""
        folder = self.path / str(uuid.uuid4())
        file = folder / "rows.arrow"
        with stored(str(file)):
            folder.mkdir(parents=True)
            with pa.OSFile(str(file), "wb") as stream, pa.ipc.new_file(stream, rows.schema) as writer:
                writer.write_table(rows.combine_chunks())
            return IndexedRows(pa.ipc.open_file(pa.memory_map(str(file))).read_all(), _InFolder(folder))

    def delete(self) -> None:
        """Delete all files. What is still mapped stays readable."""
        shutil.rmtree(self.path, ignore_errors=True)

    def keep_only(self, used: Iterable[IndexedRows]) -> None:
        """Delete the files that none of these rows uses. What is still mapped stays readable."""
        names = {folder for rows in used if (folder := mapped_folder(rows)) is not None}
        for folder in self.path.glob("*"):
            if folder not in names:
                shutil.rmtree(folder, ignore_errors=True)


def clear_mapped(warehouse: str) -> None:
    """Delete what earlier processes mapped. Only the process that maintains a warehouse does so."""
    for folder in Path(warehouse).glob(f"*/*/*/{_FOLDER}"):
        shutil.rmtree(folder, ignore_errors=True)


def mapped_folder(rows: IndexedRows) -> Path | None:
    """Return where rows are mapped from, or None if they are held in memory."""
    return rows.keep.folder if isinstance(rows.keep, _InFolder) else None


@dataclass(frozen=True, slots=True)
class _InFolder:
    """Keeps the numbers of an index in a file, and returns them mapped."""

    folder: Path

    def __call__(self, name: str, numbers: Numbers) -> Numbers:
        file = self.folder / f"{name}-{uuid.uuid4()}.npy"  # two threads may make the same index
        with stored(str(file)):
            np.save(file, numbers)
            mapped: Numbers = np.load(file, mmap_mode="r")
        return mapped
