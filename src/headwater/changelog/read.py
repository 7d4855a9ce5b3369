"""Reading the change log's data files: only the row groups of the asked ticks, only the leaves of the asked columns.

Rows come in tick order and part by part, so that nobody has to hold what does not fit. Row groups may cover the same
ticks, once files were merged: those are read side by side, each as far as the others have come.

    row group 1   ticks 1-9, 30-34   ──part──┐
    row group 2   ticks 10-29        ──part──┴─►  rows up to the first tick at which one of the parts ends

One that begins where another ends waits for it: so a transaction of many row groups is read one by one.

What one append wrote lies in tick order, however large its row groups are; merged ones are small, and are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.changelog.layout import RECORDS, shapes, unpack
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, RelationName
from headwater.storage.data_file import ROWS_PER_GROUP, place
from headwater.storage.storage_errors import stored

_RELATION = "_relation"


def read_parts(
    files: Sequence[str], log: pa.Schema, relation: RelationName, columns: pa.Schema, *, after: Tick, upto: Tick
) -> Iterator[pa.Table]:
    """Yield a relation's signed rows with after < tick <= upto, in tick order. `files` begin in that order."""
    reading = _RangeOfRows(
        places=shapes(log, relation), columns=columns, relation=str(relation), after=after, upto=upto
    )
    later = reading.in_order(files)
    following = next(later, None)
    begun: list[tuple[pa.Table, Iterator[pa.Table]]] = []
    while begun or following is not None:
        while following is not None and (not begun or following[0] < min(_last(part) for part, _ in begun)):
            begun += _next_part(following[1])
            following = next(later, None)
        if begun:
            end = min(_last(part) for part, _ in begun)
            ready = [between(part, after, end) for part, _ in begun]
            begun = [
                one
                for part, parts in begun
                for one in ([(between(part, end, upto), parts)] if _last(part) > end else _next_part(parts))
            ]
            yield ready[0] if len(ready) == 1 else pa.concat_tables(ready).sort_by(TICK)


def count_rows(files: Sequence[str], relation: RelationName, *, after: Tick, upto: Tick) -> int:
    """Return how many signed rows of a relation have after < tick <= upto, by bounds and ticks alone."""
    return sum(_count_in(file, str(relation), after, upto) for file in files)


def read_records(files: Sequence[str], after: Tick, upto: Tick) -> Iterator[pa.Table]:
    """Yield the transactions' own rows with after < tick <= upto, a table for each data file, in the files' order."""
    for file in files:
        with stored(file), _opened(file) as parquet:
            parts = [RECORDS.empty_table()]
            if "_position" in parquet.schema_arrow.names:
                for group in _groups(parquet, after, upto):
                    if (relations := _statistics(parquet, group, _RELATION)) is not None and not relations.null_count:
                        continue
                    rows = parquet.read_row_group(group, columns=RECORDS.names).select(RECORDS.names).cast(RECORDS)
                    parts.append(_within(rows.filter(pc.is_null(rows[_RELATION])), after, upto))
        yield pa.concat_tables(parts).sort_by(TICK).combine_chunks()


def between(rows: pa.Table, after: Tick, upto: Tick) -> pa.Table:
    """Return the rows with after < tick <= upto of rows in tick order. Nothing is copied."""
    first, end = np.searchsorted(rows[TICK].to_numpy(), [after, upto], side="right")
    return rows.slice(first, max(0, end - first))


@dataclass(frozen=True, slots=True, kw_only=True)
class _RangeOfRows:
    """What is read of each file. `places` are the struct columns that may hold the relation's rows."""

    places: tuple[str, ...]
    columns: pa.Schema
    relation: str
    after: Tick
    upto: Tick

    def in_order(self, files: Sequence[str]) -> Iterator[tuple[Tick, Iterator[pa.Table]]]:
        """Yield for each row group a tick that none of its rows is before, and its rows. The ticks never fall."""
        pending: list[tuple[Tick, int, int, pq.FileMetaData]] = []
        for number, file in enumerate(files):
            with stored(file), _opened(file) as parquet:
                groups = [*_groups(parquet, self.after, self.upto, self.relation)]
                found = [(self._first_tick(parquet, group), number, group, parquet.metadata) for group in groups]
            while pending and found and pending[0][0] < min(found)[0]:  # a later file begins no earlier than this one
                yield self._begun(files, *heappop(pending))
            for one in found:
                heappush(pending, one)
        while pending:
            yield self._begun(files, *heappop(pending))

    def _first_tick(self, parquet: pq.ParquetFile, group: int) -> Tick:
        known = _statistics(parquet, group, TICK)
        return Tick(known.min) if known is not None and known.has_min_max else self.after

    def _begun(
        self, files: Sequence[str], first: Tick, number: int, group: int, footer: pq.FileMetaData
    ) -> tuple[Tick, Iterator[pa.Table]]:
        return first, self._parts_of(files[number], footer, group)

    def _parts_of(self, file: str, footer: pq.FileMetaData, group: int) -> Iterator[pa.Table]:
        """Yield the rows of one row group, in tick order."""
        with stored(file), _opened(file, footer) as parquet:
            held = [name for name in self.places if name in parquet.schema_arrow.names] if len(self.columns) else []
            leaves = [f"{name}.{leaf}" for name in held for leaf in self._leaves(parquet, name)]
            for batch in parquet.iter_batches(ROWS_PER_GROUP, [group], [TICK, COUNT, _RELATION, *leaves]):
                rows = pa.Table.from_batches([batch])
                own = _within(rows.filter(pc.equal(rows[_RELATION], self.relation)), self.after, self.upto)
                if own.num_rows:
                    yield self._unpacked(own, held)

    def _leaves(self, parquet: pq.ParquetFile, name: str) -> list[str]:
        held = [field.name for field in parquet.schema_arrow.field(name).type]
        # one leaf at least: it tells whether the struct is there, which is what says that the row has this shape
        return [column for column in self.columns.names if column in held] or held[:1]

    def _unpacked(self, rows: pa.Table, held: Sequence[str]) -> pa.Table:
        if not len(self.columns):
            return _in_tick_order(rows.select([TICK, COUNT]))
        shaped = [unpack(rows.filter(pc.is_valid(rows[name])), name, self.columns) for name in held]
        return _in_tick_order(pa.concat_tables(shaped))


def _in_tick_order(rows: pa.Table) -> pa.Table:
    ticks = rows[TICK].to_numpy()
    return rows if (ticks[:-1] <= ticks[1:]).all() else rows.sort_by(TICK)


def _next_part(parts: Iterator[pa.Table]) -> list[tuple[pa.Table, Iterator[pa.Table]]]:
    """Return the next part with those after it, none at the end."""
    part = next(parts, None)
    return [] if part is None else [(part, parts)]


def _last(part: pa.Table) -> Tick:
    return Tick(part[TICK][-1].as_py())


def _count_in(file: str, relation: str, after: Tick, upto: Tick) -> int:
    count = 0
    with stored(file), _opened(file) as parquet:
        for group in _groups(parquet, after, upto, relation):
            ticks, names = _statistics(parquet, group, TICK), _statistics(parquet, group, _RELATION)
            if _are_all(ticks, Tick(after + 1), upto) and _are_all(names, relation, relation):
                count += parquet.metadata.row_group(group).num_rows
                continue
            for batch in parquet.iter_batches(ROWS_PER_GROUP, [group], [TICK, _RELATION]):
                rows = pa.Table.from_batches([batch])
                count += _within(rows.filter(pc.equal(rows[_RELATION], relation)), after, upto).num_rows
    return count


def _are_all(known: pq.Statistics | None, low: Tick | str, high: Tick | str) -> bool:
    """Tell whether every value of a column in a row group is known to lie within bounds."""
    if known is None or not known.has_min_max or not known.has_null_count or known.null_count:
        return False
    return bool(low <= known.min and known.max <= high)


def _opened(file: str, footer: pq.FileMetaData | None = None) -> pq.ParquetFile:
    system, path = place(file)
    return pq.ParquetFile(path, metadata=footer, filesystem=system)


def _groups(parquet: pq.ParquetFile, after: Tick, upto: Tick, relation: str | None = None) -> Iterator[int]:
    """Yield the row groups that may hold rows of some ticks, and of a relation."""
    for group in range(parquet.num_row_groups):
        if not _may_hold(_statistics(parquet, group, TICK), Tick(after + 1), upto):
            continue
        if relation is None or _may_hold(_statistics(parquet, group, _RELATION), relation, relation):
            yield group


def _may_hold(known: pq.Statistics | None, low: Tick | str, high: Tick | str) -> bool:
    return known is None or not known.has_min_max or (known.min <= high and known.max >= low)


def _statistics(parquet: pq.ParquetFile, group: int, column: str) -> pq.Statistics | None:
    """Return what a footer says of one of the records' columns in a row group."""
    number = parquet.schema_arrow.names.index(column)
    assert parquet.metadata.schema.column(number).path == column, "the records' columns come before any struct"
    return parquet.metadata.row_group(group).column(number).statistics


def _within(rows: pa.Table, after: Tick, upto: Tick) -> pa.Table:
    """Return the rows with after < tick <= upto of rows in any order."""
    return rows.filter(pc.and_(pc.greater(rows[TICK], after), pc.less_equal(rows[TICK], upto)))
