"""Where rows that are looked up lie: in memory while there is room for them, and else in mapped files of this machine.

    rows (Arrow)  +  indexes (hashes, places)  ──►  files  ──►  mapped, a page is read when it is needed

Mapped rows are looked up without being held, so that the page cache is the cache. They are written piece by piece.
Mapped files belong to one process, which makes them from what the warehouse holds: nothing is lost with them, and none
is ever used again after a restart.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from headwater.deltas.indexed_rows import IndexedRows, Numbers
from headwater.model.memory_budget import Share
from headwater.storage.local_copies import clear_copies, copies_folder
from headwater.storage.storage_errors import stored

_FOLDER = "mapped"


@dataclass(frozen=True, slots=True)
class MappedFolder:
    """The folder of one reader's mapped rows, and the share of memory that it takes from before it maps any."""

    path: Path
    share: Share = field(compare=False)

    @classmethod
    def below(cls, table: str, share: Share) -> Self:
        """Return a new folder for a table, on this machine wherever the table is."""
        return cls(copies_folder(table) / _FOLDER / str(uuid.uuid4()), share)

    def place(self, schema: pa.Schema, parts: Iterable[pa.Table]) -> IndexedRows:
        """Return rows of a schema in memory if there is room for all, and else mapped from a new file."""
        keep = _Kept(self.path / str(uuid.uuid4()), self.share)
        try:
            held: list[pa.Table] = []
            rest = iter(parts)
            for part in rest:
                if not keep.take(part.nbytes):
                    return self._write(schema, chain(_let_go(held, keep), [part], rest), keep)
                held.append(part)
            return IndexedRows(pa.concat_tables([schema.empty_table(), *held]), keep)
        except BaseException:  # a full disk, a file that is gone: who reads parts may try again
            keep.let_go()
            raise

    def _write(self, schema: pa.Schema, parts: Iterable[pa.Table], keep: _Kept) -> IndexedRows:
        file = keep.folder / "rows.arrow"
        with stored(str(file)):
            keep.folder.mkdir(parents=True)
            with pa.OSFile(str(file), "wb") as stream, pa.ipc.new_file(stream, schema) as writer:
                for part in parts:
                    writer.write_table(part)
            keep.is_mapped = True
            keep.note(file)
            return IndexedRows(pa.ipc.open_file(pa.memory_map(str(file))).read_all(), keep)

    def delete(self) -> None:
        """Delete all files. What is still mapped stays readable."""
        shutil.rmtree(self.path, ignore_errors=True)


def clear_mapped(warehouse: str) -> None:
    """Delete what earlier processes mapped. Only the process that maintains a warehouse does so."""
    for folder in copies_folder(warehouse).glob(f"*/*/*/{_FOLDER}"):
        shutil.rmtree(folder, ignore_errors=True)
    clear_copies(warehouse)


def is_mapped(rows: IndexedRows) -> bool:
    """Tell whether rows are mapped from a file."""
    return isinstance(rows.keep, _Kept) and rows.keep.is_mapped


def let_go(rows: IndexedRows) -> None:
    """Give back the memory of placed rows, and delete their files. What somebody still reads stays readable."""
    assert isinstance(rows.keep, _Kept), "the rows were placed"
    rows.keep.let_go()


def _let_go(held: list[pa.Table], keep: _Kept) -> Iterator[pa.Table]:
    """Yield tables that were held, and give their memory back one by one."""
    while held:
        part = held.pop(0)
        yield part
        keep.give_back(part.nbytes)


@dataclass(slots=True, eq=False)
class _Kept:
    """What some rows take: memory of a share, or space in a folder. Called with an index, it puts it in one of both.

    Several threads may make indexes.
    """

    folder: Path
    share: Share
    is_mapped: bool = False
    held_bytes: int = 0
    _mapped_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, byte_count: int) -> bool:
        """Take memory, and tell whether there was room."""
        with self._lock:
            has_room = self.share.take(byte_count)
            self.held_bytes += byte_count if has_room else 0
            return has_room

    def give_back(self, byte_count: int) -> None:
        """Give memory back."""
        with self._lock:
            self.held_bytes -= byte_count
            self.share.give_back(byte_count)

    def note(self, file: Path) -> None:
        """Count a file that is mapped from now on."""
        with self._lock:
            byte_count = file.stat().st_size
            self._mapped_bytes += byte_count
            self.share.note_mapped(byte_count)

    def let_go(self) -> None:
        """Give everything back."""
        self.give_back(self.held_bytes)
        with self._lock:
            self.share.note_mapped(-self._mapped_bytes)
            self._mapped_bytes = 0
        shutil.rmtree(self.folder, ignore_errors=True)

    def __call__(self, name: str, numbers: Numbers) -> Numbers:
        """Return the numbers of an index from where they are then."""
        if not self.is_mapped and self.take(numbers.nbytes):
            return numbers
        file = self.folder / f"{name}-{uuid.uuid4()}.npy"  # two threads may make the same index
        with stored(str(file)):
            self.folder.mkdir(parents=True, exist_ok=True)
            np.save(file, numbers)
            self.note(file)
            mapped: Numbers = np.load(file, mmap_mode="r")
        return mapped
