"""The maintainer: accept, maintain, commit, for ever.

    accept    (its own threads)  sources ──► change log: every transaction its tick
    maintain  the ticks since the last commit, all views, one batch
    commit    one append: how far every view has come, and its changes up to there

Invariants
1. One maintainer at a time can append to the change log and commit; another that takes over stops this one.
2. A view's frontier moves with its changes, in the same append.
3. A view that cannot go on (its source is down, its input is impossible, its SQL raises) stops alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import MappingProxyType

from pyspark.sql import SparkSession

from headwater.changelog.accept import Acceptor
from headwater.changelog.follow import SourceThread, raise_if_lost
from headwater.changelog.global_transaction_buffer import Holding
from headwater.engine.batch.round import Outcome, Round, RoundResult, free_beside, gathered
from headwater.engine.batch.side_by_side import SideBySide
from headwater.engine.batch.timetable import Timetable
from headwater.engine.bootstrap.adoption import Adoption, adoptable_tables, come_to, decide_adoption
from headwater.engine.bootstrap.bootstrap import Bootstrap, Bootstrapped
from headwater.engine.bootstrap.kept_segments import with_own_rows
from headwater.engine.bootstrap.staging import forget_staged
from headwater.engine.bootstrap.thread import BootstrapThread
from headwater.engine.published.driver import Correspondences
from headwater.engine.service.heartbeat import SignsOfLife
from headwater.engine.service.live_status import memory_status
from headwater.engine.service.upkeep import Upkeep
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.engine.state.live_view import LiveView, RetiringView
from headwater.engine.state.replica_reader import ReplicaReader, contents
from headwater.engine.state.runner import Runner
from headwater.engine.state.truncation import resolve_truncates
from headwater.errors import HeadwaterError, LoginRefused, SourceUnavailable
from headwater.fail_points import reach
from headwater.model.keeping import Continuous
from headwater.model.memory_budget import MemoryBudget
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture
from headwater.observe.events import (
    BatchCommitted,
    Idle,
    Listener,
    SourceWarning,
    ViewBorn,
    ViewDropped,
    ViewStopped,
    fan_out,
)
from headwater.observe.messages import Messages
from headwater.project.global_sources import global_sources
from headwater.project.plan import RunPlan
from headwater.project.plan_result import RunEnd, RunResult
from headwater.project.resolve import ResolvedProject, followed_relations
from headwater.project.slot_claims import slot_warnings, take_slot
from headwater.sources.source import Source, shown_positions
from headwater.spark.jobs import SparkJobs
from headwater.spark.session import memory_limit
from headwater.storage.object_store import store_at
from headwater.storage.storage_errors import stored
from headwater.warehouse.catalog import Catalog
from headwater.warehouse.commit_record import BatchStatistics, Commit, CommitKind, CommitRecord
from headwater.warehouse.folders import BATCH_SCRATCH, scratch_folder
from headwater.warehouse.journal import TableChange
from headwater.warehouse.lease import own_name
from headwater.warehouse.mailbox import Releases
from headwater.warehouse.query import Warehouse

_WAIT_SECONDS = 0.2
_LATE_WAIT_SECONDS = 0.02


class Maintainer:
    """Maintains one warehouse. Made by `start_maintainer`."""

    def __init__(
        self,
        *,
        spark: SparkSession,
        warehouse: Warehouse,
        resolved: ResolvedProject,
        plan: RunPlan,
        epoch: int,
        views: Sequence[LiveView],
        retiring: Mapping[str, RetiringView],
        replicas: dict[RelationName, ReplicaReader],
        budget: MemoryBudget,
        listener: Listener,
    ) -> None:
        """Take over what was opened. Nothing runs yet. `retiring` views are read as they are until reborn.

        What was opened has taken its memory from the budget.
        """
        self.spark = spark
        self.budget = budget
        self.warehouse = warehouse
        self.resolved = resolved
        self.settings = settings = resolved.project.settings
        self.log = warehouse.log
        self.commits = warehouse.commits
        self.epoch = epoch
        self.views = {view.name: view for view in views}
        self.replicas = replicas
        look_seconds = settings.service.remote_look_interval_seconds
        self.timetable = Timetable(warehouse.path, warehouse.head().record.refreshed_at, look_seconds)
        self._auxiliary = {auxiliary.name: auxiliary for view in views for auxiliary in view.segments.values()}
        self._messages = Messages()
        self.listener = listener = fan_out(self._messages, listener)
        releases = Releases(warehouse.path, look_seconds)
        holding = Holding(global_sources(resolved), releases.look, settings.capture, budget)
        self.acceptor = Acceptor(warehouse.log, listener, self._resolve, holding, settings.capture, budget)
        self._correspondences = Correspondences(spark, resolved, warehouse.log, self.acceptor, listener)
        self.upkeep = Upkeep(
            spark,
            warehouse.path,
            resolved.project,
            lambda: dict(self.replicas),
            self._auxiliary_tables,
            lambda: self._needed,
            warehouse.commits.journal,
            budget,
            listener,
        )
        self._runner = Runner(
            spark=spark,
            held_rows=budget.batch_rows(settings.batch.held_rows),
            scratch=scratch_folder(warehouse.path, BATCH_SCRATCH),
        )
        at_once = min(settings.batch.views_at_once, os.cpu_count() or 1)
        self._beside: SideBySide[Outcome] = SideBySide(at_once, settings.batch.slow_view_wait_seconds)
        self._give_log(replicas.values())
        self._needed = Tick(0)
        self.plan = plan
        self._retiring = dict(retiring)
        self._unborn: dict[str, HeadwaterError] = dict(plan.failed)
        self._settled: dict[str, Tick] = {}
        self._due_since: float | None = None
        self._bootstrap: BootstrapThread | None = None
        self._made_at: float | None = None
        self._replacing = threading.Lock()
        self._truncated: dict[RelationName, Tick] = {}
        """After which ticks relations were truncated; by `_replacing` it is known which replicas told the rows."""
        self._signs = SignsOfLife(
            warehouse.path,
            epoch,
            self.acceptor,
            self._messages,
            partial(memory_status, budget, self.acceptor, self.log, self.commits.journal, memory_limit(spark)),
            lambda: self._bootstrap is not None,
            settings.service,
        )
        self._stop = threading.Event()
        self._has_enough = False
        """Whether no further batch begins: only late views are waited for."""
        self._commit_count = 0
        self._commit_seconds: float | None = None
        self._row_count = 0

    def stop(self) -> None:
        """Ask the loop to end after the current batch. May come from another thread or a signal."""
        self._stop.set()

    def run(self, *, until_idle: bool, ticks: int | None, fail_fast: bool = False) -> RunResult:
        """Maintain until stopped, until nothing is left to do, or until this many ticks are committed.

        Whatever cannot be accepted, appended or committed is raised, and so is the loss of all sources; with
        `fail_fast`, or when it should end idle, the loss of one.
        """
        with stored(self.warehouse.path):
            return self._run(until_idle=until_idle, ticks=ticks, fail_fast=fail_fast)

    def _run(self, *, until_idle: bool, ticks: int | None, fail_fast: bool) -> RunResult:
        started, first = time.perf_counter(), self.frontier()
        ended = RunEnd.INTERRUPTED
        try:
            self.begin()
            while not self._stop.is_set():
                self._has_enough = ticks is not None and self.frontier() - first >= ticks
                progressed = self.step()
                raise_if_lost(self.acceptor.threads(), any_one=fail_fast)
                if ticks is not None and self.frontier() - first >= ticks and not self._beside.late:
                    ended = RunEnd.TICKS
                    break
                if not progressed:
                    if until_idle and self._is_idle():
                        ended = RunEnd.IDLE
                        break
                    self.acceptor.wait_for_news(_WAIT_SECONDS)
        finally:
            self.close()
        self.acceptor.raise_error()  # what was handed over until the end is accepted too
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
        with ExitStack() as last_first:  # whatever fails, the others are stopped
            for stop in (self._signs.stop, self.upkeep.stop, self.acceptor.stop, self._correspondences.close):
                last_first.callback(stop)
            last_first.callback(self._beside.close)
            if self._bootstrap is not None:
                self._bootstrap.stop()

    def is_bringing_in(self) -> bool:
        """Tell whether new views or replicas are being made."""
        return self._bootstrap is not None

    def unborn(self) -> Mapping[str, HeadwaterError]:
        """Return the views that could not be brought in, and why."""
        return dict(self._unborn)

    def retiring(self) -> tuple[str, ...]:
        """Return the views that are being built again and are not there yet."""
        return tuple(self._retiring)

    def release(self) -> None:
        """Give back the memory of what is looked up, and delete what is mapped, once closed."""
        for reader in (*self.replicas.values(), *self.upkeep.refreshed.values()):
            reader.release()
        for auxiliary in self._auxiliary_tables():
            auxiliary.forget(())

    def frontier(self) -> Tick:
        """Return the newest tick that some view has reached."""
        return max((view.frontier for view in self.views.values()), default=Tick(0))

    def begin(self) -> None:
        """Carry the plan out: drop, prepare the sources, follow them, and start to compute new views and replicas."""
        self._signs.start()
        self._drop_views()
        for name, error in self.plan.failed.items():
            self.listener(ViewStopped(view=name, tick=self.log.last_tick, error=error))
        self.log.declare(tuple(self.resolved.relations.values()))
        for name, source in self.resolved.sources.items():
            relations = [relation.name for relation in self.resolved.followed(name)]
            take_slot(self.plan.claims[name], source, relations, self.log)
        for name, sentence in slot_warnings(self.plan.claims):
            self.listener(SourceWarning(source=name, sentence=sentence))
        self.acceptor.start()
        for name, source in self.resolved.sources.items():
            held = {relation: reader.columns for relation, reader in self.replicas.items()}
            self.acceptor.follow(source, followed_relations(self.resolved, name, self.views, held))
        self.upkeep.start()
        if self.plan.born or self.plan.copied:
            self._start_bootstrap(adopted=adoptable_tables(self.views.values()))

    def _drop_views(self) -> None:
        """Drop views. And note, before a source is followed by a new slot, which ones have to be built again for it."""
        if self.plan.dropped or self.plan.lost_sources:
            self._commit(CommitKind.CATALOG, catalog=self._catalog())
            for name in self.plan.dropped:
                self.listener(ViewDropped(view=name))
        if self.plan.lost_sources:  # chunks from before the gap cannot be brought to a tick after it
            forget_staged(self.warehouse.path)

    def step(self) -> bool:
        """Do the next thing: bring new views in, or maintain a batch. False: there is nothing to do now."""
        self.acceptor.raise_error()
        made = None if self._bootstrap is None else self._bootstrap.made()
        if made is not None and self._can_bring_in(made):
            self._bring_in(made)
            return True
        return self._maintain()

    def _is_idle(self) -> bool:
        """Tell whether everything is committed that the sources had committed when asked.

        If one is lost for good, or refuses our login, that is raised once the others are committed.
        """
        threads = self.acceptor.threads()
        away = {name: error for name, thread in threads.items() if (error := _never_idle(thread)) is not None}
        if self._bootstrap is not None and not away:
            return False
        before = self.log.last_tick
        for source in self.resolved.sources.values():
            if source.name not in away and not self._is_followed_to_now(source):
                return False
        for error in away.values():
            if self.step():
                return False
            raise error
        live = [
            view
            for view in self.views.values()
            if view.stopped is None and not self._is_held(view) and self.timetable.is_due(view, before)
        ]
        if self.log.last_tick != before or any(view.frontier < before for view in live):
            return False
        for error in self._unborn.values():
            raise error
        self.listener(Idle(tick=before))
        return True

    def _is_held(self, view: LiveView) -> bool:
        """Tell whether a view has to ask a source that stands still at an incomplete global transaction."""
        held = self.acceptor.holding.held()
        return any(name.source in held for name in view.resolved.asks(contents(self.replicas)))

    def _is_followed_to_now(self, source: Source) -> bool:
        """Tell whether all that a source has committed is in the log.

        An incomplete global transaction is waited for no longer than others wait for it.
        """
        try:
            positions = shown_positions(source, self.resolved.followed_names(source.name))
            followed = self.acceptor.wait_for(positions, self.settings.batch.idle_wait_seconds)
            return followed or self.acceptor.is_held_before(positions)
        except SourceUnavailable:
            return False

    def _start_bootstrap(self, *, adopted: Mapping[RelationName, str]) -> None:
        job = Bootstrap(
            spark=self.spark,
            warehouse=self.warehouse.path,
            journal=self.commits.journal,
            resolved=self.resolved,
            views=self.plan.born,
            rebuilt=self.plan.rebuilt,
            copied=self.plan.copied,
            adopted=adopted,
            is_beside_views=bool(self.views),
            acceptor=self.acceptor,
            log=self.log,
            budget=self.budget,
            listener=self.listener,
        )
        self._bootstrap = BootstrapThread(job, lambda: dict(self.replicas))

    def _can_bring_in(self, made: Bootstrapped) -> bool:
        """Tell whether new views can be brought in. If what they adopt will not come to be, begin again."""
        if self._beside.late:
            return False
        if self._made_at is None:
            self._made_at = time.monotonic()
        adopted = {table for new in made.views for table in new.segments.values()} - made.auxiliary.keys()
        reached = [come_to(table, self.views.values()) for table in adopted]
        is_late = time.monotonic() - self._made_at > self.settings.bootstrap.adopt_wait_seconds
        decided = decide_adoption(made.tick, reached, is_late=is_late)
        if decided is Adoption.AGAIN:
            _let_go(made)
            self._start_bootstrap(adopted={})
        return decided is Adoption.READY

    def _bring_in(self, made: Bootstrapped) -> None:
        """Make new views readable from their birth on. From now on they are in every batch."""
        if not self._replace_replicas(made):
            _let_go(made)
            self._made_at = None
            self._start_bootstrap(adopted=adoptable_tables(self.views.values()))
            return
        self._bootstrap = None
        self._auxiliary |= made.auxiliary
        for name, error in made.failed.items():
            self._unborn[name] = error
            if name in self._retiring:
                self._retiring[name] = self._retiring[name].stopped_by(error)
        for new in made.views:
            self._retiring.pop(new.entry.name, None)
            self.views[new.entry.name] = LiveView(
                resolved=new.resolved,
                entry=new.entry,
                table=new.table,
                frontier=new.entry.birth,
                segments=with_own_rows(
                    self.spark,
                    new.resolved.view,
                    new.table,
                    {name: self._auxiliary[table] for name, table in new.segments.items()},
                    self.settings.batch,
                    self.budget,
                ),
            )
            self.timetable.note(self.views[new.entry.name])
        self._commit(CommitKind.CATALOG, catalog=self._catalog())
        for new in made.views:
            self.listener(ViewBorn(view=new.entry.name, tick=new.entry.birth))
        for name, error in made.failed.items():
            self.listener(ViewStopped(view=name, tick=made.tick, error=error))

    def _replace_replicas(self, made: Bootstrapped) -> bool:
        """Read the replicas that were made from now on. False if one was truncated since, so that it is of no use.

        What a TRUNCATE took is written out as far as the replica held it that was there before: perhaps less.
        """
        fresh = {reader.relation.name: reader for reader in made.replicas}
        with self._replacing:
            is_truncated = any(name in fresh and tick >= made.tick for name, tick in self._truncated.items())
            if is_truncated:
                return False
            replaced = [self.replicas[name] for name in fresh if name in self.replicas]
            self._give_log(fresh.values())
            self.replicas.update(fresh)
        for reader in replaced:
            reader.release()
        return True

    def _give_log(self, readers: Iterable[ReplicaReader]) -> None:
        """Let replicas read many changes in the log's files."""
        for reader in readers:
            reader.log = self.log

    def _maintain(self) -> bool:
        """Bring every view that can go on to the end of a batch, in one commit."""
        if followed := self._beside.ended():  # in a commit of their own: its ticks are theirs
            lo = min(self.views[name].frontier for name in followed)
            found = RoundResult.of_nothing(lo, self._settled).joined_by(followed)
            return self._settle(found, SparkJobs(self.spark))
        if (
            self.upkeep.refreshed and not self._beside.late
        ):  # the files of those that they replace are deleted some time later
            self._absorb()
        last, free = self.log.last_tick, free_beside(self.views, self._beside.late)
        behind = [] if self._has_enough else [one for one in free if one.stopped is None and one.frontier < last]
        due = [view for view in behind if self.timetable.is_due(view, last)]
        if not due or not self._has_waited():
            return self._beside.wait(_LATE_WAIT_SECONDS)
        jobs = SparkJobs(self.spark)
        with jobs:
            found = self._find([view for view in due if view.resolved.algorithm.run is None])
            found = found.joined_by(self._correspondences.advance(due))
        return self._settle(found, jobs)

    def _settle(self, found: RoundResult, jobs: SparkJobs) -> bool:
        """Commit what was found, if it is anything, and tidy up if no view is late."""
        halts = [outcome for outcome in found.outcomes.values() if outcome.halt is not None]
        moved = any(self.views[name].frontier < outcome.upto for name, outcome in found.outcomes.items())
        if not (moved or halts):
            return False
        self._due_since = None
        self._settled = dict(found.settled)
        self._take_over(found, jobs)
        if not self._beside.late:
            self._absorb()
            store_at(self._runner.scratch).delete()
        return True

    def _find(self, due: Sequence[LiveView]) -> RoundResult:
        """Compute a batch for the views that are maintained in batches."""
        if not due:
            return RoundResult.of_nothing(self.log.last_tick, self._settled)
        return Round(
            runner=self._runner,
            resolved=self.resolved,
            log=self.log,
            acceptor=self.acceptor,
            replicas=self.replicas,
            settled=dict(self._settled),
            listener=self.listener,
            beside=self._beside,
        ).run(due)

    def _has_waited(self) -> bool:
        """Tell whether what is due has waited as long as the project wants, so that more comes into the batch."""
        now = time.monotonic()
        if self._due_since is None:
            self._due_since = now
        return now - self._due_since >= self.resolved.project.batch_interval_seconds

    def _take_over(self, found: RoundResult, jobs: SparkJobs) -> None:
        """Commit what a batch found."""
        started = time.perf_counter()
        changes: dict[str, TableChange] = {}
        rows = {name: gathered(self.views[name], outcome, changes) for name, outcome in found.outcomes.items()}
        for name, outcome in found.outcomes.items():
            view = self.views[name]
            view.advance(outcome.change, outcome.upto)
            self.timetable.note(view)
            if outcome.halt is not None:
                view.stop(outcome.halt)
                self.listener(ViewStopped(view=name, tick=outcome.upto, error=outcome.halt))
        asked = found.asked.total()
        gathered_at = time.perf_counter()
        statistics = BatchStatistics(
            lo=found.lo,
            hi=found.hi,
            seconds={**found.seconds, "gather": gathered_at - started},
            rows={name: delta for name, delta in rows.items() if delta is not None},
            probe_count=asked.probe_count,
            answer_count=asked.row_count,
            byte_count=asked.byte_count,
            spark_job_count=jobs.count(),
            commit_before_seconds=self._commit_seconds,
        )
        self._commit(CommitKind.BATCH, statistics=statistics, changes=changes)
        self._commit_seconds = time.perf_counter() - gathered_at
        row_count = sum(delta.rows_added + delta.rows_removed for delta in rows.values() if delta is not None)
        self._row_count += row_count
        self._commit_count += 1
        told = {**found.seconds, "commit": time.perf_counter() - started}
        self.listener(BatchCommitted(lo=found.lo, hi=found.hi, row_count=row_count, seconds=told))

    def _commit(
        self,
        kind: CommitKind,
        *,
        statistics: BatchStatistics | None = None,
        catalog: Catalog | None = None,
        changes: Mapping[str, TableChange] = MappingProxyType({}),
    ) -> Commit:
        reach(f"before {kind.value} commit")
        shown = self._shown()
        record = CommitRecord(
            frontiers={name: view.frontier for name, view in shown.items()},
            stopped={name: view.stopped for name, view in shown.items() if view.stopped is not None},
            positions={**self.log.positions(), **self.acceptor.accepted_to()},
            holder=own_name(),
            statistics=statistics,
            refreshed_at=self.timetable.refreshed_at(self.views.values()),
        )
        tick = max((view.frontier for view in self.views.values()), default=self.log.last_tick)
        return self.commits.commit(
            kind, tick, record, epoch=self.epoch, catalog=catalog, changes=tuple(changes.values())
        )

    def _shown(self) -> dict[str, LiveView | RetiringView]:
        """Return the views that can be read, each in the version that is readable now."""
        return {**self._retiring, **self.views}

    def _catalog(self) -> Catalog:
        """Return what is kept, now."""
        return Catalog(
            views={name: view.entry for name, view in self._shown().items()},
            replicas={name: reader.entry for name, reader in self.replicas.items()},
        )

    def _absorb(self) -> None:
        """Lay what was committed on the replicas once it is much, let the log's tail go, and rows that nobody needs."""
        going = [view for view in self.views.values() if view.stopped is None]
        for auxiliary in self._auxiliary_tables():
            auxiliary.forget({view.frontier for view in going if auxiliary in view.segments.values()})
            auxiliary.take_over()
        slowest = min((view.frontier for view in going), default=self.log.last_tick)
        frontier = min(
            (view.frontier for view in going if isinstance(view.resolved.refresh, Continuous)), default=slowest
        )
        for name, fresh in list(self.upkeep.refreshed.items()):
            if self.replicas[name].entry == fresh.entry:  # not widened meanwhile
                self.replicas[name].release()
                self._give_log([fresh])
                self.replicas[name] = fresh
            else:
                fresh.release()
            del self.upkeep.refreshed[name]
        for name, reader in self.replicas.items():
            if self._is_behind(name, reader.tick, frontier):
                reader.absorb(reader.change_parts(self.log, reader.tick, frontier), frontier)
        needed = [frontier, *(reader.tick for reader in self.replicas.values()), *self._settled.values()]
        if self._bootstrap is None:
            self._needed = min(*needed, slowest)
            self.log.tail.trim(min(needed))

    def _auxiliary_tables(self) -> set[AuxiliaryTable]:
        """Return the auxiliary tables that are in use."""
        return {auxiliary for view in [*self.views.values()] for auxiliary in view.segments.values()}

    def _is_behind(self, relation: RelationName, tick: Tick, upto: Tick) -> bool:
        """Tell whether much has changed since a tick, or it can be read only in the log's files."""
        if tick < min(upto, self.log.tail.since):
            return True
        return self.log.row_count(relation, tick, upto) >= self.settings.batch.replica_behind_rows

    def _resolve(self, capture: Capture) -> Capture:
        """Complete a capture with the rows that a TRUNCATE removed."""
        with self._replacing:
            self._truncated |= {name: self.log.last_tick for names in capture.truncated.values() for name in names}
            replicas = dict(self.replicas)
        return resolve_truncates(capture, self.log, replicas)


def _let_go(made: Bootstrapped) -> None:
    """Give the memory back of what was made and is of no use."""
    for reader in made.replicas:
        reader.release()
    for auxiliary in made.auxiliary.values():
        auxiliary.forget(())


def _never_idle(thread: SourceThread) -> HeadwaterError | None:
    """Return why a run that ends once idle does not wait for a source: it is lost for good, or refuses our login."""
    return thread.lost or (thread.error if isinstance(thread.error, LoginRefused) else None)
