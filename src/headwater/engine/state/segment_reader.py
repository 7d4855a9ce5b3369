"""Look rows up in a kept segment: its rows at one tick, and recent changes laid on top, in memory or mapped.

    base (rows as of some tick)  +  runs of signed rows since  ⋉  keys, NULL being a key like any other

The first rows in an order are kept as well, once somebody asked for them, a thousand more than were asked for: all rows
are looked through again only when a thousand of them are gone.

A lookup searches the indexes of the layers (`storage/layered_rows`), and nets only what it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from headwater.deltas.first_rows import FirstRows, limited
from headwater.deltas.lookup import NO_TICK, Origin, RowResult, SawTicks, look_up
from headwater.deltas.on_arrow import ArrowBag, with_one_zero
from headwater.deltas.order import Order
from headwater.deltas.stored_bag import BagLookup, BagRequest, BagResult
from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation
from headwater.model.settings import DEFAULTS
from headwater.storage.layered_rows import LayeredRows
from headwater.storage.mapped_rows import MappedFolder

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
    base_tick: Tick = NO_TICK
    """The tick of the rows without the changes that were laid on top."""
    _first: dict[Order, FirstRows] = field(default_factory=dict)
    lookup_milliseconds: ClassVar[float] = costs.HELD_LOOKUP

    @classmethod
    def of_parts(
        cls,
        relation: Relation,
        rows: Iterable[pa.Table],
        tick: Tick,
        folder: MappedFolder | None = None,
        stored: Callable[[Tick], BagLookup] | None = None,
        held_rows: int = DEFAULTS.batch.held_rows,
    ) -> SegmentReader:
        """Return a reader of rows with `_count` that come part by part. They need not be netted."""
        schema = pa.schema([*relation.arrow_schema(), pa.field(COUNT, pa.int64())])
        layers = LayeredRows(schema=schema, folder=folder)
        layers.fill(_typed(part, schema) for part in rows)
        return cls(relation=relation, tick=tick, rows=layers, stored=stored, held_rows=held_rows, base_tick=tick)

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request, netted. Many are read where they are stored."""
        return [
            self._first_rows(request) if self._keeps_first(request) else self._found(request) for request in requests
        ]

    def _found(self, request: BagRequest) -> BagResult:
        if self.stored is not None and self._most(request) > self.held_rows:
            return look_up(self.stored(self.tick), request)
        keys = None if request.keys is None else request.keys.held
        columns = request.columns
        found = self.rows.entries() if keys is None else self.rows.matching(columns, keys.named(columns))
        wanted = found.select([*request.wanted, COUNT])
        result = self._result(ArrowBag.of_counted(wanted, self.tick).net())
        return limited(replace(result, has_all_rows=keys is None), request)

    def _most(self, request: BagRequest) -> int:
        """Return how many entries a request finds at most."""
        if request.keys is None or (keys := request.keys.held) is None:
            return self.rows.row_count
        return self.rows.count_matching(request.columns, keys.named(request.columns))

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
            wanted = request.limit + _SPARE_ROWS
            known = FirstRows.of_parts(self.rows.schema, self.rows.parts, request.order, wanted)
            read_rows, self._first[request.order] = known.read_rows, replace(known, read_rows=0)
        result = self._result(ArrowBag.of_counted(known.rows, self.tick))
        return replace(result, is_whole=known.is_whole, read_count=read_rows)

    def absorb(self, parts: Iterable[pa.Table], upto: Tick) -> None:
        """Lay the changes of the ticks (tick, upto] on top: rows with `_count`, part by part."""
        self.tick = upto
        for part in parts:
            if part.num_rows:
                typed = _typed(part, self.rows.schema)
                self._first = {order: known.after(typed) for order, known in self._first.items()}
                self.rows.add(typed)

    def release(self) -> None:
        """Delete what is mapped for it."""
        self.rows.release()


def _typed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    return with_one_zero(rows.select(schema.names).cast(schema))
