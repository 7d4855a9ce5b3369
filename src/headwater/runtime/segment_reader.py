"""Look rows up in a kept segment: its rows at one tick, in memory, and recent changes laid on top.

    base (netted rows, as of some tick)  +  recent (signed rows since)  ⋉  keys, NULL being a key like any other

The first rows in an order are kept as well, once somebody asked for them, a thousand more than were asked for: all rows
are ordered again only when so many of them are gone.

A lookup searches the base's index and scans the key columns of what is recent, and nets only what it finds.
Recent changes are folded into the base once they are a fifth of it, so that every row is moved a few times at most.
What is kept of a view's segments has to fit into the maintainer's memory; its rows on disk are the kept table's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.first_rows import FirstRows
from headwater.deltas.indexed_rows import IndexedRows, is_among
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.order import Order
from headwater.deltas.summed_up import summed_up
from headwater.position import Tick
from headwater.relation import COUNT, TICK, Relation
from headwater.runtime.old_rows import first_rows

_RECENT_ROWS = 20_000
_RECENT_SHARE = 0.2
_SPARE_ROWS = 1_000


@dataclass(slots=True, kw_only=True)
class SegmentReader:
    """A kept segment's rows as of `tick`: the columns and `_count` in each part, netted in the first one only."""

    relation: Relation
    tick: Tick
    base: IndexedRows
    recent: list[pa.Table] = field(default_factory=list)
    _first: dict[Order, FirstRows] = field(default_factory=dict)

    @classmethod
    def of_rows(cls, relation: Relation, plain: pa.Table, tick: Tick) -> SegmentReader:
        """Return a reader of plain rows: a row with count k stands k times."""
        ones = pa.repeat(pa.scalar(1, pa.int64()), plain.num_rows)
        typed = _with_one_zero(plain.select(list(relation.column_names)).cast(relation.arrow_schema()))
        return cls(relation=relation, tick=tick, base=IndexedRows(_netted([typed.append_column(COUNT, ones)])))

    @property
    def row_count(self) -> int:
        """How many entries are here, netted or not."""
        return int(sum(part.num_rows for part in (self.base.table, *self.recent)))

    def lookup(self, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table | None) -> ArrowBag:
        """Return the rows whose `columns` hold one of the keys, NULLs included, or all rows; stamped with `tick`."""
        parts = [self.base.table, *self.recent]
        if keys is not None and columns:
            recent = (part.filter(is_among(part, columns, keys)) for part in self.recent)
            parts = [self.base.matching(columns, keys), *recent]
        found = pa.concat_tables([part.select([*wanted, COUNT]) for part in parts])
        stamps = pa.repeat(pa.scalar(self.tick, pa.int64()), found.num_rows)
        return ArrowBag(found.append_column(TICK, stamps).select([*wanted, TICK, COUNT])).net()

    def first(self, order: Order, count: int) -> FirstRows:
        """Return at least the first `count` rows in an order, or all if they are fewer."""
        known = self._first.get(order)
        if known is not None and (known.is_whole or known.rows.num_rows >= count):
            return known
        found = first_rows(self, order, count + _SPARE_ROWS)
        self._first[order] = replace(found, read_rows=0)
        return found

    def absorb(self, rows: pa.Table | None, upto: Tick) -> None:
        """Lay the signed rows of the ticks (tick, upto] on top."""
        self.tick = upto
        if rows is None or not rows.num_rows:
            return
        typed = rows.select([*self.relation.column_names, COUNT]).cast(self.base.table.schema)
        self._first = {order: known.after(typed) for order, known in self._first.items()}
        self.recent.append(typed)
        base = self.base.table
        if self.row_count - base.num_rows > max(_RECENT_ROWS, _RECENT_SHARE * base.num_rows):
            self.base, self.recent = IndexedRows(_netted([base, *self.recent])), []


def _with_one_zero(rows: pa.Table) -> pa.Table:
    """Return rows as Spark groups them, and as changes have them: one zero, and one NaN.

    >>> _with_one_zero(pa.table({"a": [-0.0, None]})).to_pylist()
    [{'a': 0.0}, {'a': None}]
    """
    for place, column in enumerate(rows.schema):
        if pa.types.is_floating(column.type):
            values = pc.add(rows[column.name], pa.scalar(0, column.type))
            nan = pa.scalar(float("nan"), column.type)
            rows = rows.set_column(place, column, pc.if_else(pc.is_nan(values), nan, values))
    return rows


def _netted(parts: list[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(parts)
    return summed_up(rows).combine_chunks()
