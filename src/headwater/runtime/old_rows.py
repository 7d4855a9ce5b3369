"""The old rows of a segment, as the steps of a batch look them up: in memory, where they are stored, or computed."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from headwater.deltas.on_arrow import ArrowBag
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


def looked_up(rows: OldRows, wish: Wish) -> pa.Table:
    """Return the rows that are wished for, with `_count`."""
    columns = wish.within.columns if wish.within else ()
    keys = wish.within.keys.table.rename_columns(list(columns)) if wish.within else None
    return rows.lookup(wish.columns, columns, keys).table.select([*wish.columns, COUNT])
