"""The signed rows of one relation while they are gathered from the log.

A row's length is known only from its values. So each row is walked once, when it comes, and of every value of variable
length its end is noted; everything else is arithmetic on whole columns (`decoding`), done when many rows are there.

    row:   nulls | fixed fixed | length bytes | fixed | length bytes
    noted:       ^ start                    ^ end                  ^ end, and which columns are NULL
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.model.relation import COUNT, Column, ColumnUse, Relation
from headwater.model.transaction import ORDINAL
from headwater.sources.mariadb.decoding import UnfitValueError, Values, decode
from headwater.sources.mariadb.printing import unfit_value
from headwater.sources.mariadb.table_map import LogFormatError, LoggedColumn, TableMap
from headwater.sources.mariadb.types import held
from headwater.sources.spilled_rows import spilled

FULL_BYTES = 8 << 20
"""The logged bytes of a relation that are decoded together: a small buffer, whatever a transaction holds."""
INSERT, UPDATE, DELETE = 1, 0, -1


@dataclass(frozen=True, slots=True)
class _NullLayout:
    """How rows are walked of which some columns are NULL: what to skip before each length, and how wide that is."""

    number: int
    steps: tuple[tuple[int, int], ...]
    tail: int


class RowLayout:
    """How the rows of a table are laid out, and which of its columns are which of a relation."""

    def __init__(self, table: TableMap, chosen: Mapping[str, int]) -> None:
        """Prepare to walk. `chosen` are the places in the table of a relation's columns. Others are NULL."""
        self.columns = table.columns
        self.chosen = dict(chosen)
        self.null_bytes = (len(table.columns) + 7) // 8
        self.stride = 1 + sum(column.is_variable for column in table.columns)
        self._known: dict[bytes, _NullLayout] = {}
        self._before: list[list[int]] = []
        self._nulls: list[list[bool]] = []

    def walk(self, data: bytes, at: int, end: int, shift: int, ends: array[int], layouts: array[int]) -> int:
        """Note where the rows between two places stand, shifted by a number. Return how many there are."""
        known, null_bytes, note, kind, count = self._known, self.null_bytes, ends.append, layouts.append, 0
        while at < end:
            nulls = data[at : at + null_bytes]
            layout = known.get(nulls) or self._lay_out(nulls)
            at += null_bytes
            kind(layout.number)
            note(at + shift)
            for skip, size in layout.steps:
                at += skip
                if size == 1:
                    at += 1 + data[at]
                elif size == 2:  # noqa: PLR2004 — bytes
                    at += 2 + data[at] + (data[at + 1] << 8)
                elif size:
                    at += size + int.from_bytes(data[at : at + size], "little")
                note(at + shift)
            at += layout.tail
            count += 1
        if at != end:
            raise LogFormatError("a row is longer than its event")
        return count

    def _lay_out(self, bitmap: bytes) -> _NullLayout:
        nulls = [bool(bitmap[place // 8] >> place % 8 & 1) for place in range(len(self.columns))]
        steps, before, skip = [], [], 0
        for column, is_null in zip(self.columns, nulls, strict=True):
            before.append(skip)
            if column.is_variable:
                steps.append((skip, 0 if is_null else column.width))
                skip = 0
            elif not is_null:
                skip += column.width
        layout = _NullLayout(len(self._known), tuple(steps), skip)
        self._known[bitmap] = layout
        self._before.append(before)
        self._nulls.append(nulls)
        return layout

    def table(self, relation: Relation, data: bytes, ends: array[int], layouts: array[int]) -> pa.Table:
        """Return the rows that were walked as a table of a relation."""
        places = np.frombuffer(ends, np.int64).reshape(-1, self.stride)
        kinds = np.frombuffer(layouts, np.int32)
        before, nulls, read = np.array(self._before, np.int64), np.array(self._nulls), np.frombuffer(data, np.uint8)
        runs = np.concatenate(([0], np.cumsum([column.is_variable for column in self.columns])))
        arrays = []
        for column in relation.columns:
            place = self.chosen.get(column.name)
            if place is None:
                arrays.append(pa.nulls(len(kinds), column.arrow_field.type))
                continue
            logged, run = self.columns[place], int(runs[place])
            is_null = nulls[kinds, place]
            some = bool(is_null.any())
            rows = np.flatnonzero(~is_null) if some else slice(None)
            at = places[rows, run] + before[kinds[rows], place]
            lengths = places[rows, run + 1] - at - logged.width if logged.is_variable else np.zeros(0, np.int64)
            values = Values(read, at + (logged.width if logged.is_variable else 0), lengths)
            found = _decoded(relation, column, values, logged)
            if some:
                filled = np.cumsum(~is_null) - 1
                found = found.take(pa.array(filled, mask=is_null))
            arrays.append(found)
        return pa.Table.from_arrays(arrays, schema=relation.arrow_schema())


def _decoded(relation: Relation, column: Column, values: Values, logged: LoggedColumn) -> pa.Array:
    try:
        return decode(values, logged, held(column)).cast(column.arrow_field.type)
    except (UnfitValueError, pa.ArrowInvalid) as error:
        if column.use is ColumnUse.UNREAD:
            return pa.nulls(len(values.at), column.arrow_field.type)
        raise unfit_value(relation.name, column, str(error)) from None


class LogRows:
    """Signed rows of one relation, each with the ordinal of its transaction. Ordinals never fall."""

    def __init__(self, relation: Relation) -> None:
        """Start empty."""
        self.relation = relation
        self._layout: RowLayout | None = None
        self._segments: list[pa.Table] = []
        self._decoded_count = 0
        self._clear()

    def _clear(self) -> None:
        self._data = bytearray()
        self._ends = array("q")
        self._layouts = array("i")
        self._events: list[tuple[int, int, int]] = []

    @property
    def row_count(self) -> int:
        """How many rows are held."""
        return self._decoded_count + len(self._layouts)

    @property
    def is_full(self) -> bool:
        """Whether it is time to turn the rows into an Arrow table."""
        return len(self._data) >= FULL_BYTES

    def add(self, layout: RowLayout, kind: int, body: bytes, at: int, end: int, ordinal: int) -> int:
        """Take the rows of an event, and return how many there are. Those of an update go and come in turn."""
        if layout is not self._layout:
            self._close()
            self._layout = layout
        shift = len(self._data) - at
        count = layout.walk(body, at, end, shift, self._ends, self._layouts)
        self._data += memoryview(body)[at:end]
        self._events.append((count, kind, ordinal))
        return count

    def cut(self, row_count: int) -> None:
        """Keep the first rows only. Only whole events are taken back."""
        while self.row_count > row_count and self._events:
            count, _, _ = self._events.pop()
            assert self._layout is not None, "events have a layout"
            del self._layouts[-count:], self._ends[-count * self._layout.stride :]
        if self._decoded_count > row_count:
            self._segments = [pa.concat_tables(self._segments).slice(0, row_count)]
            self._decoded_count = row_count

    def decode(self, room_bytes: int) -> int:
        """Turn the rows into an Arrow table, in a mapped file if there is no room. Return what memory it takes."""
        if not self._events:
            return 0
        self._close()
        last = self._segments[-1]
        if last.nbytes <= room_bytes:
            return int(last.nbytes)
        self._segments[-1] = spilled(last.schema, [last])
        return 0

    def take(self, row_count: int) -> pa.Table | None:
        """Give out the first rows. The others are of the transaction that comes next, which has the ordinal 0 then."""
        self._close()
        if not self._segments:
            return None
        whole = pa.concat_tables(self._segments)
        taken, left = whole.slice(0, row_count), whole.slice(row_count)
        self._segments, self._decoded_count = [], left.num_rows
        if left.num_rows:
            zeros = pa.repeat(pa.scalar(0, pa.int32()), left.num_rows)
            self._segments = [left.set_column(left.column_names.index(ORDINAL), ORDINAL, zeros)]
        return taken if taken.num_rows else None

    def _close(self) -> None:
        if not self._layouts:
            self._clear()
            return
        assert self._layout is not None, "rows have a layout"
        table = self._layout.table(self.relation, bytes(self._data), self._ends, self._layouts)
        counts, kinds, ordinals = (np.array(one, np.int64) for one in zip(*self._events, strict=True))
        signs = np.repeat(kinds, counts)
        starts = np.repeat(np.cumsum(counts) - counts, counts)
        turns: Any = np.where((np.arange(len(signs)) - starts) % 2 == 0, -1, 1)
        signs = np.where(signs == UPDATE, turns, signs)
        table = table.append_column(ORDINAL, pa.array(np.repeat(ordinals, counts).astype(np.int32)))
        self._segments.append(table.append_column(COUNT, pa.array(signs)))
        self._decoded_count += table.num_rows
        self._clear()
