"""Look up what a sweep asks for without asking, as far as the batch's own changes and kept rows suffice.

    question ──► the batch's net changes (`known_rows`) ──► kept rows that show it (`view_lookup`) ──► the source

Whatever is found without asking is as of the tick where the batch begins, and so the whole answer is brought there. A
source whose snapshot is not open cannot be asked: then it is said that it is needed, and the batch is tried again with
one. So a batch for which all is known asks nobody, and goes on while the sources are away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.deltas.lookup import RowResult, SawTicks, look_up
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest
from headwater.deltas.stored_bag import Bag, BagRequest, BagResult, NotHeldError, held, held_request
from headwater.engine.state.relation_lookup import RelationLookup
from headwater.engine.state.view_lookup import ViewLookup
from headwater.maintenance.known_rows import Known, known_rows
from headwater.maintenance.rebase import Log, rebase
from headwater.model.position import Tick
from headwater.model.relation import Relation, RelationName
from headwater.observe.probe_stats import ProbeStats


class SourceNeeded(Exception):
    """A source has to be asked whose snapshot is not open."""


@dataclass(slots=True, kw_only=True)
class SelfLookup:
    """The rows that one view's sweep over a batch asks for. The batch begins at `lo`."""

    relations: Mapping[RelationName, Relation]
    columns: Mapping[RelationName, tuple[str, ...]]
    """The columns that the view needs of its relations."""
    net: Mapping[RelationName, Bag]
    """What changes in its relations over the batch, all ticks together."""
    lo: Tick
    log: Log[Bag]
    shown: Sequence[ViewLookup]
    others: RelationLookup
    known_key_count: int = 0

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request. What is left to ask is asked at once."""
        known = [self._known(request) for request in requests]
        left = [_left(request, found) for request, found in zip(requests, known, strict=True)]
        due = tuple(request for request in left if not request.is_empty)
        for request in due:
            if not self._is_copied(request) and request.relation.source not in self.others.snapshots:
                raise SourceNeeded
        found = iter(self.others.lookup(due) if due else ())
        self.known_key_count += sum(len(one.keys) for one in known if one is not None)
        return [
            self._whole(request, one, None if request.is_empty else next(found))
            for request, one in zip(left, known, strict=True)
        ]

    @property
    def asked(self) -> ProbeStats:
        """What sources were asked."""
        return self.others.asked

    def _is_copied(self, request: BagRequest) -> bool:
        return request.relation in self.others.replicas

    def _known(self, request: BagRequest) -> Known[ArrowBag] | None:
        """Return what need not be asked. None where nothing can be known, or a replica has it all, or for very much."""
        if request.keys is None or self._is_copied(request):
            return None
        try:
            return self._known_of(held_request(request), {name: held(bag) for name, bag in self.net.items()})
        except NotHeldError:
            return None

    def _known_of(self, request: ArrowRequest, net: Mapping[RelationName, ArrowBag]) -> Known[ArrowBag]:
        assert request.keys is not None, "only rows under keys are known"
        known = known_rows(request, self.relations[request.relation], net, self.columns)
        for view in self.shown:
            if view.answers(request):
                left = request.with_keys(request.keys.without(known.keys))
                rows = held(look_up(view, replace(left, wanted=view.shown.wanted)).rows)
                keys = rows.keys(request.columns, rows, request.columns)
                both = known.rows.picked(request.wanted).plus(rows.picked(request.wanted))
                known = Known(keys=known.keys.plus(keys), rows=both.net())
        return replace(known, rows=known.rows.picked(request.wanted).net())

    def _whole(self, left: BagRequest, known: Known[ArrowBag] | None, result: BagResult | None) -> BagResult:
        """Return what was known and what was asked as one result."""
        if known is None:
            assert result is not None, "what cannot be known is asked for"
            return result
        rows: Bag = known.rows if result is None else known.rows.plus(rebase(left, result, self.log, self.lo))
        return RowResult(rows=rows, sight=SawTicks(upto=self.lo))


def _left(request: BagRequest, known: Known[ArrowBag] | None) -> BagRequest:
    if known is None or request.keys is None:
        return request
    return request.with_keys(request.keys.without(known.keys))
