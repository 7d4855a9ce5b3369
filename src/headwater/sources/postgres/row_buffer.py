"""The signed rows of one relation while they are gathered from the log: Python lists first, Arrow tables soon after.

Values stay bytes and rows stay lists until a whole buffer is turned into typed columns at once. A buffer that is full
is turned into an Arrow table early, and once a capture is large those tables go to disk (`sources/spilled_rows`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from headwater.model.relation import COUNT, Relation
from headwater.model.transaction import ORDINAL
from headwater.sources.postgres.messages import Values
from headwater.sources.postgres.texts import typed_table
from headwater.sources.spilled_rows import spilled

FULL_ROWS = 65_536
"""The rows of a relation that are decoded together: a small buffer of Python values, whatever a transaction holds."""


class RowBuffer:
    """Signed rows of one relation, each with the ordinal of its transaction. Ordinals never fall."""

    __slots__ = ("_counts", "_layout", "_ordinals", "_rows", "_segments", "_width", "relation")

    def __init__(self, relation: Relation) -> None:
        """Start empty, with no layout: the log sends one before the first row."""
        self.relation = relation
        self._layout: tuple[int | None, ...] = ()
        self._width = 0
        self._rows: list[Values] = []
        self._ordinals = array("i")
        self._counts = array("q")
        self._segments: list[pa.Table] = []

    def __len__(self) -> int:
        """Return how many rows are held."""
        in_segments: int = sum(segment.num_rows for segment in self._segments)
        return len(self._rows) + in_segments

    @property
    def byte_count(self) -> int:
        """How large the rows are that were turned into Arrow tables."""
        return sum(segment.nbytes for segment in self._segments)

    def lay_out(self, columns: tuple[str, ...], without: Collection[str] = ()) -> None:
        """Say in which order the log sends columns from now on. Rows gathered before keep the order they came in.

        Columns of the relation that the log does not send, or `without` which it is taken, are NULL.
        """
        places = {name: place for place, name in enumerate(columns) if name not in without}
        layout = tuple(places.get(name) for name in self.relation.column_names)
        if (layout, len(columns)) != (self._layout, self._width):
            self._close_segment()
            self._layout, self._width = layout, len(columns)

    def add(self, values: Values, ordinal: int, count: int) -> None:
        """Take one row."""
        self._rows.append(values)
        self._ordinals.append(ordinal)
        self._counts.append(count)

    @property
    def is_full(self) -> bool:
        """Whether it is time to turn the rows into an Arrow table."""
        return len(self._rows) >= FULL_ROWS

    def close_segment(self, room_bytes: int) -> int:
        """Turn the rows gathered so far into an Arrow table, in a mapped file if there is no room for it in memory.

        Return how much memory it takes.
        """
        if not self._rows:
            return 0
        self._close_segment()
        last = self._segments[-1]
        if last.nbytes <= room_bytes:
            return int(last.nbytes)
        self._segments[-1] = spilled(last.schema, [last])
        return 0

    def forget_from(self, ordinal: int) -> None:
        """Drop the rows of the transactions from this ordinal on."""
        start = bisect_left(self._ordinals, ordinal)
        del self._rows[start:], self._ordinals[start:], self._counts[start:]
        self._segments = _filled([segment.slice(0, _rows_before(segment, ordinal)) for segment in self._segments])

    def take_before(self, ordinal: int) -> pa.Table | None:
        """Give out the rows of the transactions before this ordinal. The others stay, counted from zero again."""
        start = bisect_left(self._ordinals, ordinal)
        rows, ordinals, counts = self._rows[start:], self._ordinals[start:], self._counts[start:]
        del self._rows[start:], self._ordinals[start:], self._counts[start:]
        self._close_segment()
        taken = _filled([segment.slice(0, _rows_before(segment, ordinal)) for segment in self._segments])
        self._segments = _filled([_from(segment, ordinal) for segment in self._segments])
        self._rows, self._counts = rows, counts
        self._ordinals = array("i", [each - ordinal for each in ordinals])
        return pa.concat_tables(taken) if taken else None

    def take_from(self, ordinal: int) -> pa.Table | None:
        """Give out the rows of the transactions from this ordinal on. The others stay as they are."""
        self._close_segment()
        taken = _filled([_from(segment, ordinal) for segment in self._segments])
        self.forget_from(ordinal)
        return pa.concat_tables(taken) if taken else None

    def add_table(self, rows: pa.Table, ordinal: int) -> None:
        """Take rows that were given out before, as those of a transaction that has this ordinal now."""
        self._close_segment()
        ordinals = pa.repeat(pa.scalar(ordinal, pa.int32()), rows.num_rows)
        self._segments.append(rows.set_column(rows.column_names.index(ORDINAL), ORDINAL, ordinals))

    def _close_segment(self) -> None:
        if not self._rows:
            return
        columns = list(zip(*self._rows, strict=True))
        nothing = pa.nulls(len(self._rows), pa.string())
        texts = [nothing if place is None else pa.array(columns[place], pa.string()) for place in self._layout]
        table = typed_table(self.relation, self.relation.column_names, texts)
        ordinals = pa.Array.from_buffers(pa.int32(), len(self._ordinals), [None, pa.py_buffer(self._ordinals)])
        counts = pa.Array.from_buffers(pa.int64(), len(self._counts), [None, pa.py_buffer(self._counts)])
        self._segments.append(table.append_column(ORDINAL, ordinals).append_column(COUNT, counts))
        self._rows, self._ordinals, self._counts = [], array("i"), array("q")


def _filled(tables: list[pa.Table]) -> list[pa.Table]:
    """Return the tables that have rows."""
    return [table for table in tables if table.num_rows]


def _rows_before(table: pa.Table, ordinal: int) -> int:
    """Return how many rows come before this ordinal. Slicing there copies nothing: a mapped table stays mapped."""
    if table[ORDINAL][-1].as_py() < ordinal:
        rows: int = table.num_rows
    else:
        rows = pc.sum(pc.less(table[ORDINAL], ordinal)).as_py()
    return rows


def _from(table: pa.Table, ordinal: int) -> pa.Table:
    """Return the rows from this ordinal on, counted from zero again."""
    later = table.slice(_rows_before(table, ordinal))
    shifted = pc.subtract(later[ORDINAL], pa.scalar(ordinal, pa.int32()))
    return later.set_column(later.schema.get_field_index(ORDINAL), ORDINAL, shifted)
