"""One batch over all views that are due: open snapshots, choose where it ends, compute every view's change.

Nothing is written here and no view is touched: the maintainer takes the outcomes over, or throws them away if a source
restarted while it was asked. A view that cannot go on has an outcome of its own; the others go on.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow.compute as pc

from headwater.changelog.accept import Acceptor
from headwater.changelog.change_log import ChangeLog
from headwater.deltas.extent import all_rows
from headwater.deltas.stored_bag import Bag
from headwater.engine.batch.join_batch import ViewChange, base_changes
from headwater.engine.batch.segment_batch import compute_view_delta
from headwater.engine.batch.side_by_side import SideBySide
from headwater.engine.state.accepted_log import AcceptedLog, sized_changes
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.engine.state.live_view import LiveView
from headwater.engine.state.relation_lookup import CountedLookup, RelationLookup, Snapshots
from headwater.engine.state.replica_reader import ReplicaReader, contents
from headwater.engine.state.runner import Runner
from headwater.engine.state.self_lookup import SelfLookup, SourceNeeded
from headwater.engine.state.truncation import before_truncate
from headwater.engine.state.view_lookup import view_lookups
from headwater.errors import HeadwaterError, SourceUnavailable
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import Maintenance
from headwater.model.position import Tick
from headwater.model.relation import TICK, RelationName
from headwater.observe.events import BatchStarted, Listener, SelfMaintenanceTested, ViewComputed
from headwater.observe.probe_stats import ProbeStats
from headwater.project.resolve import ResolvedProject
from headwater.spark.jobs import shared
from headwater.spark.view_errors import is_view_error, stopping_error
from headwater.storage.storage_errors import befalls_all
from headwater.storage.stored_rows import count_parts
from headwater.warehouse.commit_record import ViewDelta
from headwater.warehouse.journal import TableChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How far a batch brings a view, its changes on the way, and why it cannot go on from there, if it cannot.

    `asked` is what sources were asked for it.
    """

    upto: Tick
    change: ViewChange | None = None
    halt: HeadwaterError | None = None
    asked: ProbeStats = field(default_factory=ProbeStats)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """What one batch (lo, hi] found, what it asked, and where the time went."""

    lo: Tick
    hi: Tick
    outcomes: Mapping[str, Outcome]
    asked: ProbeStats
    settled: Mapping[str, Tick]
    seconds: Mapping[str, float]
    is_valid: bool
    """False if a source restarted while it was asked: what its snapshot saw may be lost, so nothing of this counts."""

    @classmethod
    def of_nothing(cls, tick: Tick, settled: Mapping[str, Tick]) -> Self:
        """Return the result of a batch of no view."""
        return cls(lo=tick, hi=tick, outcomes={}, asked=ProbeStats(), settled=settled, seconds={}, is_valid=True)

    def joined_by(self, outcomes: Mapping[str, Outcome]) -> RoundResult:
        """Return what counts of this, with how far other views have come meanwhile."""
        changes = [outcome.change for outcome in outcomes.values() if outcome.change is not None]
        seconds = dict(self.seconds)
        if changes:
            seconds["probe"] = seconds.get("probe", 0.0) + sum(change.seconds_asking for change in changes)
            seconds["spark"] = seconds.get("spark", 0.0) + sum(change.seconds_joining for change in changes)
        kept = self.outcomes if self.is_valid else {}
        hi = max([self.hi if kept else Tick(0), *(outcome.upto for outcome in outcomes.values())])
        return replace(
            self,
            outcomes={**kept, **outcomes},
            asked=ProbeStats.merge([self.asked, *(outcome.asked for outcome in outcomes.values())]),
            hi=hi,
            lo=min(self.lo, hi),
            seconds=seconds,
            is_valid=True,
        )


def gathered(view: LiveView, outcome: Outcome, changes: dict[str, TableChange]) -> ViewDelta | None:
    """Add what a batch found for a view to what the commit will carry, and return what it did to the view."""
    change = outcome.change
    if change is None:
        return None
    view.gather(change, outcome.upto, changes)
    added, total = 0, 0
    for counts in count_parts(change.rows):
        added += pc.sum(pc.if_else(pc.greater(counts, 0), counts, 0)).as_py() or 0
        total += pc.sum(counts).as_py() or 0
    return ViewDelta(
        rows_added=added,
        rows_removed=added - total,
        changed_rows=change.changed_rows,
        read_rows=sum(change.read_rows.values()),
        asked=outcome.asked.by_source(),
        seconds=change.seconds_asking + change.seconds_joining,
    )


def independent_groups(views: Sequence[LiveView]) -> list[list[LiveView]]:
    """Divide views so that those of two groups have no step and no auxiliary table in common, in the order given."""
    groups: list[tuple[set[object], list[LiveView]]] = []
    for view in views:
        steps = {segment.name for segment in view.resolved.view.segments[:-1]} if view.resolved.shares else set()
        held: set[object] = {*steps, *view.segments.values()}
        joined = [group for group in groups if group[0] & held]
        groups = [group for group in groups if not group[0] & held]
        groups.append((held.union(*(one for one, _ in joined)), [*(one for _, some in joined for one in some), view]))
    return [some for _, some in groups]


def free_beside(views: Mapping[str, LiveView], late: Collection[str]) -> list[LiveView]:
    """Return the views that can be computed while others are: those that have no auxiliary table in common with them.

    A view that comes to a tick takes the rows of its tables along, and a late one looks them up as they were.
    """
    read = {table for name in late for table in views[name].segments.values()}
    return [view for name, view in views.items() if name not in late and not read & {*view.segments.values()}]


@dataclass(slots=True, kw_only=True)
class Round:
    """What a batch works with."""

    runner: Runner
    resolved: ResolvedProject
    log: ChangeLog
    acceptor: Acceptor
    replicas: Mapping[RelationName, ReplicaReader]
    settled: dict[str, Tick]
    listener: Listener
    beside: SideBySide[Outcome]
    """Computes views beside each other."""
    _waiting: set[str] = field(default_factory=set)
    _asked: list[ProbeStats] = field(default_factory=list)
    _computed: dict[tuple[Tick, Tick], dict[RelationName, Bag]] = field(default_factory=dict)
    """How segments that views share change over some ticks, each computed once."""

    def run(self, due: Sequence[LiveView]) -> RoundResult:
        """Compute the views that are due, up to one tick for all."""
        started, last = time.perf_counter(), self.log.last_tick
        lo = min(view.frontier for view in due)
        accepted = self._log()
        resolved, wait_seconds = self.resolved, self.resolved.project.settings.batch.follow_wait_seconds
        with Snapshots(resolved.sources, resolved.relations, self.acceptor, wait_seconds, self.runner) as snapshots:
            outcomes = self._unasked(due, min(last, self._latest(lo)), snapshots)
            left = [view for view in due if view.name not in outcomes]
            self._open(snapshots, left, last, accepted)
            lo = min((v.frontier for v in due if v.name not in self._waiting), default=lo)  # who waits holds nobody up
            hi = self._end(left, lo, last, snapshots)
            opened = time.perf_counter()
            self.listener(BatchStarted(lo=lo, hi=hi))
            taken = {table for view in due if view.name in outcomes for table in view.segments.values()}
            outcomes |= self._outcomes(left, hi, snapshots, taken)
            asked = ProbeStats.merge(self._asked)
            is_valid = not asked or snapshots.are_valid()
        changes = [outcome.change for outcome in outcomes.values() if outcome.change is not None]
        seconds = {
            "snapshot": opened - started,
            "probe": sum(change.seconds_asking for change in changes),
            "spark": sum(change.seconds_joining for change in changes),
            "compute": time.perf_counter() - opened,
        }
        return RoundResult(
            lo=lo,
            hi=hi,
            outcomes=outcomes,
            asked=asked,
            settled=self.settled,
            seconds=seconds,
            is_valid=is_valid,
        )

    def _log(self) -> AcceptedLog[Bag]:
        """Return the log as one view sees it, which counts what had to be corrected for that view."""
        return AcceptedLog(self.log, self.settled, sized_changes(self.log, self.runner.spark, self.runner.held_rows))

    def _outcomes(
        self, views: Sequence[LiveView], hi: Tick, snapshots: Snapshots, taken: Collection[AuxiliaryTable]
    ) -> dict[str, Outcome]:
        """Compute views, as many at a time as there are threads. Those that share steps or tables follow each other.

        Tables that are `taken` are brought forward once the batch ends, so nobody is late who looks rows up there.
        """
        named = {view.name: view for view in views}

        def follow(some: Sequence[str]) -> dict[str, Outcome]:
            return {name: self._outcome(named[name], hi, snapshots) for name in some}

        groups = [[view.name for view in some] for some in independent_groups(views)]
        if not self.beside.has_threads or len(groups) == 1:
            return follow(list(named))
        in_time = [
            name
            for name, view in named.items()
            if self._probed(view) or any(one in taken for one in view.segments.values())  # snapshots end with it, too
        ]
        found = self.beside.run(groups, shared(follow), in_time)
        return {name: found[name] for name in named if name in found}

    def _unasked(self, due: Sequence[LiveView], hi: Tick, snapshots: Snapshots) -> dict[str, Outcome]:
        """Return the outcomes of the views that decide by the batch, and this time need not ask: none is open yet."""
        found = {}
        for view in due:
            if view.resolved.maintenance is Maintenance.RUNTIME and self._is_touched(view, hi):
                with suppress(SourceNeeded):
                    found[view.name] = self._outcome(view, hi, snapshots)
        return found

    def _latest(self, lo: Tick) -> Tick:
        return Tick(lo + self.resolved.project.batch_ticks)

    def _open(self, snapshots: Snapshots, due: Sequence[LiveView], last: Tick, log: AcceptedLog[Bag]) -> None:
        """Open one snapshot of every source that a view with changes will ask. A view whose source is away waits."""
        touched = [view for view in due if self._is_touched(view, last)]
        asked = dict.fromkeys(name.source for view in touched for name in self._probed(view))
        away = snapshots.open(asked)
        for source in asked.keys() - away:
            log.settle(source, snapshots.sight(source))
        self._waiting |= {view.name for view in due if any(name.source in away for name in self._probed(view))}

    def _probed(self, view: LiveView) -> tuple[RelationName, ...]:
        return view.resolved.asks(contents(self.replicas))

    def _is_touched(self, view: LiveView, upto: Tick) -> bool:
        relations = view.resolved.view.relations
        return any(any(self.log.parts(name, (), view.frontier, upto)) for name in relations)

    def _before_many(self, view: LiveView, upto: Tick) -> Tick:
        """Return the last tick of as many changes of a view's relations as are computed in one batch, tick by tick.

        A view that is computed from whole inputs at every tick holds the others up, and no longer than that.
        """
        parts = (
            part for name in view.resolved.view.relations for part in self.log.parts(name, (), view.frontier, upto)
        )
        ticks = sorted({Tick(tick) for part in parts for tick in part[TICK].unique().to_pylist()})
        most = self.resolved.project.settings.batch.recomputed_ticks
        return upto if len(ticks) <= most else ticks[most - 1]

    def _end(self, due: Sequence[LiveView], lo: Tick, last: Tick, snapshots: Snapshots) -> Tick:
        """Choose where the batch ends: as late as can be, unless a view would need a source that was not opened."""
        hi = min(self.log.last_tick, self._latest(lo))
        for view in due:
            if view.name in self._waiting or all(name.source in snapshots for name in self._probed(view)):
                continue
            if self._is_touched(view, hi):
                return min(hi, last)
        return hi

    def _outcome(self, view: LiveView, hi: Tick, snapshots: Snapshots) -> Outcome:
        """Compute a view's changes up to the end of the batch, or as far as they can be computed."""
        if view.name in self._waiting:
            return Outcome(upto=view.frontier)
        hi = self._before_many(view, hi) if view.resolved.is_recomputed_per_tick else hi
        if view.frontier >= hi:
            return Outcome(upto=view.frontier)
        end, halt = before_truncate(self.log, view.name, self._probed(view), view.frontier, hi)
        log = self._log()
        lookup = self._lookup(view, end, log, snapshots)
        try:
            change = self._change(view, end, log, lookup)
            self._require_rows(view, lookup.asked)
            self._tell(view, end, change, lookup)
            return Outcome(upto=end, change=change, halt=halt, asked=lookup.asked)
        except SourceUnavailable:
            return Outcome(upto=view.frontier)
        except Exception as error:  # what is not the view's own is raised again
            if is_view_error(error) and not isinstance(error, SourceNeeded):
                return self._before_error(view, end, log, lookup, error)
            if not isinstance(error, HeadwaterError) or befalls_all(error):
                raise
            return Outcome(upto=view.frontier, halt=error)
        finally:
            self._note(view, lookup, log)

    def _before_error(
        self, view: LiveView, end: Tick, log: AcceptedLog[Bag], lookup: CountedLookup, error: Exception
    ) -> Outcome:
        """Return how far a view comes before the tick that raises, and why it stops there."""
        good, change = self._change_before_error(view, end, log, lookup)
        (tick, transaction), *_ = self.log.transactions(None, good, Tick(good + 1))
        halt = stopping_error(view.name, error, tick, transaction)
        return Outcome(upto=good, change=change, halt=halt, asked=lookup.asked)

    def _lookup(self, view: LiveView, upto: Tick, log: AcceptedLog[Bag], snapshots: Snapshots) -> CountedLookup:
        """Return where rows are looked up for a view over a batch."""
        resolved, asks = view.resolved, self._probed(view)
        copies = {name: reader for name, reader in self.replicas.items() if name not in asks}
        others = RelationLookup(relations=self.resolved.relations, replicas=copies, snapshots=snapshots)
        if resolved.maintenance is not Maintenance.RUNTIME:
            return others
        columns = resolved.view.relations
        return SelfLookup(
            relations=self.resolved.relations,
            columns=columns,
            net=base_changes(all_rows(columns), Guarantee.STRONG, (view.frontier, upto), log),
            lo=view.frontier,
            log=log,
            shown=view_lookups(
                self.runner.spark,
                resolved.view,
                view.table,
                view.frontier,
                view.readers,
                self.resolved.project.settings.batch.lookup_rows,
            ),
            others=others,
        )

    def _change(self, view: LiveView, upto: Tick, log: AcceptedLog[Bag], lookup: CountedLookup) -> ViewChange | None:
        resolved, span = view.resolved, (view.frontier, upto)
        computed = self._computed.setdefault(span, {}) if resolved.shares else {}
        return compute_view_delta(
            self.runner,
            resolved.view,
            view.table.changes.schema(),
            resolved.guarantee,
            span,
            log,
            lookup,
            view.readers,
            computed,
            view.folders,
        )

    def _require_rows(self, view: LiveView, asked: Iterable[RelationName]) -> None:
        """Refuse answers of a relation that was truncated meanwhile: rows that are needed can no longer be asked for.

        Whether the snapshot shows the TRUNCATE does not matter: to an older one the relation is empty as well.
        """
        _, gone = before_truncate(self.log, view.name, list(asked), view.frontier, self.log.last_tick)
        if gone is not None:
            raise gone

    def _tell(self, view: LiveView, upto: Tick, change: ViewChange | None, lookup: CountedLookup) -> None:
        if change is not None and lookup.known_key_count is not None:
            self.listener(
                SelfMaintenanceTested(
                    view=view.name,
                    lo=view.frontier,
                    hi=upto,
                    suffices=not lookup.asked,
                    known_key_count=lookup.known_key_count,
                )
            )
        if change is not None:
            self.listener(
                ViewComputed(
                    view=view.name,
                    lo=view.frontier,
                    hi=upto,
                    changed_rows=change.changed_rows,
                    read_rows=change.read_rows,
                    row_count=change.rows.most,
                )
            )

    def _change_before_error(
        self, view: LiveView, end: Tick, log: AcceptedLog[Bag], lookup: CountedLookup
    ) -> tuple[Tick, ViewChange | None]:
        """Return the last tick whose state can be computed, by halving, and the changes up to it."""
        good, bad, change = view.frontier, end, None
        while bad - good > 1:
            middle = Tick((good + bad) // 2)
            try:
                change = self._change(view, middle, log, lookup)
                good = middle
            except Exception as error:  # what is not the view's own is raised again
                if not is_view_error(error):
                    raise
                bad = middle
        return good, change

    def _note(self, view: LiveView, lookup: CountedLookup, log: AcceptedLog[Bag]) -> None:
        """Count what was asked for a view, and what had to be corrected in it."""
        lookup.asked.take_corrected(log.corrected)
        log.corrected = Counter()
        self._asked.append(lookup.asked)
        lookup.asked.tell(self.listener, view.name)
