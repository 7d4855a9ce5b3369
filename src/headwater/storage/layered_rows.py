"""The rows of a table at one tick, and the changes since, in layers that are looked up alike.

    base   the rows of a checkpoint, in layers of a bounded size
    runs   netted changes since, each more than twice as large as the next, in layers too
    tail   the newest changes, as they came

Layers are held in memory as long as there is room, and else mapped from files (`mapped_rows`): a table takes no more
memory however large it is, and a lookup costs as much as what it finds. It asks every layer and returns what it finds,
signed, not netted. A change is moved into a larger run a few times (the logarithm of their number), so that a lookup
meets few runs however many batches there were.

The rows of a run lie in the order of their hashes. So runs are merged as sorted files are, a piece at a time, and equal
rows meet. Runs of `SETTLED_ROWS` are merged no more, so that no batch waits for that for long: from then on there is
one more each time that number of changes has come, until the table is read again from what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headwater.deltas.indexed_rows import IndexedRows, is_among
from headwater.deltas.key_hashes import Words, key_hashes
from headwater.deltas.on_arrow import summed_up
from headwater.model.relation import COUNT
from headwater.storage.mapped_rows import MappedFolder, is_mapped, let_go

TAIL_ROWS = 4_096
"""Up to this many of the newest changes are looked at one by one. They are always held: a small buffer."""
LAYER_ROWS = 524_288
"""The rows of a layer: its index is made in memory."""
PART_ROWS = 65_536
"""The rows that are moved at a time: a small buffer, whatever is merged."""
SETTLED_ROWS = 4_194_304
_GROWTH = 2

_Run = list[IndexedRows]


@dataclass(slots=True, kw_only=True)
class LayeredRows:
    """Rows with `_count`. Without a `folder` all of them are held, as part of what a batch computes with."""

    schema: pa.Schema
    folder: MappedFolder | None = None
    tail_rows: int = TAIL_ROWS
    _base: list[IndexedRows] = field(default_factory=list)
    _runs: list[_Run] = field(default_factory=list)
    _tail: list[pa.Table] = field(default_factory=list)

    def fill(self, parts: Iterable[pa.Table]) -> None:
        """Take the rows of the base, part by part."""
        self._base += self._placed(parts)

    @property
    def base_count(self) -> int:
        """How many entries the base has."""
        return _row_count(self._base)

    @property
    def change_count(self) -> int:
        """How many entries are laid over the base."""
        return sum(map(_row_count, self._runs)) + int(sum(part.num_rows for part in self._tail))

    @property
    def row_count(self) -> int:
        """How many entries there are, netted or not."""
        return self.base_count + self.change_count

    @property
    def is_held(self) -> bool:
        """Whether all rows of the base are in memory."""
        return not any(map(is_mapped, self._base))

    def _layers(self) -> Iterator[IndexedRows]:
        yield from self._base
        for run in self._runs:
            yield from run

    def parts(self) -> Iterator[pa.Table]:
        """Yield all entries, in tables of bounded size."""
        for layer in self._layers():
            yield from _pieces(layer.table)
        yield from self._tail

    def base(self) -> pa.Table:
        """Return the entries of the base as one table. Those that are mapped stay so."""
        return pa.concat_tables([self.schema.empty_table(), *(layer.table for layer in self._base)])

    def changes(self) -> Sequence[pa.Table]:
        """Return the entries that are laid over the base, in parts."""
        return [*(layer.table for run in self._runs for layer in run), *self._tail]

    def entries(self) -> pa.Table:
        """Return all entries as one table. Those that are mapped stay so."""
        return pa.concat_tables([self.schema.empty_table(), *self.parts()])

    def matching(self, columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the entries whose columns hold one of the keys."""
        found = [layer.matching(columns, keys) for layer in self._layers()]
        return pa.concat_tables([self.schema.empty_table(), *found, self._newest(columns, keys)])

    def count_matching(self, columns: tuple[str, ...], keys: pa.Table) -> int:
        """Return how many entries have one of the keys, or slightly more. None is looked at but the newest."""
        found = sum(layer.count_matching(columns, keys) for layer in self._layers())
        return found + int(self._newest(columns, keys).num_rows)

    def _newest(self, columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        newest = pa.concat_tables([self.schema.empty_table(), *self._tail])
        return newest.filter(is_among(newest, columns, keys)) if newest.num_rows else newest

    def add(self, changes: pa.Table) -> None:
        """Lay signed entries over the others."""
        for part in _pieces(changes.select(self.schema.names).cast(self.schema)):
            self._tail.append(part)
            if sum(one.num_rows for one in self._tail) >= self.tail_rows:
                self._make_run()

    def _make_run(self) -> None:
        """Put the tail into a run of its own, with the runs before that are not large beside it."""
        newest, self._tail = _in_hash_order(summed_up(pa.concat_tables(self._tail))), []
        merged: list[_Run] = []
        count = newest.num_rows
        while self._runs and _row_count(self._runs[-1]) <= min(_GROWTH * count, SETTLED_ROWS):
            merged.append(self._runs.pop())
            count += _row_count(merged[-1])
        streams = [(piece for layer in run for piece in _pieces(layer.table)) for run in merged]
        run = self._placed(_merged([*streams, iter([newest])]) if merged else [newest])
        if run:
            self._runs.append(run)
        if self.folder is not None:
            for layer in (layer for old in merged for layer in old):
                let_go(layer)

    def indexed(self) -> tuple[tuple[str, ...], ...]:
        """Return the lists of columns by which the base has been looked up."""
        return self._base[0].indexed if self._base else ()

    def make_indexes(self, columns: Iterable[tuple[str, ...]]) -> None:
        """Make the indexes of the base for lists of columns now."""
        wanted = tuple(columns)
        for layer in self._base:
            layer.make_indexes(wanted)

    def release(self) -> None:
        """Give memory back, and delete what is mapped."""
        if self.folder is not None:
            for layer in self._layers():
                let_go(layer)
            self.folder.delete()

    def _placed(self, parts: Iterable[pa.Table]) -> list[IndexedRows]:
        """Return rows in layers, each where it has room."""
        rest = (part for part in parts if part.num_rows)
        if self.folder is None:
            held = [*rest]
            return [IndexedRows(pa.concat_tables(held))] if held else []
        placed: list[IndexedRows] = []
        try:
            placed.extend(self.folder.place(self.schema, _upto_full(first, rest)) for first in rest)
        except BaseException:
            for layer in placed:
                let_go(layer)
            raise
        return placed


def _row_count(layers: Iterable[IndexedRows]) -> int:
    return int(sum(layer.table.num_rows for layer in layers))


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    for batch in rows.to_batches(max_chunksize=PART_ROWS):
        if batch.num_rows:
            yield pa.Table.from_batches([batch], rows.schema)


def _upto_full(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield tables until they are as many rows as a layer has."""
    yield first
    count = first.num_rows
    while count < LAYER_ROWS and (part := next(rest, None)) is not None:
        yield part
        count += part.num_rows


def _hashes(rows: pa.Table) -> Words:
    return key_hashes([rows[name] for name in rows.column_names if name != COUNT])


def _in_hash_order(rows: pa.Table) -> pa.Table:
    return rows.take(pa.array(np.argsort(_hashes(rows), kind="stable")))


def _merged(streams: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Yield the netted rows of streams that lie in the order of hashes, in that order. One piece of each is held."""
    begun = [(piece, _hashes(piece), stream) for stream in streams if (piece := next(stream, None)) is not None]
    while begun:
        end = min(hashes[-1] for _, hashes, _ in begun)
        ready: list[pa.Table] = []
        going: list[tuple[pa.Table, Words, Iterator[pa.Table]]] = []
        for piece, hashes, stream in begun:
            count = int(np.searchsorted(hashes, end, side="right"))
            ready.append(piece.slice(0, count))
            if count < len(hashes):
                going.append((piece.slice(count), hashes[count:], stream))
            elif (following := next(stream, None)) is not None:
                going.append((following, _hashes(following), stream))
        begun = going
        yield _in_hash_order(summed_up(pa.concat_tables(ready)))
