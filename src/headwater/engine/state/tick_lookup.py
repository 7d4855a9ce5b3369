"""Lookups as of one tick: what the steps of a batch and the tracing of rows read from, and how to bring others there.

A relation is held by its source or a replica. A segment is held if it is kept; one that nobody holds is computed
(`segment_rows`). What is kept of a join's lineage is looked up by name, too (`rewritings`).

    SegmentedLookup   segments and relations in one lookup, by name
    RebasedLookup     what another lookup finds, brought to a tick
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.first_rows import limited
from headwater.deltas.lookup import SawTicks, look_up
from headwater.deltas.on_arrow import ArrowBag, ArrowLookup, ArrowRequest, ArrowResult
from headwater.maintenance.rebase import Log, rebase, refuse_negative
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation, RelationName, SegmentName

Run = Callable[[str, Mapping[str, pa.Table]], pa.Table]
"""Runs Spark SQL over tables by their names."""

Cost = Callable[[RelationName, int], float | None]
"""About how many milliseconds it takes to read rows of a relation or segment under this many keys; None: not held."""


class SegmentLookup(ArrowLookup, Protocol):
    """The rows of one segment as of a tick."""

    @property
    def relation(self) -> Relation:
        """The segment's columns."""
        ...

    @property
    def tick(self) -> Tick:
        """The tick of the rows."""
        ...

    @property
    def lookup_milliseconds(self) -> float:
        """About how long a lookup takes."""
        ...


class TickLookup(ArrowLookup, Protocol):
    """Rows of relations and segments as of one tick, wherever they are."""

    @property
    def tick(self) -> Tick:
        """The tick of the rows."""
        ...

    def holds(self, name: RelationName) -> bool:
        """Tell whether rows are there to be looked up. A relation is held by its source."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentedLookup:
    """The rows of segments, each in a lookup of its own, and those of relations in `others`.

    A segment has no log of its own and needs none: its old rows are those where the batch begins, and the batch's
    changes of the segment are computed before anybody joins them. So there is nothing to rebase.
    """

    segments: Mapping[RelationName, ArrowLookup]
    others: ArrowLookup

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows of each request. Those of relations are looked up at once."""
        asked = tuple(request for request in requests if not isinstance(request.relation, SegmentName))
        found = iter(self.others.lookup(asked) if asked else ())
        return [
            look_up(self.segments[request.relation], request)
            if isinstance(request.relation, SegmentName)
            else next(found)
            for request in requests
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RebasedLookup:
    """What another lookup finds, brought to a tick."""

    others: ArrowLookup
    log: Log[ArrowBag]
    tick: Tick

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows at the tick, netted, those of the extents only."""
        asked = [_whole(request) for request in requests]
        results = self.others.lookup(asked)
        return [
            limited(self._rebased(request, whole, result), request)
            for request, whole, result in zip(requests, asked, results, strict=True)
        ]

    def _rebased(self, request: ArrowRequest, whole: ArrowRequest, result: ArrowResult) -> ArrowResult:
        rows = rebase(whole, result, self.log, self.tick).selected(request.extent)
        refuse_negative(pc.sum(pc.less(rows.table[COUNT], 0)).as_py() or 0, str(request.relation), self.tick)
        if request.wanted != whole.wanted:
            rows = rows.picked(request.wanted).net()
        return replace(result, rows=rows, sight=SawTicks(upto=self.tick))


def _whole(request: ArrowRequest) -> ArrowRequest:
    """Return a request whose result can be rebased: without a limit, and with the columns that have keys."""
    return replace(request, wanted=tuple(dict.fromkeys((*request.wanted, *request.columns))), order=(), limit=None)
