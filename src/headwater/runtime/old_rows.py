"""The old rows of a segment, as the steps of a batch look them up: in memory, where they are stored, or computed."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from headwater.deltas.first_rows import FirstRows
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.order import Order
from headwater.lineage.reading import Wish
from headwater.position import Tick
from headwater.relation import COUNT, Relation


class OldRows(Protocol):
    """The rows of a segment as of the tick where a batch begins."""

    @property
    def relation(self) -> Relation:
        """The segment's columns."""
        ...

    @property
    def tick(self) -> Tick:
        """The tick of the rows."""
        ...

    def lookup(self, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table | None) -> ArrowBag:
        """Return the rows whose `columns` hold one of the keys, NULLs included, or all rows; stamped with `tick`."""
        ...

    def first(self, order: Order, count: int) -> FirstRows:
        """Return at least the first `count` rows in an order, or all if they are fewer."""
        ...


def looked_up(rows: OldRows, wish: Wish) -> pa.Table:
    """Return the rows that are wished for, with `_count`."""
    columns = wish.within.columns if wish.within else ()
    keys = wish.within.keys.table.rename_columns(list(columns)) if wish.within else None
    return rows.lookup(wish.columns, columns, keys).table.select([*wish.columns, COUNT])


def first_rows(rows: OldRows, order: Order, count: int) -> FirstRows:
    """Return the first `count` rows in an order, or all if they are fewer, from all rows."""
    found = rows.lookup(rows.relation.column_names, (), None).table
    return FirstRows.of(found.select([*rows.relation.column_names, COUNT]), order, count)
