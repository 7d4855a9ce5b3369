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

from headwater.deltas.first_rows import limited
from headwater.deltas.lookup import SawTicks, look_up
from headwater.deltas.stored_bag import Bag, BagLookup, BagRequest, BagResult
from headwater.engine.state.runner import existing
from headwater.maintenance.rebase import Log, rebase
from headwater.model.position import Tick
from headwater.model.relation import Relation, RelationName, SegmentName

Run = Callable[[str, Mapping[str, pa.Table]], pa.Table]
"""Runs Spark SQL over tables by their names."""

Cost = Callable[[RelationName, int], float | None]
"""About how many milliseconds it takes to read rows of a relation or segment under this many keys; None: not held."""


class SegmentLookup(BagLookup, Protocol):
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


class TickLookup(BagLookup, Protocol):
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

    segments: Mapping[RelationName, BagLookup]
    others: BagLookup

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
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

    others: BagLookup
    log: Log[Bag]
    tick: Tick

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows at the tick, netted, those of the extents only."""
        asked = [_whole(request) for request in requests]
        results = self.others.lookup(asked)
        return [
            limited(self._rebased(request, whole, result), request)
            for request, whole, result in zip(requests, asked, results, strict=True)
        ]

    def _rebased(self, request: BagRequest, whole: BagRequest, result: BagResult) -> BagResult:
        rebased = rebase(whole, result, self.log, self.tick).selected(request.extent)
        rows = existing(rebased, str(request.relation), self.tick)
        if request.wanted != whole.wanted:
            rows = rows.picked(request.wanted).net()
        return replace(result, rows=rows, sight=SawTicks(upto=self.tick))


def _whole(request: BagRequest) -> BagRequest:
    """Return a request whose result can be rebased: without a limit, and with the columns that have keys."""
    return replace(request, wanted=tuple(dict.fromkeys((*request.wanted, *request.columns))), order=(), limit=None)
