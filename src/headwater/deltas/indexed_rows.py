"""Rows in memory that are looked up by values of their columns: by binary search in an index, not by a scan.

    index of a column: its values in order, and the places of their rows    ──►  places of the keys' rows  ──►  test

The index of a column is made when it is first sought by, and costs as much as sorting it. Of several columns one leads,
the first that can; what it finds is tested for all of them. NULL is a value like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class _Index(NamedTuple):
    """The values of a column in order, without NULLs; the places of their rows, then those of rows with NULL."""

    values: pa.Array
    places: np.ndarray[tuple[int], np.dtype[np.uint64]]


@dataclass(slots=True)
class IndexedRows:
    """Rows that do not change."""

    table: pa.Table
    _indexes: dict[str, _Index] = field(default_factory=dict)

    def matching(self, columns: tuple[str, ...], keys: pa.Table) -> pa.Table:
        """Return the rows whose `columns` hold one of the keys.

        >>> rows = IndexedRows(pa.table({"a": [3, 1, None, 3], "b": ["x", "y", "z", "w"]}))
        >>> rows.matching(("a",), pa.table({"a": [3, None]}))["b"].to_pylist()
        ['x', 'w', 'z']
        >>> rows.matching(("b", "a"), pa.table({"a": [3, 1], "b": ["w", "x"]})).to_pylist()
        [{'a': 3, 'b': 'w'}]
        """
        lead = next((name for name in columns if can_lead(self.table.schema.field(name).type)), None)
        found = self.table if lead is None else self._led_by(lead, keys[lead])
        return found if columns == (lead,) else found.filter(is_among(found, columns, keys))

    @property
    def indexed(self) -> tuple[str, ...]:
        """The columns that have an index."""
        return tuple(self._indexes)

    def make_indexes(self, columns: Iterable[str]) -> None:
        """Make the indexes of some columns now."""
        for name in columns:
            self._index(name)

    def _led_by(self, column: str, keys: pa.ChunkedArray) -> pa.Table:
        index = self._index(column)
        sought = keys.cast(index.values.type).combine_chunks().unique()
        known = sought.drop_null()
        first = pc.search_sorted(index.values, known, side="left").to_numpy()
        after = pc.search_sorted(index.values, known, side="right").to_numpy()
        if sought.null_count:
            first, after = np.append(first, len(index.values)), np.append(after, len(index.places))
        counts = (after - first).astype(np.int64)
        skipped = np.repeat(first.astype(np.int64) - (np.cumsum(counts) - counts), counts)
        return self.table.take(pa.array(index.places[skipped + np.arange(len(skipped))]))

    def _index(self, column: str) -> _Index:
        if column not in self._indexes:
            values = self.table[column].combine_chunks()
            places = pc.sort_indices(values)  # NULLs come last
            ordered = values.take(places.slice(0, len(values) - values.null_count))
            self._indexes[column] = _Index(ordered, places.to_numpy())
        return self._indexes[column]


def can_lead(kind: pa.DataType) -> bool:
    """Tell whether values of a type are found by binary search.

    >>> can_lead(pa.int32()), can_lead(pa.string()), can_lead(pa.decimal128(9, 2)), can_lead(pa.float64())
    (True, True, False, False)
    """
    tests = (pa.types.is_integer, pa.types.is_string, pa.types.is_binary, pa.types.is_date, pa.types.is_timestamp)
    return any(test(kind) for test in tests)


def is_among(rows: pa.Table, columns: tuple[str, ...], keys: pa.Table) -> pa.ChunkedArray:
    """Tell for each row whether it holds one of the keys; NULL is NULL.

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


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values that Arrow can compare and group by: arrays in their printed form, others as they are.

    >>> comparable(pa.chunked_array([[[1, None], None]])).to_pylist()
    ['[1, None]', None]
    """
    if not pa.types.is_nested(column.type):
        return column
    printed = [None if value is None else repr(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(printed, pa.string())])


def _joined(so_far: pa.Scalar | pa.ChunkedArray, column: pa.ChunkedArray, known: pa.Array) -> pa.ChunkedArray:
    """Return the numbers with the place of each value among the known ones; none where it is not there."""
    places = pc.cast(pc.index_in(column, value_set=known), pa.int64())
    return pc.add(pc.multiply(so_far, pa.scalar(len(known), pa.int64())), places)
