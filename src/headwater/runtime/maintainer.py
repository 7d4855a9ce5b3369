"""The maintainer: accept, maintain, commit, for ever.

    accept    (its own threads)  sources ──► change log: every transaction its tick
    maintain  the ticks since the last commit, all views, one batch
    commit    one row: how far every view has come

Invariants
1. One maintainer at a time can append to the change log and commit; another that takes over stops this one.
2. A view's frontier moves only over ticks whose changes are in its table.
3. A view that cannot go on (its source is down, its input is impossible, its SQL raises) stops alone.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError, SourceUnavailable
from headwater.fail_points import reach
from headwater.position import Tick
from headwater.relation import COUNT, RelationName
from headwater.results import RunEnd, RunResult
from headwater.runtime.accepted_log import AcceptedLog
from headwater.runtime.acceptor import Acceptor
from headwater.runtime.batch import ViewChange, change_view
from headwater.runtime.bootstrap import Bootstrap, Bootstrapped
from headwater.runtime.data_errors import is_data_error, stopping_error
from headwater.runtime.events import (
    BatchCommitted,
    BatchStarted,
    Event,
    Idle,
    Listener,
    ProbeAnswered,
    ViewBorn,
    ViewDropped,
    ViewStopped,
)
from headwater.runtime.live_status import write_sources
from headwater.runtime.live_view import LiveView, RetiringView
from headwater.runtime.performer import Performer, ProbeCount, Snapshots
from headwater.runtime.plan import RunPlan
from headwater.runtime.replica_reader import ReplicaReader
from headwater.runtime.truncation import resolve_truncates, truncated_at
from headwater.runtime.understand import Understood
from headwater.runtime.upkeep import Upkeep
from headwater.sources.source import Source
from headwater.warehouse.catalog import Catalog
from headwater.warehouse.commit_record import (
    BatchStatistics,
    Commit,
    CommitKind,
    CommitRecord,
    ViewDelta,
)
from headwater.warehouse.lease import own_name, release_lease, renew_lease
from headwater.warehouse.query import Warehouse

_WAIT_SECONDS = 0.2
_LEASE_SECONDS = 5.0
_STATUS_SECONDS = 0.5
_IDLE_SECONDS = 60.0
_ABSORB_ROWS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How far a batch brought a view, and the changes on the way, if its relations changed."""

    upto: Tick
    change: ViewChange | None = None


class Maintainer:
    """Maintains one warehouse; made by `start_maintainer`."""

    def __init__(
        self,
        *,
        spark: SparkSession,
        warehouse: Warehouse,
        understood: Understood,
        plan: RunPlan,
        epoch: int,
        views: Sequence[LiveView],
        retiring: Mapping[str, RetiringView],
        replicas: dict[RelationName, ReplicaReader],
        listener: Listener,
    ) -> None:
        """Take over what was opened; nothing runs yet. `retiring` views are read as they are until reborn."""
        self.spark = spark
        self.warehouse = warehouse
        self.understood = understood
        self.log = warehouse.log
        self.commits = warehouse.commits
        self.epoch = epoch
        self.views = {view.name: view for view in views}
        self.replicas = replicas
        self.listener = listener
        self.acceptor = Acceptor(warehouse.log, listener, self._resolve)
        self.upkeep = Upkeep(
            spark,
            warehouse.path,
            understood.project.retention,
            lambda: dict(self.replicas),
            lambda: self._needed,
            listener,
        )
        self.bootstrapping: tuple[str, ...] = ()
        self._needed = Tick(0)
        self._plan = plan
        self._retiring = dict(retiring)
        self._unborn: dict[str, HeadwaterError] = {}
        self._halted: dict[str, HeadwaterError] = {}
        self._settled: dict[str, Tick] = {}
        self._bootstrapped: Bootstrapped | BaseException | None = None
        self._bootstrap_thread: threading.Thread | None = None
        self._lease_renewed_at = 0.0
        self._status_written_at = 0.0
        self._stop = threading.Event()
        self._commit_count = 0
        self._row_count = 0

    def stop(self) -> None:
        """Ask the loop to end after the batch at hand; may come from another thread or a signal."""
        self._stop.set()

    def run(self, *, until_idle: bool, ticks: int | None) -> RunResult:
        """Maintain until stopped, until nothing is left to do, or until so many ticks are committed."""
        started, first = time.perf_counter(), self.frontier()
        ended = RunEnd.INTERRUPTED
        try:
            self._start()
            while not self._stop.is_set():
                progressed = self.step()
                if ticks is not None and self.frontier() - first >= ticks:
                    ended = RunEnd.TICKS
                    break
                if not progressed:
                    if until_idle and self._is_idle():
                        ended = RunEnd.IDLE
                        break
                    self.acceptor.wait_for_news(_WAIT_SECONDS)
        finally:
            self.close()
        return RunResult(
            lo=first,
            hi=self.frontier(),
            commit_count=self._commit_count,
            row_count=self._row_count,
            seconds=time.perf_counter() - started,
            ended=ended,
        )

    def close(self) -> None:
        """Stop following, and let the next maintainer begin at once."""
        self._stop.set()
        if self._bootstrap_thread is not None:
            self._bootstrap_thread.join(timeout=_IDLE_SECONDS)
        self.acceptor.stop()
        self.upkeep.stop()
        write_sources(self.warehouse.path, self.acceptor, bootstrapping=False)
        release_lease(self.warehouse.path, self.epoch)

    def frontier(self) -> Tick:
        """Return the newest tick that some view has reached."""
        return max((view.frontier for view in self.views.values()), default=Tick(0))

    def _start(self) -> None:
        self._drop_views()
        self.log.declare(tuple(self.understood.relations.values()))
        for name, source in self.understood.sources.items():
            source.prepare([relation.name for relation in self.understood.followed(name)])
        self.acceptor.start()
        for name, source in self.understood.sources.items():
            self.acceptor.follow(source, self.understood.followed(name))
        self.upkeep.start()
        if self._plan.born or self._plan.copied:
            self._begin_bootstrap(self._plan.born)

    def _drop_views(self) -> None:
        if self._plan.dropped:
            self._commit(CommitKind.CATALOG, catalog=self._catalog())
            for name in self._plan.dropped:
                self.listener(ViewDropped(view=name))

    def step(self) -> bool:
        """Do the next thing: bring newborn views in, or maintain a batch. False: there is nothing to do now."""
        self.acceptor.raise_error()
        self._show_life()
        if self._bootstrapped is not None:
            self._bring_in()
            return True
        return self._maintain()

    def _show_life(self) -> None:
        """Renew the lease, and say how the sources are doing, every now and then."""
        now = time.monotonic()
        if now - self._lease_renewed_at > _LEASE_SECONDS:
            renew_lease(self.warehouse.path, self.epoch)
            self._lease_renewed_at = now
        if now - self._status_written_at > _STATUS_SECONDS:
            write_sources(self.warehouse.path, self.acceptor, bootstrapping=bool(self.bootstrapping))
            self._status_written_at = now

    def _is_idle(self) -> bool:
        """Tell whether everything is committed that the sources had committed when asked."""
        if self._bootstrap_thread is not None:
            return False
        before = self.log.last_tick
        for source in self.understood.sources.values():
            if not self._is_followed_to_now(source):
                return False
        live = [view for view in self.views.values() if view.stopped is None]
        if self.log.last_tick != before or any(view.frontier < before for view in live):
            return False
        for error in self._unborn.values():
            raise error
        self.listener(Idle(tick=before))
        return True

    def _is_followed_to_now(self, source: Source) -> bool:
        """Tell whether all that a source has committed is in the log; one that never will be raises why."""
        thread = self.acceptor.threads()[source.name]
        if thread.has_ended and thread.error is not None:
            raise thread.error
        try:
            with source.snapshot() as snapshot:
                return self.acceptor.wait_for(snapshot.position, _IDLE_SECONDS)
        except SourceUnavailable:
            return False

    # ── bootstrap ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin_bootstrap(self, views: tuple[str, ...]) -> None:
        job = Bootstrap(
            spark=self.spark,
            warehouse=self.warehouse.path,
            understood=self.understood,
            views=views,
            copied=self._plan.copied,
            acceptor=self.acceptor,
            log=self.log,
            listener=self._tell_unless_stopped,
        )
        replicas = dict(self.replicas)
        self.bootstrapping = views

        def work() -> None:
            while True:
                try:
                    self._bootstrapped = job.run(replicas)
                except SourceUnavailable:
                    if self._stop.wait(_WAIT_SECONDS * 5):
                        return
                    continue
                except _Stopped:
                    return
                except BaseException as error:  # noqa: BLE001 - raised again by the loop
                    self._bootstrapped = error
                return

        self._bootstrap_thread = threading.Thread(target=work, name="bootstrap", daemon=True)
        self._bootstrap_thread.start()

    def _tell_unless_stopped(self, event: Event) -> None:
        """Pass on what a bootstrap tells, or end it there: the next maintainer goes on from the chunks it has."""
        if self._stop.is_set():
            raise _Stopped
        self.listener(event)

    def _bring_in(self) -> None:
        """Make newborn views readable from their birth on; from now on they are in every batch."""
        made, self._bootstrapped = self._bootstrapped, None
        self._bootstrap_thread = None
        self.bootstrapping = ()
        if isinstance(made, BaseException):
            raise made
        assert made is not None, "a bootstrap that ended has made something"
        for reader in made.replicas:
            replaced = self.replicas.get(reader.relation.name)
            self.replicas[reader.relation.name] = reader
            if replaced is not None:
                replaced.release()
        for name, error in made.failed.items():
            self._unborn[name] = error
            if name in self._retiring:
                self._retiring[name] = self._retiring[name].stopped_by(error)
        for newborn in made.views:
            self._retiring.pop(newborn.entry.name, None)
            self.views[newborn.entry.name] = LiveView(
                understood=newborn.understood, entry=newborn.entry, table=newborn.table, frontier=newborn.entry.birth
            )
        self._commit(CommitKind.CATALOG, catalog=self._catalog())
        for newborn in made.views:
            self.listener(ViewBorn(view=newborn.entry.name, tick=newborn.entry.birth, row_count=-1))
        for name, error in made.failed.items():
            self.listener(ViewStopped(view=name, tick=made.tick, error=error))

    # ── batches ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _maintain(self) -> bool:
        """Bring every view that can go on to the end of a batch, in one commit."""
        last = self.log.last_tick
        due = [view for view in self.views.values() if view.stopped is None and view.frontier < last]
        if not due:
            return False
        started = time.perf_counter()
        lo = min(view.frontier for view in due)
        settled = dict(self._settled)
        accepted = AcceptedLog(self.log, settled)
        self._halted = {}
        with Snapshots(self.understood.sources, self.acceptor) as snapshots:
            self._open_snapshots(snapshots, due, last, accepted)
            hi = self._end_of_batch(due, lo, last, snapshots)
            opened = time.perf_counter()
            self.listener(BatchStarted(lo=lo, hi=hi))
            asked: dict[RelationName, ProbeCount] = {}
            outcomes = {view.name: self._change(view, hi, accepted, snapshots, asked) for view in due}
            if asked and not snapshots.are_valid():
                # a server restarted while it was asked: what its snapshot saw may be lost, so nothing of this counts
                for name in self._halted:
                    self.views[name].stopped = None
                return False
        self._settled = settled
        for name, error in self._halted.items():
            self.listener(ViewStopped(view=name, tick=outcomes[name].upto, error=error))
        computed = time.perf_counter()
        rows = {name: self._append(self.views[name], outcome) for name, outcome in outcomes.items()}
        appended = time.perf_counter()
        if not self._halted and not any(view.frontier < outcomes[view.name].upto for view in due):
            return False
        for view in due:
            view.frontier = outcomes[view.name].upto
        done = [outcome.change for outcome in outcomes.values() if outcome.change is not None]
        seconds = {
            "snapshot": opened - started,
            "probe": sum(change.seconds_asking for change in done),
            "spark": sum(change.seconds_joining for change in done),
            "compute": computed - opened,
            "append": appended - computed,
        }
        statistics = BatchStatistics(
            lo=lo,
            hi=hi,
            seconds=seconds,
            rows={name: delta for name, delta in rows.items() if delta is not None},
            probe_count=sum(count.probe_count for count in asked.values()),
            answer_count=sum(count.row_count for count in asked.values()),
            byte_count=sum(count.byte_count for count in asked.values()),
        )
        self._commit(CommitKind.BATCH, statistics=statistics)
        seconds = {**seconds, "commit": time.perf_counter() - appended}
        row_count = sum(delta.rows_added + delta.rows_removed for delta in rows.values() if delta is not None)
        self._row_count += row_count
        self._commit_count += 1
        self.listener(BatchCommitted(lo=lo, hi=hi, row_count=row_count, seconds=seconds))
        self._absorb()
        return True

    def _open_snapshots(self, snapshots: Snapshots, due: Sequence[LiveView], last: Tick, log: AcceptedLog) -> None:
        """Open one snapshot of every source that a view with changes will ask; a view whose source is away waits."""
        for view in due:
            view.waiting = None
        asked = dict.fromkeys(
            name.source for view in due if self._is_touched(view, last) for name in self._probed(view)
        )
        for source in asked:
            try:
                snapshots.open(source)
                log.settle(source, snapshots.sight(source))
            except SourceUnavailable as error:
                for view in due:
                    if any(name.source == source for name in self._probed(view)):
                        view.waiting = error

    def _probed(self, view: LiveView) -> list[RelationName]:
        return [name for name in view.understood.view.relations if name not in self.replicas]

    def _is_touched(self, view: LiveView, upto: Tick) -> bool:
        relations = view.understood.view.relations.items()
        return any(self.log.rows(name, columns[:1], view.lo, upto).num_rows for name, columns in relations)

    def _end_of_batch(self, due: Sequence[LiveView], lo: Tick, last: Tick, snapshots: Snapshots) -> Tick:
        """Choose where the batch ends: as late as can be, unless a view would need a source that was not opened."""
        hi = min(self.log.last_tick, Tick(lo + self.understood.project.batch_ticks))
        for view in due:
            if all(name.source in snapshots for name in self._probed(view)) or view.waiting is not None:
                continue
            if self._is_touched(view, hi):
                return min(hi, last)
        return hi

    def _change(
        self,
        view: LiveView,
        hi: Tick,
        log: AcceptedLog,
        snapshots: Snapshots,
        asked: dict[RelationName, ProbeCount],
    ) -> Outcome:
        """Compute a view's changes up to the end of the batch; what goes wrong stops this view or makes it wait."""
        if view.waiting is not None:
            return Outcome(upto=view.frontier)
        if view.lo >= hi:
            return Outcome(upto=view.lo)
        performer = Performer(self.understood.relations, self.replicas, snapshots)
        compute = _Compute(self, view, log, performer)
        end = self._before_truncate(view, hi)
        try:
            return Outcome(upto=end, change=compute.upto(end))
        except SourceUnavailable as error:
            view.waiting = error
        except HeadwaterError as error:
            self._stop_view(view, error)
        except Exception as error:
            if not is_data_error(error):
                raise
            good, change = compute.before_error(end)
            [(tick, transaction)] = self.log.transactions(None, good, Tick(good + 1))
            self._stop_view(view, stopping_error(view.name, error, tick, transaction))
            return Outcome(upto=good, change=change)
        finally:
            self._note(view, performer, log, asked)
        return Outcome(upto=view.frontier)

    def _before_truncate(self, view: LiveView, hi: Tick) -> Tick:
        """Return the end of the batch, or the tick before a probed relation was truncated: its rows are gone."""
        for name in self._probed(view):
            tick = truncated_at(self.log, name, view.lo, hi)
            if tick is not None:
                self._stop_view(
                    view,
                    HeadwaterError(
                        f'view "{view.name}" cannot go past tick {tick}',
                        code="HW-521",
                        detail=f"{name} was truncated; which rows went can no longer be asked for",
                        hint=f"run `headwater run --rebuild {view.name}`, or read {name} as a replica",
                    ),
                )
                hi = min(hi, Tick(tick - 1))
        return hi

    def _stop_view(self, view: LiveView, error: HeadwaterError) -> None:
        view.stop(error)
        self._halted[view.name] = error

    def _note(
        self, view: LiveView, performer: Performer, log: AcceptedLog, asked: dict[RelationName, ProbeCount]
    ) -> None:
        corrected, log.corrected = log.corrected, Counter()
        for name, count in performer.asked.items():
            asked.setdefault(name, ProbeCount()).add(count)
            self.listener(
                ProbeAnswered(
                    view=view.name,
                    relation=name,
                    key_count=count.key_count,
                    row_count=count.row_count,
                    byte_count=count.byte_count,
                    corrected_rows=corrected[name],
                    seconds=count.seconds,
                )
            )

    def _append(self, view: LiveView, outcome: Outcome) -> ViewDelta | None:
        change = outcome.change
        if change is None:
            return None
        view.table.append(change.rows, outcome.upto)
        counts = change.rows[COUNT]
        positive = pc.sum(pc.if_else(pc.greater(counts, 0), counts, 0)).as_py() or 0
        return ViewDelta(rows_added=positive, rows_removed=positive - (pc.sum(counts).as_py() or 0))

    def _commit(
        self, kind: CommitKind, *, statistics: BatchStatistics | None = None, catalog: Catalog | None = None
    ) -> Commit:
        reach(f"before {kind.value} commit")
        shown = self._shown()
        record = CommitRecord(
            frontiers={name: view.frontier for name, view in shown.items()},
            stopped={name: view.stopped for name, view in shown.items() if view.stopped is not None},
            positions=dict(self.log.positions()),
            holder=own_name(),
            statistics=statistics,
        )
        tick = max((view.frontier for view in self.views.values()), default=self.log.last_tick)
        return self.commits.commit(kind, tick, record, epoch=self.epoch, catalog=catalog)

    def _shown(self) -> dict[str, LiveView | RetiringView]:
        """Return the views that can be read, each in the version that is readable now."""
        return {**self._retiring, **self.views}

    def _catalog(self) -> Catalog:
        """Return what is kept, now."""
        return Catalog(
            views={name: view.entry for name, view in self._shown().items()},
            replicas={name: reader.entry for name, reader in self.replicas.items()},
        )

    # ── replicas ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _absorb(self) -> None:
        """Lay what was committed on the replicas once it is much, and let the log's tail go."""
        live = [view.lo for view in self.views.values() if view.stopped is None]
        frontier = min(live, default=self.log.last_tick)
        for name, fresh in list(self.upkeep.refreshed.items()):
            if self.replicas[name].entry == fresh.entry:  # not widened meanwhile
                self.replicas[name].release()
                self.replicas[name] = fresh
            del self.upkeep.refreshed[name]
        for reader in self.replicas.values():
            rows = self.log.rows(reader.relation.name, reader.columns, reader.tick, frontier)
            if rows.num_rows >= _ABSORB_ROWS:
                reader.absorb(rows, frontier)
        needed = [frontier, *(reader.tick for reader in self.replicas.values()), *self._settled.values()]
        if self._bootstrap_thread is None:
            self._needed = min(needed)
            self.log.tail.trim(self._needed)

    def _resolve(self, capture: Any) -> Any:
        """Complete a capture with the rows that a TRUNCATE removed."""
        return resolve_truncates(capture, self.log, self.replicas)


class _Stopped(Exception):
    """Ends a bootstrap whose maintainer was asked to stop."""


class _Compute:
    """One view's batch, computed whole, or up to the tick before the first that raises."""

    def __init__(self, maintainer: Maintainer, view: LiveView, log: AcceptedLog, performer: Performer) -> None:
        self._spark = maintainer.spark
        self._view = view
        self._log = log
        self._performer = performer

    def upto(self, hi: Tick) -> ViewChange | None:
        understood = self._view.understood
        return change_view(
            self._spark,
            understood.view,
            self._view.table.changes.schema(),
            understood.guarantee,
            (self._view.lo, hi),
            self._log,
            self._performer,
        )

    def before_error(self, hi: Tick) -> tuple[Tick, ViewChange | None]:
        """Return the last tick whose state can be computed, by halving, and the changes up to it."""
        good, bad, change = self._view.lo, hi, None
        while bad - good > 1:
            middle = Tick((good + bad) // 2)
            try:
                change = self.upto(middle)
                good = middle
            except Exception as error:
                if not is_data_error(error):
                    raise
                bad = middle
        return good, change
