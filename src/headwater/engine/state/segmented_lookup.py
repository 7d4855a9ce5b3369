"""Look rows up in a view's segments and in the relations below them.

A segment has no log of its own and needs none: its old rows are those where the batch begins, and the batch's changes
of the segment are computed before anybody joins them. So there is nothing to rebase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.deltas.lookup import look_up
from headwater.deltas.on_arrow import ArrowLookup, ArrowRequest, ArrowResult
from headwater.model.relation import RelationName, SegmentName


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentedLookup:
    """The rows of segments, each in a lookup of its own, and those of relations in `others`."""

    segments: Mapping[RelationName, ArrowLookup]
    others: ArrowLookup

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows of each request; those of relations are looked up at once."""
        asked = tuple(request for request in requests if not isinstance(request.relation, SegmentName))
        found = iter(self.others.lookup(asked) if asked else ())
        return [
            look_up(self.segments[request.relation], request)
            if isinstance(request.relation, SegmentName)
            else next(found)
            for request in requests
        ]
