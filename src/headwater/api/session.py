"""An open project: the verbs of the command line as methods, returning values and Spark DataFrames.

What only one verb needs is imported by that verb: Spark, the drivers and the maintainer take longer to import than
`status` and most queries take to answer.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

import pyarrow as pa

from headwater.api.results import QueryResult, When
from headwater.api.view_reader import ViewReader
from headwater.engine.service.live_status import (
    read_memory,
    read_messages,
    read_self_maintenance,
    read_sources,
    read_waiting_parts,
)
from headwater.errors import NotReadable, did_you_mean
from headwater.explain.result import ExplainResult
from headwater.judge.sample import STATES
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import Continuous, next_refresh
from headwater.model.moment import AtPosition, Moment, as_moment, parse_position
from headwater.model.position import Tick, by_log
from headwater.model.project import Project
from headwater.observe.events import Listener, PlanningStarted, ignore_event
from headwater.observe.status import (
    CommitStatus,
    HistoryResult,
    MaintainerStatus,
    ReleaseResult,
    SourceState,
    StatusResult,
    Stop,
    ViewStatus,
)
from headwater.project.file import load
from headwater.storage.local_copies import use_cache
from headwater.storage.object_store import reach
from headwater.storage.storage_errors import stored
from headwater.warehouse.format import is_warehouse
from headwater.warehouse.lease import maintainer_is_alive, read_lease, refuse_if_held
from headwater.warehouse.mailbox import note_release
from headwater.warehouse.project_name import refuse_other_project
from headwater.warehouse.query import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.advisor.advice import AdviceResult
    from headwater.advisor.analysis import AnalyzeResult
    from headwater.engine.service.answer_query import ResolvedQuery
    from headwater.engine.service.project_run import ProjectRun
    from headwater.judge.result import CheckResult
    from headwater.lineage.result import ImpactResult, RowImpactResult, TraceResult, WhyNotResult
    from headwater.observe.findings import DoctorResult
    from headwater.observe.status import RefreshResult
    from headwater.project.plan_result import OwnerSqlResult, PlanResult, RunResult
    from headwater.project.resolve import ResolvedProject
    from headwater.project.teardown_result import TeardownResult
    from headwater.publish.plain_table import PublishResult

_LOOK_SECONDS = 0.2

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def _naming_files(
    verb: Callable[Concatenate[Headwater, Arguments], Answer],
) -> Callable[Concatenate[Headwater, Arguments], Answer]:
    """Wrap a verb so that its errors name the file of the warehouse that cannot be read or written."""

    @wraps(verb)
    def wrapped(self: Headwater, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        with stored(self.project.warehouse):
            return verb(self, *arguments, **named)

    return wrapped


def open_project(
    path: str | Path = ".", *, listener: Listener = ignore_event, spark: SparkSession | None = None
) -> Headwater:
    """Open the project in a folder."""
    return Headwater(load(Path(path)), listener, spark)


class Headwater:
    """An open project. A context manager. Nothing runs in the background unless a method says so."""

    def __init__(self, project: Project, listener: Listener, spark: SparkSession | None = None) -> None:
        """Keep what the project says. Spark and the sources are reached only when a method needs them."""
        self.project = project
        reach(project.warehouse, project.storage.options)
        use_cache(project.warehouse, project.storage.cache)
        self._listener = listener
        self._given_spark = spark
        self._starting = threading.Lock()

    def __enter__(self) -> Self:
        """Keep the project open for a block."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is held open between calls."""

    @property
    def spark(self) -> SparkSession:
        """The Spark session that everything runs on. Beside one that was given, ours is another."""
        from headwater.spark.executors import require_shared
        from headwater.spark.session import spark_session

        with self._starting:  # threads of the console may ask at once
            session = spark_session(
                self._listener,
                secret=self.project.secret_variables,
                given=self._given_spark,
                wait_seconds=self.project.settings.service.executor_wait_seconds,
                memory_bytes=self.project.spark_memory_bytes,
            )
        require_shared(session, self.project.warehouse)
        return session

    @_naming_files
    def plan(self, *, rebuild: tuple[str, ...] = ()) -> PlanResult:
        """Say what `run` would do. Changes nothing."""
        self._require_views(rebuild)
        self._require_own_warehouse()
        from headwater.engine.service.start import plan_run
        from headwater.project.plan import show_plan
        from headwater.project.resolve import require_addresses, resolve_project

        require_addresses(self.project)
        spark = self.spark
        self._listener(PlanningStarted(views=len(self.project.views), sources=len(self.project.sources)))
        resolved = resolve_project(self.project, spark, None)
        planned = show_plan(plan_run(resolved, rebuild), resolved)
        return replace(planned, warnings=(*planned.warnings, *self._lost_sources(resolved)))

    def owner_sql(self, source: str) -> OwnerSqlResult:
        """Return the statements that a source's owner has to run before `run`. Spark is not needed."""
        from headwater.project.plan_result import OwnerSqlResult
        from headwater.project.resolve import inspect_source

        inspection = inspect_source(self.project, source)
        return OwnerSqlResult(source=source, statements=inspection.owner_sql, refusals=inspection.refusals)

    def _lost_sources(self, resolved: ResolvedProject) -> Iterator[str]:
        """Yield what the last maintainer said of sources that it lost for good, unless they have new logs."""
        if not is_warehouse(self.project.warehouse):
            return
        warehouse = self._warehouse()
        for one in read_sources(self.project, warehouse):
            slot, asked = warehouse.log.slots().get(one.name), resolved.sources.get(one.name)
            if one.state is not SourceState.LOST or asked is None or slot is None:
                continue
            if slot.name in asked.slots().present if asked.abilities.holds_log else slot.has_begun:
                yield f'the last run lost source "{one.name}": {one.last_error}; {one.hint}'

    @_naming_files
    def run(
        self,
        *,
        until_idle: bool = False,
        ticks: int | None = None,
        rebuild: tuple[str, ...] = (),
        yes: bool | Collection[str] = False,
        fail_fast: bool = False,
    ) -> RunResult:
        """Maintain the views until idle, for `ticks` ticks, or until interrupted.

        Unless it ends once idle, it applies changes of the project's files. A change that deletes the history of
        views is refused without `yes`, or without their names in it. When a source is lost for good, the views of the
        others go on, unless `fail_fast` is set; when all are lost, it fails.
        """
        self._require_views(rebuild)
        self._require_own_warehouse()  # before Spark starts, which takes long
        if is_warehouse(path := self.project.warehouse):
            refuse_if_held(path)
        from headwater.engine.service.project_run import ProjectRun
        from headwater.project.plan import Consent
        from headwater.project.resolve import require_addresses

        require_addresses(self.project)
        spark = self.spark
        going = ProjectRun(spark, self.project, self._listener)
        try:
            with _stopping_on_signals(going):
                return going.run(
                    until_idle=until_idle, ticks=ticks, rebuild=rebuild, consent=Consent.of(yes), fail_fast=fail_fast
                )
        finally:
            self.project = going.project

    @_naming_files
    def status(self, *, count_rows: bool = True) -> StatusResult:
        """Say how the warehouse is doing. Neither Spark nor a source is needed.

        Counting the rows of many views takes a while: each has a table of its own.
        """
        warehouse = self._warehouse()
        head, lease = warehouse.head(), read_lease(warehouse.path)
        last_tick = warehouse.log.last_tick
        since, messages = read_messages(warehouse)
        return StatusResult(
            warehouse=self.project.warehouse,
            sources=read_sources(self.project, warehouse),
            views=tuple(self._view_statuses(warehouse, count_rows=count_rows)),
            last_commit=CommitStatus(tick=head.tick, committed_at=head.committed_at) if head.sequence else None,
            maintainer=None
            if lease is None
            else MaintainerStatus(
                holder=lease.holder, epoch=lease.epoch, alive=lease.alive(datetime.now(UTC)), seen_at=lease.renewed_at
            ),
            log_first=Tick(warehouse.log.horizon() + 1) if last_tick else None,
            log_last=last_tick or None,
            messages=messages,
            messages_since=since,
            waiting_parts=read_waiting_parts(warehouse),
            self_maintenance=read_self_maintenance(warehouse),
            memory=read_memory(warehouse),
        )

    def _view_statuses(self, warehouse: Warehouse, *, count_rows: bool) -> Iterator[ViewStatus]:
        views, record = warehouse.catalog().views, warehouse.head().record
        refreshes = {file.name: file.refresh for file in self.project.views}
        for entry in views.values():
            frontier, stopped = record.frontiers.get(entry.name, entry.birth), record.stopped.get(entry.name)
            refresh, refreshed_at = refreshes.get(entry.name, Continuous()), record.refreshed_at.get(entry.name)
            yield ViewStatus(
                name=entry.name,
                guarantee=Guarantee(entry.guarantee),
                birth=entry.birth,
                frontier=frontier,
                row_count=warehouse.kept_table(entry.name).row_count(frontier) if count_rows else None,
                stopped=None
                if stopped is None
                else Stop(tick=frontier, code=stopped.code, summary=stopped.summary, hint=stopped.hint),
                refresh=str(refresh),
                due_at=None if refreshed_at is None else next_refresh(refresh, refreshed_at),
            )
        for file in self.project.views:
            if file.name not in views:
                from headwater.project.choose_algorithm import promised_guarantee

                yield ViewStatus(name=file.name, guarantee=promised_guarantee(file), refresh=str(file.refresh))

    @_naming_files
    def query(self, sql: str, *, at: When | None = None, after: str | AtPosition | None = None) -> QueryResult:
        """Run a query over the views at one tick, and return its rows as Arrow. A plain one does not need Spark."""
        from headwater.engine.service.answer_query import answer

        question = self._ask(sql, at, after)
        return QueryResult(tick=question.tick, table=answer(question, lambda: self.spark))

    @_naming_files
    def sql(self, sql: str, *, at: When | None = None, after: str | AtPosition | None = None) -> DataFrame:
        """Run a query over the views at one tick, and return it as a Spark DataFrame."""
        from headwater.engine.service.answer_query import answer_dataframe

        return answer_dataframe(self._ask(sql, at, after), self.spark)

    def view(self, name: str) -> ViewReader:
        """Return a reader of one view, at its newest state unless told otherwise with `.at`."""
        return ViewReader(self, name, None)

    @_naming_files
    def history(self, view: str) -> HistoryResult:
        """List the commits that changed a view, since its birth."""
        warehouse = self._warehouse()
        birth = warehouse.view(view).birth
        commits = tuple(one for one in warehouse.history(view) if one.hi > birth)
        return HistoryResult(view=view, birth=birth, commits=commits)

    @_naming_files
    def changes(self, view: str, after: When, upto: When | None = None) -> pa.Table:
        """Return the rows of a view that came (`_count` above 0) and went after one moment, up to another, by `_tick`.

        Without `upto`, up to its newest state. A view that need not show every tick has its changes at those it shows.
        """
        from headwater.engine.service.read_changes import read_changes

        warehouse = self._warehouse()
        low = warehouse.resolve_at(view, as_moment(after))
        high = warehouse.resolve_at(view, None if upto is None else as_moment(upto))
        return read_changes(lambda: self.spark, warehouse, view, low, max(low, high))

    def doctor(self, *, quick: bool = False) -> DoctorResult:
        """Look at everything that `run` needs, and say what is missing and what to do. `quick` starts no Spark."""
        from headwater.engine.service.doctor import examine

        return examine(self.project, None if quick else lambda: self.spark)

    @_naming_files
    def publish(self, view: str, to: str | Path | None = None) -> PublishResult:
        """Bring a plain Delta table, which other engines read, to a view's newest state. Spark is not needed.

        Without an address, the table that the project file names for the view, or `published/VIEW` in the warehouse.
        """
        from headwater.publish.plain_table import publish_view

        warehouse, own = self._warehouse(), f"{self.project.warehouse}/published/{view}"
        declared = next((one.published for one in self.project.views if one.name == view), None)
        place = declared or own if to is None else str(to) if "://" in str(to) else str(Path(to).absolute())
        return publish_view(warehouse, self.project.name, view, place)

    @_naming_files
    def explain(self, view: str) -> ExplainResult:
        """Say how a view is maintained."""
        from headwater.explain.explain import explain_view

        self.project.view(view)
        return explain_view(self._resolved(asked=[view]), view)

    @_naming_files
    def advise(
        self,
        view: str | None = None,
        *,
        algorithm: str = "exact",
        traces_per_hour: float | None = None,
        apply: bool = False,
    ) -> AdviceResult:
        """Say which auxiliary tables are worth keeping for a view, or for each of them, from what is measured now.

        With `apply` it is written into the project file; a running `run` applies it.
        """
        from headwater.advisor.advise import advise_views
        from headwater.advisor.apply_advice import apply_advice

        warehouse = self._warehouse()
        names = [file.name for file in self.project.views] if view is None else [self.project.view(view).name]
        born = warehouse.catalog().views if view is None else names
        resolved = self._resolved(asked=[view])
        result = advise_views(
            resolved,
            tuple(name for name in names if name in born and name in resolved.views),
            algorithm,
            traces_per_hour,
        )
        if not apply:
            return result
        return replace(result, written=apply_advice(self.project.folder, resolved, result.views))

    @_naming_files
    def trace(
        self, view: str, *, where: str | None = None, at: When | None = None, whole_rows: bool = False
    ) -> TraceResult:
        """Return the source rows that derived rows of a view at a moment: those for which `where` is true, or all.

        `whole_rows` shows source rows with all their columns; their sources may have to be asked for that.
        """
        from headwater.lineage.trace_view import trace_view
        from headwater.views.text.reader_query import read_condition

        condition = None if where is None else read_condition(where)
        moment = self._readable(view, at)
        return trace_view(self.spark, self._resolved(view), view, where=condition, at=moment, whole_rows=whole_rows)

    @_naming_files
    def impact(self, position: str | AtPosition) -> ImpactResult:
        """Return what the newest source transaction up to a position changed in every view. Asks no source."""
        from headwater.lineage.impact import find_impact

        asked = position if isinstance(position, AtPosition) else parse_position(position)
        return find_impact(lambda: self.spark, self._warehouse(), asked)

    @_naming_files
    def row_impact(self, relation: str, where: str, *, at: When | None = None) -> RowImpactResult:
        """Return the rows of views that derive from a source row, written `no = 7`: some of its columns, or all."""
        from headwater.lineage.row_impact import find_row_impact
        from headwater.views.text.row_text import row_pairs

        row_pairs(where)
        moment = None if at is None else as_moment(at)
        self._warehouse()
        return find_row_impact(self.spark, self._resolved(), relation, where, moment)

    @_naming_files
    def why_not(self, view: str, where: str, *, at: When | None = None) -> WhyNotResult:
        """Return what keeps a row out of a view. A row is written `city = 'Oslo' AND sold = 7`, some columns or all."""
        from headwater.lineage.answer_why_not import find_why_not
        from headwater.views.text.row_text import row_pairs

        row_pairs(where)
        moment = self._readable(view, at)
        return find_why_not(self.spark, self._resolved(view), view, where, moment)

    @_naming_files
    def check(self, view: str | None = None, *, ticks: int | None = STATES, steps: bool = False) -> CheckResult:
        """Recompute a view, or all of them, from the sources as they are now, and compare. Nothing is stopped.

        `ticks` states of each are compared, spread over what can be read; None means all. With `steps` each is also
        computed by the steps that maintain the view; a view whose steps give another state than its SQL is refused.
        """
        from headwater.judge.certify import certify
        from headwater.judge.check import check_views

        if view is not None:
            self.project.view(view)
        warehouse, began = self._warehouse(), time.monotonic()
        result = check_views(self.spark, self._resolved(asked=[view]), view, ticks, self._listener, steps=steps)
        certify(warehouse, result, time.monotonic() - began)
        return result

    @_naming_files
    def release(self, global_id: str) -> ReleaseResult:
        """Let the parts of a global transaction go without each other. An id that does not wait is refused."""
        warehouse = self._warehouse()
        waiting = {one.id: one for one in read_waiting_parts(warehouse)}
        if global_id not in waiting:
            raise NotReadable(
                f'no part of a global transaction "{global_id}" is waiting',
                code="HW-132",
                detail=f"waiting are parts of {', '.join(waiting)}" if waiting else "no parts are waiting at all",
                hint=did_you_mean(global_id, tuple(waiting), otherwise="`headwater status` shows what waits"),
            )
        note_release(warehouse.path, global_id)
        return ReleaseResult(released=waiting[global_id], maintained=maintainer_is_alive(warehouse.path))

    @_naming_files
    def analyze(self, view: str | None = None) -> AnalyzeResult:
        """Say what each kind of maintenance would cost a view, or all of them: predicted, and measured beside it."""
        from headwater.advisor.analysis import AnalyzeResult
        from headwater.advisor.analyze import analyze_view

        names = tuple(self._warehouse().catalog().views) if view is None else (view,)
        self._require_views(names)
        resolved = self._resolved(asked=[view])
        resolved_names = [name for name in names if name in resolved.views]
        return AnalyzeResult(views=tuple(analyze_view(self.spark, resolved, name) for name in resolved_names))

    @_naming_files
    def refresh(self, *views: str) -> RefreshResult:
        """Bring views up to date now."""
        from headwater.engine.service.refresh import refresh_views

        self._require_views(views)
        self._warehouse()
        return refresh_views(self.spark, self._resolved(asked=views), views, self._listener)

    @_naming_files
    def teardown(self, *, sources: tuple[str, ...] = ()) -> TeardownResult:
        """Drop what was made at the sources, or at some of them. The warehouse folder stays readable.

        A later run reads these sources and their views again; the other views go on.
        """
        from headwater.engine.service.tear_down import tear_down

        for name in sources:
            self.project.source(name)
        self._require_own_warehouse()
        return tear_down(self.project, sources)

    def _require_views(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.project.view(name)

    def _require_own_warehouse(self) -> None:
        refuse_other_project(self.project.warehouse, self.project.name)

    def _readable(self, view: str, at: When | None) -> Moment | None:
        """Return the moment that is asked for. A view that cannot be read then is refused before Spark starts."""
        self.project.view(view)
        moment = None if at is None else as_moment(at)
        self._warehouse().resolve_at(view, moment)
        return moment

    def _resolved(self, only: str | None = None, asked: Iterable[str | None] = ()) -> ResolvedProject:
        """Return the resolved project. The view that is asked about must be in it."""
        from headwater.project.resolve import resolve_project

        resolved = resolve_project(self.project, self.spark, only)
        for name in asked:
            if name is not None and name in resolved.failed:
                raise resolved.failed[name]
        return resolved

    def _warehouse(self) -> Warehouse:
        path = self.project.warehouse
        if not is_warehouse(path):
            raise NotReadable(
                "there is no warehouse yet",
                code="HW-124",
                detail=f'"{path}" has not been made',
                hint="run `headwater run` first",
            )
        self._require_own_warehouse()
        return Warehouse.open(path, self.project.settings.reading)

    def _ask(self, sql: str, at: When | None, after: str | AtPosition | None) -> ResolvedQuery:
        from headwater.engine.service.answer_query import ask
        from headwater.views.text.reader_query import read_query

        query = read_query(sql)
        moment = None if at is None else as_moment(at)
        position = parse_position(after) if isinstance(after, str) else after
        if position is not None:
            self.project.source(position.source)
            ask(self._warehouse(), query, None)
            self._wait_for(position, query.views)
        return ask(self._warehouse(), query, moment)

    def _wait_for(self, position: AtPosition, named: Collection[str]) -> None:
        """Wait until a write is in: until every view has its tick that is continuous or named, and has not stopped."""
        continuous = {file.name for file in self.project.views if isinstance(file.refresh, Continuous)}
        wait_seconds = self.project.settings.reading.after_wait_seconds
        deadline = time.monotonic() + wait_seconds
        while not self._has(position, continuous.union(named)):
            if time.monotonic() > deadline:
                raise NotReadable(
                    f"{position} is not in yet",
                    code="HW-123",
                    detail=f"waited {wait_seconds:g} s",
                    hint="is `headwater run` running? `headwater status` says how far sources are followed, and "
                    "when views are refreshed; `headwater refresh VIEW` does not wait for that",
                )
            time.sleep(_LOOK_SECONDS)  # the maintainer is another process: only its files tell how far it has come

    def _has(self, position: AtPosition, views: Collection[str]) -> bool:
        warehouse = self._warehouse()
        sources = read_sources(self.project, warehouse)
        followed = by_log(at for one in sources for at in one.positions).get(position.log_name)
        if followed is None:
            return False
        target = replace(followed, offset=followed.notation.parse(position.text))
        if followed < target:
            return False
        tick = warehouse.log.tick_at(target) or Tick(0)
        record = warehouse.head().record
        going = [
            frontier for name, frontier in record.frontiers.items() if name not in record.stopped and name in views
        ]
        return min(going, default=Tick(0)) >= tick


@contextlib.contextmanager
def _stopping_on_signals(going: ProjectRun) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the run after the current batch, instead of in the middle of it.

    While it only starts there is no batch, and nothing to finish: it ends at once. (While Spark starts, before this,
    the process just ends: Spark's own process notices, but not if Python tidied up in between.)
    """

    def stop(number: int, frame: object) -> None:
        del frame
        if not going.is_starting:
            going.stop()
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            sys.exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
