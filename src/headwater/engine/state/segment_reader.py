"""Look rows up in a kept segment: its rows at one tick, and recent changes laid on top, in memory or mapped.

    base (netted rows, as of some tick)  +  runs of signed rows since  ⋉  keys, NULL being a key like any other

The first rows in an order are kept as well, once somebody asked for them, a thousand more than were asked for: all rows
are ordered again only when a thousand of them are gone.

A lookup searches the indexes of the layers (`storage/layered_rows`), and nets only what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from headwater.deltas.first_rows import FirstRows, limited
from headwater.deltas.lookup import Origin, RowResult, SawTicks, look_up
from headwater.deltas.on_arrow import ArrowBag, ArrowKeys, summed_up, with_one_zero
from headwater.deltas.order import Order
from headwater.deltas.stored_bag import Bag, BagLookup, BagRequest, BagResult, StoredBag, StoredKeys, held_result
from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation
from headwater.model.settings import DEFAULTS
from headwater.storage.layered_rows import LayeredRows
from headwater.storage.mapped_rows import MappedFolder
from headwater.storage.stored_rows import parts

_SPARE_ROWS = 1_000


@dataclass(slots=True, kw_only=True)
class SegmentReader:
    """A kept segment's rows as of `tick`: the columns and `_count`."""

    relation: Relation
    tick: Tick
    rows: LayeredRows
    stored: Callable[[Tick], BagLookup] | None = None
    """Returns the lookup of the same rows where they are stored, if they are."""
    held_rows: int = DEFAULTS.batch.held_rows
    """Up to this many entries are looked up here. More are read where they are stored."""
    _first: dict[Order, FirstRows] = field(default_factory=dict)
    lookup_milliseconds: ClassVar[float] = costs.HELD_LOOKUP

    @classmethod
    def of_rows(
        cls,
        relation: Relation,
        plain: pa.Table,
        tick: Tick,
        folder: MappedFolder | None = None,
        held_bytes_limit: int = 0,
        stored: Callable[[Tick], BagLookup] | None = None,
        held_rows: int = DEFAULTS.batch.held_rows,
    ) -> SegmentReader:
        """Return a reader of plain rows: a row with count k stands k times. Those beyond a limit are mapped."""
        ones = pa.repeat(pa.scalar(1, pa.int64()), plain.num_rows)
        typed = with_one_zero(plain.select(list(relation.column_names)).cast(relation.arrow_schema()))
        netted = summed_up(typed.append_column(COUNT, ones))
        rows = LayeredRows(schema=netted.schema, folder=folder, held_bytes_limit=held_bytes_limit)
        rows.fill([netted])
        return cls(relation=relation, tick=tick, rows=rows, stored=stored, held_rows=held_rows)

    @classmethod
    def of_counted(cls, relation: Relation, counted: pa.Table, tick: Tick) -> SegmentReader:
        """Return a reader of netted rows with `_count`, which are held in memory."""
        rows = LayeredRows(schema=counted.schema)
        rows.fill([counted])
        return cls(relation=relation, tick=tick, rows=rows)

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request, netted. Many are read where they are stored."""
        return [
            self._first_rows(request) if self._keeps_first(request) else self._found(request) for request in requests
        ]

    def _found(self, request: BagRequest) -> BagResult:
        if self.stored is not None and self._most(request) > self.held_rows:
            return look_up(self.stored(self.tick), request)
        if isinstance(request.keys, ArrowKeys):
            found = self.rows.matching(request.columns, request.keys.named(request.columns))
        else:
            found = self.rows.entries()
        wanted = found.select([*request.wanted, COUNT])
        result = self._result(ArrowBag.of_counted(wanted, self.tick).net())
        return limited(replace(result, has_all_rows=isinstance(request.keys, StoredKeys)), request)

    def _most(self, request: BagRequest) -> int:
        """Return how many entries a request finds at most."""
        if isinstance(request.keys, ArrowKeys):
            return self.rows.count_matching(request.columns, request.keys.named(request.columns))
        return self.rows.row_count

    def _result(self, rows: ArrowBag) -> BagResult:
        return RowResult(rows=rows, sight=SawTicks(upto=self.tick), origin=Origin.AUXILIARY_TABLE)

    def _keeps_first(self, request: BagRequest) -> bool:
        """Tell whether the first rows that are asked for are those that are kept: whole rows, of all."""
        return request.limit is not None and request.within is None and request.wanted == self.relation.column_names

    def _first_rows(self, request: BagRequest) -> BagResult:
        """Return at least the first rows in an order: all that are kept of it."""
        assert request.limit is not None, "the first rows are asked for"
        known, read_rows = self._first.get(request.order), 0
        if known is None or not (known.is_whole or known.rows.num_rows >= request.limit):
            all_rows = self._found(replace(request, limit=request.limit + _SPARE_ROWS))
            first = FirstRows.of_result(held_result(all_rows), request.order)
            known = replace(first, most=2 * (request.limit + _SPARE_ROWS))
            read_rows, self._first[request.order] = known.read_rows, replace(known, read_rows=0)
        result = self._result(ArrowBag.of_counted(known.rows, self.tick))
        return replace(result, is_whole=known.is_whole, read_count=read_rows)

    def absorb(self, changes: Bag | None, upto: Tick) -> None:
        """Lay the changes of the ticks (tick, upto] on top. None is no change."""
        self.tick = upto
        if changes is None or not changes.most:
            return
        if isinstance(changes, StoredBag):
            self._first = {}  # what is a part of so many changes may take rows away that come with another part
        for part in parts(changes):
            typed = part.select([*self.relation.column_names, COUNT]).cast(self.rows.schema)
            self._first = {order: known.after(typed) for order, known in self._first.items()}
            self.rows.add(typed)

    def release(self) -> None:
        """Delete what is mapped for it."""
        self.rows.release()
