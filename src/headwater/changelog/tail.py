"""The newest part of the change log, in memory: what maintenance reads is nearly always what was just accepted.

Law: for every relation the tail holds every signed row with tick > `since`, in tick order; it never answers for more.

Thousands of small appends must not make thousands of small pieces: a piece is merged into the one before it while that
one is not more than twice as large, so a relation of n rows lies in O(log n) pieces and each row is copied O(log n)
times. Pieces past `SETTLED_ROWS` are left alone.

One thread appends and trims, others read: pieces are immutable, lists of them are replaced, and a lock guards the swap.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pyarrow as pa

from headwater.changelog.layout import stamped_schema
from headwater.changelog.read import between
from headwater.model.position import Tick
from headwater.model.relation import TICK, RelationName

SETTLED_ROWS = 65_536


class Tail:
    """Recent signed rows per relation. The key None holds the transactions' own records."""

    def __init__(self, since: Tick) -> None:
        """Begin an empty tail that is complete for ticks after `since`."""
        self._lock = threading.Lock()
        self._since = since
        self._pieces: dict[RelationName | None, tuple[pa.Table, ...]] = {}

    @property
    def since(self) -> Tick:
        """The tail is complete for ticks after this one."""
        return self._since

    def append(self, records: pa.Table, rows: Mapping[RelationName, pa.Table]) -> None:
        """Add the records and rows of newer ticks. Each table has a `_tick` column in ascending order."""
        with self._lock:
            for key, table in ((None, records), *rows.items()):
                if table.num_rows:
                    self._pieces[key] = _merged((*self._pieces.get(key, ()), table.combine_chunks()))

    def parts(
        self, relation: RelationName | None, columns: pa.Schema, after: Tick, upto: Tick
    ) -> tuple[Tick, Sequence[pa.Table]]:
        """Return `since`, and the rows that are held of those with after < tick <= upto, in tick order."""
        since, found = self._held(relation, after, upto)
        schema = columns if relation is None else stamped_schema(columns)
        return since, [_fitted(part, schema) for part in found]

    def row_count(self, relation: RelationName, after: Tick, upto: Tick) -> tuple[Tick, int]:
        """Return `since`, and how many rows are held of those with after < tick <= upto."""
        since, found = self._held(relation, after, upto)
        return since, sum(part.num_rows for part in found)

    def _held(self, relation: RelationName | None, after: Tick, upto: Tick) -> tuple[Tick, list[pa.Table]]:
        with self._lock:
            since, pieces = self._since, self._pieces.get(relation, ())
        parts = (between(piece, max(after, since), upto) for piece in pieces)
        return since, [part for part in parts if part.num_rows]

    def trim(self, before: Tick) -> None:
        """Forget rows with tick <= before. What is left is what a reader may still want soon."""
        with self._lock:
            if before <= self._since:
                return
            self._since = before
            kept = {
                key: tuple(piece for piece in pieces if _last(piece) > before) for key, pieces in self._pieces.items()
            }
            self._pieces = {key: pieces for key, pieces in kept.items() if pieces}

    @property
    def byte_count(self) -> int:
        """How much memory the rows take."""
        with self._lock:
            return sum(piece.nbytes for pieces in self._pieces.values() for piece in pieces)


def _merged(pieces: tuple[pa.Table, ...]) -> tuple[pa.Table, ...]:
    while len(pieces) > 1:
        *older, left, right = pieces
        if left.num_rows > min(2 * right.num_rows, SETTLED_ROWS) or left.schema != right.schema:
            break
        pieces = (*older, pa.concat_tables([left, right]).combine_chunks())
    return pieces


def _last(piece: pa.Table) -> int:
    return int(piece[TICK][-1].as_py())


def _fitted(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        piece[field.name].cast(field.type) if field.name in piece.column_names else pa.nulls(piece.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
