"""The newest part of the change log, in memory: what maintenance reads is nearly always what was just accepted.

Law: for every relation the tail holds every signed row with tick > `since`, in tick order; it never answers for more.

What it holds is bounded by bytes. Where more comes, the oldest is let go and `since` rises: readers find it in the
log's files. An append that does not fit at all is not held: `since` is its last tick.

Thousands of small appends must not make thousands of small pieces: a piece is merged into the one before it while that
one is less than twice as large, so a relation of n rows lies in O(log n) pieces and each row is copied O(log n) times.
Pieces of `SETTLED_ROWS` are left alone.

One thread appends and trims, others read: pieces are immutable, lists of them are replaced, and a lock guards the swap.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import pyarrow as pa

from headwater.changelog.layout import stamped_schema
from headwater.changelog.read import between
from headwater.model.position import Tick
from headwater.model.relation import TICK, RelationName

SETTLED_ROWS = 65_536


@dataclass(slots=True)
class NewRows:
    """The rows of an append that are to be held, as long as they are not too many for that. `parts` has them."""

    most_bytes: int | None = None
    parts: dict[RelationName, list[pa.Table]] | None = field(default_factory=dict)
    """None once they are too many."""
    _byte_count: int = 0

    def add(self, relation: RelationName, rows: pa.Table) -> None:
        """Take rows with `_tick`, which follow those before."""
        self._byte_count += rows.nbytes
        if self.most_bytes is not None and self._byte_count > self.most_bytes:
            self.parts = None
        if self.parts is not None:
            self.parts.setdefault(relation, []).append(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    rows: pa.Table
    byte_count: int
    last: Tick

    @classmethod
    def of(cls, rows: pa.Table) -> Self:
        whole = rows.combine_chunks()
        return cls(rows=whole, byte_count=whole.nbytes, last=Tick(whole[TICK][-1].as_py()))


class Tail:
    """Recent signed rows per relation. The key None holds the transactions' own records."""

    def __init__(self, since: Tick, most_bytes: int | None = None) -> None:
        """Begin an empty tail that is complete for ticks after `since`. Without a bound all is held."""
        self._lock = threading.Lock()
        self._since = since
        self.most_bytes = most_bytes
        self.byte_count = 0
        """How much memory the rows take, or the file that they are mapped from."""
        self._pieces: dict[RelationName | None, tuple[_Piece, ...]] = {}

    @property
    def since(self) -> Tick:
        """The tail is complete for ticks after this one."""
        return self._since

    def new_rows(self) -> NewRows:
        """Return what rows of an append are gathered in."""
        return NewRows(self.most_bytes)

    def append(self, records: pa.Table, rows: NewRows, upto: Tick) -> None:
        """Add the records and rows of newer ticks, and let the oldest go if there is no room for all.

        Each table has a `_tick` column in ascending order.
        """
        with self._lock:
            if rows.parts is None:
                self._let_go(upto)
                return
            added = [(None, records), *((key, part) for key, parts in rows.parts.items() for part in parts)]
            for key, table in added:
                if table.num_rows:
                    before = self._pieces.get(key, ())
                    self._pieces[key] = _merged((*before, _Piece.of(table)))
            self._count()
            while self.most_bytes is not None and self.byte_count > self.most_bytes:
                self._let_go(min(pieces[0].last for pieces in self._pieces.values()))

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
        parts = (between(piece.rows, max(after, since), upto) for piece in pieces)
        return since, [part for part in parts if part.num_rows]

    def trim(self, before: Tick) -> None:
        """Forget rows with tick <= before. What is left is what a reader may still want soon."""
        with self._lock:
            if before > self._since:
                self._let_go(before)

    def _let_go(self, before: Tick) -> None:
        self._since = before
        kept = {key: tuple(piece for piece in pieces if piece.last > before) for key, pieces in self._pieces.items()}
        self._pieces = {key: pieces for key, pieces in kept.items() if pieces}
        self._count()

    def _count(self) -> None:
        self.byte_count = sum(piece.byte_count for pieces in self._pieces.values() for piece in pieces)


def _merged(pieces: tuple[_Piece, ...]) -> tuple[_Piece, ...]:
    while len(pieces) > 1:
        *older, left, right = pieces
        if left.rows.num_rows >= min(2 * right.rows.num_rows, SETTLED_ROWS) or left.rows.schema != right.rows.schema:
            break
        pieces = (*older, _Piece.of(pa.concat_tables([left.rows, right.rows])))
    return pieces


def _fitted(piece: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        piece[field.name].cast(field.type) if field.name in piece.column_names else pa.nulls(piece.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
