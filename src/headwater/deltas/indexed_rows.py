"""Rows that are looked up by values of their columns, by binary search in an index of hashes and not by a scan.

    index of some columns: the hashes of their values in order, and the places of their rows  ──►  places  ──►  compared

An index is made when rows are first looked up by its columns, and costs as much as hashing and sorting them: 12 bytes
for a row. NULL is a value like any other. Where table and indexes are memory-mapped files (`storage/mapped_rows`), a
lookup reads the pages that it needs and holds nothing.
"""

from __future__ import annotations

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

    def matching(self, columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the rows whose `columns` hold one of the keys.

        >>> rows = IndexedRows(pa.table({"a": [3, 1, None, 3], "b": ["x", "y", "z", "w"]}))
        >>> sorted(rows.matching(("a",), pa.table({"a": [3, None]}))["b"].to_pylist())
        ['w', 'x', 'z']
        >>> rows.matching(("b", "a"), pa.table({"a": [3, 1], "b": ["w", "x"]})).to_pylist()
        [{'a': 3, 'b': 'w'}]
        """
        first, counts, index = self._span(columns, keys)
        skipped = np.repeat(first - (np.cumsum(counts) - counts), counts)
        places = np.sort(index.places[skipped + np.arange(len(skipped))])  # rows are read in the order they lie in
        found = self.table.take(pa.array(places))
        return found.filter(is_among(found, columns, keys))

    def count_matching(self, columns: tuple[str, ...], keys: pa.Table) -> int:
        """Return how many rows hold one of the keys, or share a hash with one.

        >>> IndexedRows(pa.table({"a": [3, 1, None, 3]})).count_matching(("a",), pa.table({"a": [3, 7]}))
        2
        """
        return int(self._span(columns, keys)[1].sum())

    def _span(self, columns: tuple[str, ...], keys: pa.Table) -> tuple[Numbers, Numbers, _Index]:
        """Return where in an index the hash of each key begins, how often it is there, and the index."""
        names = tuple(sorted(columns))
        index = self._index(names)
        sought = np.unique(key_hashes([keys[name].cast(self.table.schema.field(name).type) for name in names]))
        first = np.searchsorted(index.hashes, sought, side="left")
        return first, np.searchsorted(index.hashes, sought, side="right") - first, index

    @property
    def indexed(self) -> tuple[tuple[str, ...], ...]:
        """The lists of columns that have an index."""
        return tuple(self._indexes)

    def make_indexes(self, columns: Iterable[tuple[str, ...]]) -> None:
        """Make the indexes of some lists of columns now."""
        for names in columns:
            self._index(names)

    def _index(self, names: tuple[str, ...]) -> _Index:
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
