"""Look rows up in a kept segment: its rows at one tick, in memory, and recent changes laid on top.

    base (netted rows, as of some tick)  +  recent (signed rows since)  ⋉  keys, NULL being a key like any other

The first rows in an order are kept as well, once somebody asked for them, a thousand more than were asked for: all rows
are ordered again only when so many of them are gone.

A lookup searches the base's index and scans the key columns of what is recent, and nets only what it finds.
Recent changes are folded into the base once they are a fifth of it, so that every row is moved a few times at most.
What is kept of a view's segments has to fit into the maintainer's memory; its rows on disk are the kept table's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from headwater.deltas.first_rows import FirstRows, limited
from headwater.deltas.indexed_rows import IndexedRows, is_among
from headwater.deltas.lookup import Origin, RowResult, SawTicks
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest, ArrowResult, summed_up, with_one_zero
from headwater.deltas.order import Order
from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation
from headwater.model.settings import DEFAULTS

_RECENT_SHARE = 0.2
_SPARE_ROWS = 1_000


@dataclass(slots=True, kw_only=True)
class SegmentReader:
    """A kept segment's rows as of `tick`: the columns and `_count` in each part, netted in the first one only."""

    relation: Relation
    tick: Tick
    base: IndexedRows
    recent: list[pa.Table] = field(default_factory=list)
    recent_rows: int = DEFAULTS.memory.segment_recent_rows
    """So many signed rows are laid on top before they are folded in."""
    _first: dict[Order, FirstRows] = field(default_factory=dict)
    lookup_milliseconds: ClassVar[float] = costs.HELD_LOOKUP

    @classmethod
    def of_rows(
        cls,
        relation: Relation,
        plain: pa.Table,
        tick: Tick,
        recent_rows: int = DEFAULTS.memory.segment_recent_rows,
    ) -> SegmentReader:
        """Return a reader of plain rows: a row with count k stands k times."""
        ones = pa.repeat(pa.scalar(1, pa.int64()), plain.num_rows)
        typed = with_one_zero(plain.select(list(relation.column_names)).cast(relation.arrow_schema()))
        base = IndexedRows(_netted([typed.append_column(COUNT, ones)]))
        return cls(relation=relation, tick=tick, base=base, recent_rows=recent_rows)

    @property
    def row_count(self) -> int:
        """How many entries are here, netted or not."""
        return int(sum(part.num_rows for part in (self.base.table, *self.recent)))

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows of each request, netted."""
        return [
            self._first_rows(request) if self._keeps_first(request) else self._found(request) for request in requests
        ]

    def _found(self, request: ArrowRequest) -> ArrowResult:
        parts = [self.base.table, *self.recent]
        if request.within is not None:
            columns, keys = request.within.columns, request.within.keys.named(request.within.columns)
            recent = (part.filter(is_among(part, columns, keys)) for part in self.recent)
            parts = [self.base.matching(columns, keys), *recent]
        found = pa.concat_tables([part.select([*request.wanted, COUNT]) for part in parts])
        return limited(self._result(ArrowBag.of_counted(found, self.tick).net()), request)

    def _result(self, rows: ArrowBag) -> ArrowResult:
        return RowResult(rows=rows, sight=SawTicks(upto=self.tick), origin=Origin.AUXILIARY_TABLE)

    def _keeps_first(self, request: ArrowRequest) -> bool:
        """Tell whether the first rows that are asked for are those that are kept: whole rows, of all."""
        return request.limit is not None and request.within is None and request.wanted == self.relation.column_names

    def _first_rows(self, request: ArrowRequest) -> ArrowResult:
        """Return at least the first rows in an order: all that are kept of it."""
        assert request.limit is not None, "the first rows are asked for"
        known, read_rows = self._first.get(request.order), 0
        if known is None or not (known.is_whole or known.rows.num_rows >= request.limit):
            known = FirstRows.of(self._found(_all_of(request)).rows.counted, request.order, request.limit + _SPARE_ROWS)
            read_rows, self._first[request.order] = known.read_rows, replace(known, read_rows=0)
        result = self._result(ArrowBag.of_counted(known.rows, self.tick))
        return replace(result, is_whole=known.is_whole, read_count=read_rows)

    def absorb(self, changes: ArrowBag | None, upto: Tick) -> None:
        """Lay the changes of the ticks (tick, upto] on top; None is no change."""
        self.tick = upto
        if changes is None or not len(changes):
            return
        typed = changes.table.select([*self.relation.column_names, COUNT]).cast(self.base.table.schema)
        self._first = {order: known.after(typed) for order, known in self._first.items()}
        self.recent.append(typed)
        base = self.base.table
        if self.row_count - base.num_rows > max(self.recent_rows, _RECENT_SHARE * base.num_rows):
            self.base, self.recent = IndexedRows(_netted([base, *self.recent])), []


def _all_of(request: ArrowRequest) -> ArrowRequest:
    return replace(request, order=(), limit=None)


def _netted(parts: list[pa.Table]) -> pa.Table:
    rows = pa.concat_tables(parts)
    return summed_up(rows).combine_chunks()
