"""The rows of a table at one tick, and the changes since, in layers that are looked up alike.

    base   the rows of a checkpoint, in parts
    runs   netted changes since, each more than twice as large as the next
    tail   the newest changes, as they came

Each part of base and runs is held in memory as long as all of them have room there, and else mapped from a file
(`mapped_rows`): a table takes no more memory however large it is, and a lookup costs as much as what it finds. It asks
every layer and returns what it finds, signed, not netted. A change is moved into a larger run a few times (the
logarithm of their number), so that a lookup meets few runs however many batches there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.deltas.indexed_rows import IndexedRows, is_among
from headwater.deltas.on_arrow import summed_up
from headwater.storage.mapped_rows import MappedFolder, mapped_folder

TAIL_ROWS = 4_096
"""Up to this many of the newest changes are looked at one by one."""
_GROWTH = 2


@dataclass(slots=True, kw_only=True)
class LayeredRows:
    """Rows with `_count`. Without a `folder` all of them are held in memory."""

    schema: pa.Schema
    folder: MappedFolder | None = None
    held_bytes_limit: int = 0
    tail_rows: int = TAIL_ROWS
    _base: list[IndexedRows] = field(default_factory=list)
    _runs: list[IndexedRows] = field(default_factory=list)
    _tail: list[pa.Table] = field(default_factory=list)

    def fill(self, parts: Iterable[pa.Table]) -> None:
        """Take the rows of the base, part by part."""
        for part in parts:
            if part.num_rows:
                self._base.append(self._placed(part))

    @property
    def base_count(self) -> int:
        """How many entries the base has."""
        return int(sum(layer.table.num_rows for layer in self._base))

    @property
    def change_count(self) -> int:
        """How many entries are laid over the base."""
        return int(sum(part.num_rows for part in self.changes()))

    @property
    def row_count(self) -> int:
        """How many entries there are, netted or not."""
        return self.base_count + self.change_count

    @property
    def held_bytes(self) -> int:
        """How much memory of this process the rows take. Mapped rows take none."""
        held = [layer.table.nbytes for layer in self._layers() if mapped_folder(layer) is None]
        return int(sum(held) + sum(part.nbytes for part in self._tail))

    @property
    def is_held(self) -> bool:
        """Whether all rows of the base are in memory."""
        return all(mapped_folder(layer) is None for layer in self._base)

    def _layers(self) -> Iterator[IndexedRows]:
        yield from self._base
        yield from self._runs

    def base(self) -> pa.Table:
        """Return the entries of the base."""
        return pa.concat_tables([self.schema.empty_table(), *(layer.table for layer in self._base)])

    def changes(self) -> Sequence[pa.Table]:
        """Return the entries that are laid over the base, in parts."""
        return [*(run.table for run in self._runs), *self._tail]

    def entries(self) -> pa.Table:
        """Return all entries."""
        return pa.concat_tables([self.base(), *self.changes()])

    def matching(self, columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the entries whose columns hold one of the keys."""
        found = [layer.matching(columns, keys) for layer in self._layers()]
        if self._tail:
            newest = pa.concat_tables(self._tail)
            found.append(newest.filter(is_among(newest, columns, keys)))
        return pa.concat_tables([self.schema.empty_table(), *found])

    def count_matching(self, columns: tuple[str, ...], keys: pa.Table) -> int:
        """Return how many entries have one of the keys at most, without reading any."""
        found = sum(layer.count_matching(columns, keys) for layer in self._layers())
        return int(found + sum(part.num_rows for part in self._tail))

    def add(self, changes: pa.Table) -> None:
        """Lay signed entries over the others."""
        if changes.num_rows:
            self._tail.append(changes.select(self.schema.names).cast(self.schema))
        if sum(part.num_rows for part in self._tail) < self.tail_rows:
            return
        run, self._tail = summed_up(pa.concat_tables(self._tail)), []
        while self._runs and self._runs[-1].table.num_rows <= _GROWTH * run.num_rows:
            run = summed_up(pa.concat_tables([self._runs.pop().table, run]))
        if run.num_rows:
            self._runs.append(self._placed(run))
        if self.folder is not None:
            self.folder.keep_only(self._layers())

    def indexed(self) -> tuple[tuple[str, ...], ...]:
        """Return the lists of columns by which the base has been looked up."""
        return self._base[0].indexed if self._base else ()

    def make_indexes(self, columns: Iterable[tuple[str, ...]]) -> None:
        """Make the indexes of the base for lists of columns now."""
        wanted = tuple(columns)
        for layer in self._base:
            layer.make_indexes(wanted)

    def release(self) -> None:
        """Delete what is mapped."""
        if self.folder is not None:
            self.folder.delete()

    def _placed(self, rows: pa.Table) -> IndexedRows:
        if self.folder is None or self.held_bytes + rows.nbytes <= self.held_bytes_limit:
            return IndexedRows(rows.combine_chunks())
        return self.folder.write(rows)
