"""The exact difference of two bags of rows: what came and what went, each row as often as it did.

Law: rows that went count −1, rows that came count +1. Equal rows are added up, and a sum of zero is no change. A set
operation would lose duplicates. NULL equals NULL here, and every NaN is one value; 0.0 and −0.0 are two.

What is larger than a limit is divided by hashes of whole rows into files, and added up part by part: equal rows have
equal hashes, so they are in one part.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.key_hashes import comparable, key_hashes
from headwater.model.memory_budget import SPILL_BYTES
from headwater.model.relation import COUNT

_PLACE = "_place"
_PARTS = 32


@dataclass
class NetChanges:
    """Gathers signed rows of a schema, and returns what is left of them when equal rows are added up.

    >>> net = NetChanges(pa.schema([("a", pa.int32())]))
    >>> net.add(pa.table({"a": pa.array([1, 1, 2], pa.int32())}), 1)
    >>> net.add(pa.table({"a": pa.array([1, 3], pa.int32())}), -1)
    >>> [rows.to_pylist() for rows in net.result()]
    [[{'a': 3, '_count': -1}, {'a': 1, '_count': 1}, {'a': 2, '_count': 1}]]
    """

    schema: pa.Schema
    limit_bytes: int = SPILL_BYTES
    _held: list[pa.Table] = field(default_factory=list)
    _held_bytes: int = 0
    _files: _Parts | None = None

    def add(self, rows: pa.Table, sign: int | pa.Array) -> None:
        """Take in rows that all have one sign, or each its own."""
        if not rows.num_rows:
            return
        signs = pa.repeat(pa.scalar(sign, pa.int64()), rows.num_rows) if isinstance(sign, int) else sign
        self._held.append(rows.append_column(COUNT, signs))
        self._held_bytes += self._held[-1].nbytes
        if self._held_bytes > self.limit_bytes:
            self._let_go()

    def result(self) -> Iterator[pa.Table]:
        """Yield the net changes, one line for each copy of a row, in each table those that went first."""
        if self._files is None:
            yield from _net(self._held)
            return
        self._let_go()
        with self._files as files:
            for part in range(_PARTS):
                yield from _net(files.read(part))

    def _let_go(self) -> None:
        if self._files is None:
            self._files = _Parts(pa.schema([*self.schema, pa.field(COUNT, pa.int64())]))
        for rows in self._held:
            self._files.write(rows, len(self.schema))
        self._held, self._held_bytes = [], 0


class _Parts:
    """Files that have rows by their hashes. They are deleted with it."""

    def __init__(self, schema: pa.Schema) -> None:
        self._stack = ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="headwater-")))
        self._schema = schema
        self._writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}

    def write(self, rows: pa.Table, width: int) -> None:
        parts = key_hashes([rows.column(place) for place in range(width)]) % np.uint64(_PARTS)
        for part in np.unique(parts):
            number = int(part)
            if number not in self._writers:
                self._writers[number] = pa.ipc.new_file(str(self._folder / str(number)), self._schema)
            self._writers[number].write_table(rows.filter(pa.array(parts == part)).combine_chunks())

    def read(self, part: int) -> list[pa.Table]:
        if part not in self._writers:
            return []
        self._writers[part].close()
        return [pa.ipc.open_file(pa.memory_map(str(self._folder / str(part)))).read_all()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for writer in self._writers.values():
            writer.close()
        self._stack.close()


def _net(tables: list[pa.Table]) -> Iterator[pa.Table]:
    """Yield the sums of equal rows that are not zero, one line for each copy."""
    if not tables:
        return
    rows = pa.concat_tables(tables)
    names = [name for name in rows.column_names if name != COUNT]
    flat = pa.table([comparable(rows[name]) for name in names], names)
    flat = flat.append_column(_PLACE, pa.array(np.arange(rows.num_rows))).append_column(COUNT, rows[COUNT])
    sums = flat.group_by(names, use_threads=False).aggregate([(_PLACE, "min"), (COUNT, "sum")])
    counts = sums[f"{COUNT}_sum"].to_numpy()
    places = sums[f"{_PLACE}_min"].to_numpy()
    gone, come = (np.repeat(places[chosen], np.abs(counts[chosen])) for chosen in (counts < 0, counts > 0))
    if len(gone) or len(come):
        signs = np.repeat(np.array([-1, 1], np.int64), [len(gone), len(come)])
        found = rows.select(names).take(pa.array(np.concatenate([gone, come])))
        yield found.append_column(COUNT, pa.array(signs))


def one_nan(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values with one NaN, of all that there are in memory: equal rows are then equal byte by byte."""
    if not pa.types.is_floating(values.type):
        return values
    nan = pa.scalar(float("nan"), values.type)
    return pc.if_else(pc.fill_null(pc.is_nan(values), fill_value=False), nan, values)
