"""The rows of a table at one tick, and the changes since, in layers that are looked up alike.

    base   the rows of a checkpoint, file by file                                    mapped
    runs   netted changes since, each more than twice as large as the next           mapped above a size, else in memory
    tail   the newest changes, as they came                                          in memory

A lookup asks every layer and returns what it finds, signed, not netted. A change is moved into a larger run a few times
(the logarithm of their number), so that a lookup meets few runs however many batches there were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.deltas.indexed_rows import IndexedRows, is_among
from headwater.deltas.on_arrow import summed_up
from headwater.storage.mapped_rows import MappedFolder, mapped_folder

TAIL_ROWS = 4_096
"""So many of the newest changes are looked at one by one."""
MAPPED_BYTES = 4 << 20
"""A run of more bytes is mapped instead of held."""
_GROWTH = 2


@dataclass(slots=True, kw_only=True)
class LayeredRows:
    """Rows with `_count`; `folder` is where large runs are mapped from, None holds them all in memory."""

    base: tuple[IndexedRows, ...]
    folder: MappedFolder | None = None
    tail_rows: int = TAIL_ROWS
    mapped_bytes: int = MAPPED_BYTES
    _runs: list[IndexedRows] = field(default_factory=list)
    _tail: list[pa.Table] = field(default_factory=list)

    @property
    def schema(self) -> pa.Schema:
        """The columns, with `_count`."""
        return self.base[0].table.schema

    @property
    def row_count(self) -> int:
        """How many entries there are, netted or not."""
        return int(sum(part.num_rows for part in self._parts()))

    @property
    def change_count(self) -> int:
        """How many entries are laid over the base."""
        return self.row_count - int(sum(layer.table.num_rows for layer in self.base))

    @property
    def held_bytes(self) -> int:
        """How much memory of this process they take; mapped rows take none."""
        held = [layer.table.nbytes for layer in (*self.base, *self._runs) if mapped_folder(layer) is None]
        return int(sum(held) + sum(part.nbytes for part in self._tail))

    def _parts(self) -> Iterator[pa.Table]:
        yield from (layer.table for layer in (*self.base, *self._runs))
        yield from self._tail

    def entries(self) -> Sequence[pa.Table]:
        """Return all entries, in parts."""
        return tuple(self._parts())

    def matching(self, columns: tuple[str, ...], keys: pa.Table) -> Sequence[pa.Table]:
        """Return the entries whose columns hold one of the keys, in parts."""
        found = [layer.matching(columns, keys) for layer in (*self.base, *self._runs)]
        if self._tail:
            newest = pa.concat_tables(self._tail)
            found.append(newest.filter(is_among(newest, columns, keys)))
        return [part for part in found if part.num_rows] or [self.schema.empty_table()]

    def add(self, changes: pa.Table) -> None:
        """Lay signed entries over the others."""
        if changes.num_rows:
            self._tail.append(changes)
        if sum(part.num_rows for part in self._tail) >= self.tail_rows:
            run, self._tail = summed_up(pa.concat_tables(self._tail)), []
            while self._runs and self._runs[-1].table.num_rows <= _GROWTH * run.num_rows:
                run = summed_up(pa.concat_tables([self._runs.pop().table, run]))
            if run.num_rows:
                self._runs.append(self._placed(run.combine_chunks()))

    def _placed(self, run: pa.Table) -> IndexedRows:
        if self.folder is None or run.nbytes <= self.mapped_bytes:
            return IndexedRows(run)
        return self.folder.write(run)
