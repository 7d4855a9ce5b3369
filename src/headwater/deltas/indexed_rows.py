"""Rows that are looked up by values of their columns, by binary search in an index of hashes and not by a scan.

    index of some columns: the hashes of their values in order, and the places of their rows  ──►  places  ──►  compared

An index is made when rows are first looked up by its columns, and costs as much as hashing and sorting them: 12 bytes
for a row. NULL is a value like any other. Where table and indexes are memory-mapped files (`storage/mapped_rows`), a
lookup reads the pages that it needs and holds nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.key_hashes import Words, comparable, key_hashes

Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[Any]]
KeepNumbers: TypeAlias = Callable[[str, Numbers], Numbers]
"""Where an index is kept: takes its name and its numbers, and returns them from where they are then."""


class _Index(NamedTuple):
    """The hashes of the rows in order, and the places of the rows."""

    hashes: Words
    places: Numbers


def _in_memory(name: str, numbers: Numbers) -> Numbers:
    del name
    return numbers


@dataclass(slots=True)
class IndexedRows:
    """Rows that do not change."""

    table: pa.Table
    keep: KeepNumbers = _in_memory
    _indexes: dict[tuple[str, ...], _Index] = field(default_factory=dict)
    _batches: list[pa.RecordBatch] = field(init=False)
    _starts: Numbers = field(init=False)
    _making: threading.Lock = field(default_factory=threading.Lock)
    """Two views may be the first to look rows up by the same columns."""

    def __post_init__(self) -> None:
        """Look where the pieces of the table begin."""
        self._batches = self.table.to_batches()
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])

    def matching(self, columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the rows whose `columns` hold one of the keys.

        >>> rows = IndexedRows(pa.table({"a": [3, 1, None, 3], "b": ["x", "y", "z", "w"]}))
        >>> sorted(rows.matching(("a",), pa.table({"a": [3, None]}))["b"].to_pylist())
        ['w', 'x', 'z']
        >>> rows.matching(("b", "a"), pa.table({"a": [3, 1], "b": ["w", "x"]})).to_pylist()
        [{'a': 3, 'b': 'w'}]
        """
        index, first, counts = self._sought(columns, keys)
        skipped = np.repeat(first - (np.cumsum(counts) - counts), counts)
        places = np.sort(index.places[skipped + np.arange(len(skipped))])  # rows are read in the order they lie in
        found = self._taken(places)
        return found.filter(is_among(found, columns, keys))

    def count_matching(self, columns: tuple[str, ...], keys: pa.Table) -> int:
        """Return how many rows `matching` looks at. It finds no more than these, and hardly ever fewer.

        >>> IndexedRows(pa.table({"a": [3, 1, 3]})).count_matching(("a",), pa.table({"a": [3, 7]}))
        2
        """
        _, _, counts = self._sought(columns, keys)
        return int(counts.sum())

    @property
    def indexed(self) -> tuple[tuple[str, ...], ...]:
        """The lists of columns that have an index."""
        return tuple(self._indexes)

    def make_indexes(self, columns: Iterable[tuple[str, ...]]) -> None:
        """Make the indexes of some lists of columns now."""
        for names in columns:
            self._index(names)

    def _sought(self, columns: tuple[str, ...], keys: pa.Table) -> tuple[_Index, Numbers, Numbers]:
        """Return the index of some columns, where in it the entries of keys begin, and how many each key has."""
        names = tuple(sorted(columns))
        typed = [keys[name].cast(self.table.schema.field(name).type) for name in names]
        index, sought = self._index(names), np.unique(key_hashes(typed))
        first = np.searchsorted(index.hashes, sought, side="left")
        return index, first, np.searchsorted(index.hashes, sought, side="right") - first

    def _taken(self, places: Numbers) -> pa.Table:
        """Return the rows at some places, which rise. Pieces are read one by one: Arrow would join them all first."""
        ends = np.searchsorted(places, self._starts)
        taken = [
            batch.take(pa.array(places[first:end] - start))
            for batch, start, first, end in zip(self._batches, self._starts, ends, ends[1:], strict=False)
            if first < end
        ]
        return pa.Table.from_batches(taken, self.table.schema)

    def _index(self, names: tuple[str, ...]) -> _Index:
        known = self._indexes.get(names)
        if known is not None:
            return known
        with self._making:
            return self._made(names)

    def _made(self, names: tuple[str, ...]) -> _Index:
        if names not in self._indexes:
            hashes = key_hashes([self.table[name] for name in names])
            places = np.argsort(hashes)
            small = np.uint32 if len(places) <= np.iinfo(np.uint32).max else np.uint64
            name = "-".join(str(self.table.schema.get_field_index(one)) for one in names)
            self._indexes[names] = _Index(
                self.keep(f"{name}-hashes", hashes[places]), self.keep(f"{name}-places", places.astype(small))
            )
        return self._indexes[names]


def is_among(rows: pa.Table, columns: tuple[str, ...], keys: pa.Table) -> pa.ChunkedArray:
    """Tell for each row whether it holds one of the keys. NULL is NULL.

    Column by column what a row holds so far becomes the number of a key that begins so, none if no key does.

    >>> rows = pa.table({"a": [[1], [1, None], None]})
    >>> is_among(rows, ("a",), pa.table({"a": pa.array([None, [1, None]], pa.list_(pa.int64()))})).to_pylist()
    [False, True, True]
    """
    typed = [comparable(keys[name].cast(rows.schema.field(name).type)) for name in columns]
    if len(columns) == 1:
        return pc.is_in(comparable(rows[columns[0]]), value_set=typed[0].combine_chunks())
    held, sought = pa.scalar(0, pa.int64()), pa.scalar(0, pa.int64())
    for name, values in zip(columns, typed, strict=True):
        known, own = values.unique(), comparable(rows[name])
        held, sought = (_joined(so_far, column, known) for so_far, column in ((held, own), (sought, values)))
        begun = sought.unique()
        held, sought = (pc.cast(pc.index_in(numbers, value_set=begun), pa.int64()) for numbers in (held, sought))
    return pc.is_valid(held)


def _joined(so_far: pa.Scalar | pa.ChunkedArray, column: pa.ChunkedArray, known: pa.Array) -> pa.ChunkedArray:
    """Return the numbers with the place of each value among the known ones. None where it is not there."""
    places = pc.cast(pc.index_in(column, value_set=known), pa.int64())
    return pc.add(pc.multiply(so_far, pa.scalar(len(known), pa.int64())), places)
