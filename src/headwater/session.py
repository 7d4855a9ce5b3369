"""An open project: the verbs of the command line as methods, returning values and Spark DataFrames."""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from headwater.advisor.advice import AdviceResult
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import to_dataframe
from headwater.deltas.unfolded import unfolded
from headwater.errors import HeadwaterError, InvalidView, NotReadable
from headwater.guarantee import Guarantee
from headwater.judge.sample import STATES
from headwater.keeping import Continuous, next_refresh
from headwater.moment import AtPosition, Moment, as_moment, parse_position
from headwater.position import Tick
from headwater.project import Project
from headwater.project_file import load
from headwater.results.checking import CheckResult
from headwater.results.keeping import AnalyzeResult, RefreshResult
from headwater.results.lineage import ImpactResult, RowImpactResult, TraceResult, WhyNotResult
from headwater.results.planning import PlanResult, RunResult
from headwater.results.reading import ExplainResult, HistoryEntry, HistoryResult, QueryResult
from headwater.results.status import (
    CommitStatus,
    MaintainerStatus,
    MessageCount,
    ReleaseResult,
    StatusResult,
    Stop,
    ViewStatus,
)
from headwater.results.teardown import Dropped, TeardownResult
from headwater.runtime.advise import advise_views
from headwater.runtime.analyze import analyze_view
from headwater.runtime.apply_advice import apply_advice
from headwater.runtime.check import check_views
from headwater.runtime.choose_algorithm import promised_guarantee
from headwater.runtime.events import Listener, unheard
from headwater.runtime.explain import explain_view
from headwater.runtime.impact import find_impact
from headwater.runtime.live_status import read_messages, read_self_maintenance, read_sources, read_waiting_parts
from headwater.runtime.plan import show_plan
from headwater.runtime.project_run import ProjectRun
from headwater.runtime.refresh import refresh_views
from headwater.runtime.row_impact import find_row_impact
from headwater.runtime.spark import spark_session
from headwater.runtime.start import plan_run
from headwater.runtime.trace_view import trace_view
from headwater.runtime.understand import Understood, connect_sources, understand
from headwater.runtime.why_not import find_why_not
from headwater.toml_table import did_you_mean
from headwater.views.scope_names import tables_named
from headwater.warehouse.folders import staging_folder
from headwater.warehouse.format import is_warehouse
from headwater.warehouse.lease import maintainer_is_alive, read_lease, refuse_if_held
from headwater.warehouse.query import Warehouse
from headwater.warehouse.released import note_release
from headwater.warehouse.row_count import row_count

_AFTER_SECONDS = 60.0
_LOOK_SECONDS = 0.2

When = int | str | datetime | Moment


def open_project(path: str | Path = ".", *, listener: Listener = unheard) -> Headwater:
    """Open the project in a folder."""
    return Headwater(load(Path(path)), listener)


class Headwater:
    """An open project. A context manager; nothing runs in the background unless a method says so."""

    def __init__(self, project: Project, listener: Listener) -> None:
        """Keep what the project says; Spark and the sources are reached only when a method needs them."""
        self.project = project
        self._listener = listener

    def __enter__(self) -> Self:
        """Keep the project open for a block."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is held open between calls."""

    @property
    def spark(self) -> SparkSession:
        """The Spark session that everything runs on."""
        return spark_session()

    def plan(self, *, rebuild: tuple[str, ...] = ()) -> PlanResult:
        """Say what `run` would do; changes nothing."""
        self._require_views(rebuild)
        understood = self._understood()
        return show_plan(plan_run(understood, rebuild), understood)

    def run(self, *, until_idle: bool = False, ticks: int | None = None, rebuild: tuple[str, ...] = ()) -> RunResult:
        """Maintain the views until idle, for so many ticks, or until interrupted.

        Unless it ends once idle, it takes up what is changed in the project's files meanwhile.
        """
        self._require_views(rebuild)
        going = ProjectRun(self.spark, self.project, self._listener)
        try:
            with _stopping_on_signals(going.stop):
                return going.run(until_idle=until_idle, ticks=ticks, rebuild=rebuild)
        finally:
            self.project = going.project

    def status(self) -> StatusResult:
        """Say how the warehouse is doing; neither Spark nor a source is needed."""
        warehouse = self._warehouse()
        head, lease = warehouse.head(), read_lease(warehouse.path)
        last_tick = warehouse.log.last_tick
        since, messages = read_messages(warehouse)
        return StatusResult(
            warehouse=self.project.warehouse,
            sources=read_sources(self.project, warehouse),
            views=tuple(self._view_statuses(warehouse)),
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
        )

    def _view_statuses(self, warehouse: Warehouse) -> Iterator[ViewStatus]:
        views, record = warehouse.catalog().views, warehouse.head().record
        refreshes = {file.name: file.refresh for file in self.project.views}
        for entry in views.values():
            frontier, stopped = warehouse.frontier(entry.name), record.stopped.get(entry.name)
            refresh, refreshed_at = refreshes.get(entry.name, Continuous()), record.refreshed_at.get(entry.name)
            yield ViewStatus(
                name=entry.name,
                guarantee=Guarantee(entry.guarantee),
                birth=entry.birth,
                frontier=frontier,
                row_count=row_count(warehouse.kept_table(entry.name), frontier),
                stopped=None
                if stopped is None
                else Stop(tick=frontier, code=stopped.code, summary=stopped.summary, hint=stopped.hint),
                refresh=str(refresh),
                due_at=None if refreshed_at is None else next_refresh(refresh, refreshed_at),
            )
        for file in self.project.views:
            if file.name not in views:
                yield ViewStatus(name=file.name, guarantee=promised_guarantee(file), refresh=str(file.refresh))

    def query(self, sql: str, *, at: When | None = None, after: str | AtPosition | None = None) -> QueryResult:
        """Run a query over the views at one tick, and return its rows as Arrow."""
        frame, tick = self._query(sql, at, after)
        return QueryResult(tick=tick, table=frame.toArrow())

    def sql(self, sql: str, *, at: When | None = None, after: str | AtPosition | None = None) -> DataFrame:
        """Run a query over the views at one tick, and return it as a Spark DataFrame."""
        return self._query(sql, at, after)[0]

    def view(self, name: str) -> ViewReader:
        """Return a reader of one view, at its newest state unless told otherwise with `.at`."""
        return ViewReader(self, name, None)

    def history(self, view: str) -> HistoryResult:
        """List the commits that changed a view, since its birth."""
        warehouse = self._warehouse()
        birth = warehouse.view(view).birth
        commits = tuple(
            HistoryEntry(
                lo=commit.lo,
                hi=commit.hi,
                committed_at=commit.committed_at,
                rows_added=commit.rows_added,
                rows_removed=commit.rows_removed,
                asked=tuple(
                    MessageCount(source=source, view=view, **asdict(count)) for source, count in commit.asked.items()
                ),
                spark_job_count=commit.spark_job_count,
                seconds=commit.seconds,
            )
            for commit in warehouse.history(view)
            if commit.hi > birth
        )
        return HistoryResult(view=view, birth=birth, commits=commits)

    def explain(self, view: str) -> ExplainResult:
        """Say how a view is maintained."""
        self.project.view(view)
        return explain_view(self._understood(asked=[view]), view)

    def advise(
        self,
        view: str | None = None,
        *,
        algorithm: str = "exact",
        traces_per_hour: float | None = None,
        apply: bool = False,
    ) -> AdviceResult:
        """Say which auxiliary tables are worth keeping for a view, or for each of them, from what is measured now.

        With `apply` it is written into the project file, for a run to take up.
        """
        warehouse = self._warehouse()
        names = [file.name for file in self.project.views] if view is None else [self.project.view(view).name]
        born = warehouse.catalog().views if view is None else names
        understood = self._understood(asked=[view])
        result = advise_views(
            understood,
            tuple(name for name in names if name in born and name in understood.views),
            algorithm,
            traces_per_hour,
        )
        if not apply:
            return result
        return replace(result, written=apply_advice(self.project.folder, understood, result.views))

    def trace(
        self, view: str, *, where: str | None = None, at: When | None = None, whole_rows: bool = False
    ) -> TraceResult:
        """Return the source rows that derived rows of a view at a moment: those for which `where` is true, or all.

        `whole_rows` shows source rows with all their columns; their sources may have to be asked for that.
        """
        self.project.view(view)
        self._warehouse()
        moment = None if at is None else as_moment(at)
        return trace_view(self.spark, self._understood(view), view, where=where, at=moment, whole_rows=whole_rows)

    def impact(self, position: str | AtPosition) -> ImpactResult:
        """Return what one source transaction changed, the newest up to a position, in every view; asks no source."""
        asked = position if isinstance(position, AtPosition) else parse_position(position)
        return find_impact(self.spark, self._warehouse(), asked)

    def row_impact(self, relation: str, row: str, *, at: When | None = None) -> RowImpactResult:
        """Return the rows of views that derive from a source row, written `no = 7`: some of its columns, or all."""
        self._warehouse()
        return find_row_impact(self.spark, self._understood(), relation, row, None if at is None else as_moment(at))

    def why_not(self, view: str, row: str, *, at: When | None = None) -> WhyNotResult:
        """Return what keeps a row out of a view; a row is written `city = 'Oslo', sold = 7`, some columns or all."""
        self.project.view(view)
        self._warehouse()
        return find_why_not(self.spark, self._understood(view), view, row, None if at is None else as_moment(at))

    def check(self, view: str | None = None, *, ticks: int | None = STATES) -> CheckResult:
        """Recompute a view, or all of them, from the sources as they are now, and compare; nothing is stopped.

        So many states of each are compared, spread over what can be read; None: every one.
        """
        if view is not None:
            self.project.view(view)
        self._warehouse()
        return check_views(self.spark, self._understood(asked=[view]), view, ticks, self._listener)

    def release(self, global_id: str) -> ReleaseResult:
        """Let the parts of a global transaction go without each other; one that nobody waits for is refused."""
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

    def analyze(self, view: str | None = None) -> AnalyzeResult:
        """Say what each kind of maintenance would cost a view, or all of them: predicted, and measured beside it."""
        names = tuple(self._warehouse().catalog().views) if view is None else (view,)
        self._require_views(names)
        understood = self._understood(asked=[view])
        understood_names = [name for name in names if name in understood.views]
        return AnalyzeResult(views=tuple(analyze_view(self.spark, understood, name) for name in understood_names))

    def refresh(self, *views: str) -> RefreshResult:
        """Bring views up to date now, whenever they would be due."""
        self._require_views(views)
        self._warehouse()
        return refresh_views(self.spark, self._understood(asked=views), views, self._listener)

    def teardown(self, *, sources: tuple[str, ...] = ()) -> TeardownResult:
        """Drop what was made at the sources, or at some of them; the warehouse folder stays readable.

        A later run reads these sources anew, and the views that read them; the other views go on.
        """
        for name in sources:
            self.project.source(name)
        path = str(self.project.warehouse)
        if is_warehouse(path):
            refuse_if_held(path)
        dropped: list[Dropped] = []
        failed: list[Dropped] = []
        for name, source in connect_sources(self.project).items():
            if sources and name not in sources:
                continue
            try:
                dropped += [Dropped(source=name, what=what) for what in source.teardown()]
            except HeadwaterError as error:
                failed.append(Dropped(source=name, what=error.summary))
        shutil.rmtree(staging_folder(path), ignore_errors=True)
        return TeardownResult(dropped=tuple(dropped), failed=tuple(failed), warehouse=self.project.warehouse)

    def _require_views(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.project.view(name)

    def _understood(self, only: str | None = None, asked: Iterable[str | None] = ()) -> Understood:
        """Return the project, understood; a view that is asked about must be."""
        understood = understand(self.project, self.spark, only)
        for name in asked:
            if name is not None and name in understood.failed:
                raise understood.failed[name]
        return understood

    def _warehouse(self) -> Warehouse:
        path = str(self.project.warehouse)
        if not is_warehouse(path):
            raise NotReadable(
                "there is no warehouse yet",
                code="HW-124",
                detail=f'"{path}" has not been made',
                hint="run `headwater run` first",
            )
        return Warehouse.open(path)

    def _query(self, sql: str, at: When | None, after: str | AtPosition | None) -> tuple[DataFrame, Tick]:
        if after is not None:
            self._wait_for(after if isinstance(after, AtPosition) else parse_position(after), tables_named(sql))
        warehouse = self._warehouse()
        known = warehouse.catalog().views
        named = [name for name in tables_named(sql) if name in known]
        moment = None if at is None else as_moment(at)
        tick = min((warehouse.resolve_at(name, moment) for name in named), default=warehouse.head().tick)
        session = self.spark.newSession()
        for name in named:
            warehouse.view_dataframe(session, name, tick).createOrReplaceTempView(name)
        try:
            return session.sql(sql), tick
        except AnalysisException as error:
            raise InvalidView(
                "Spark cannot run the query",
                code="HW-126",
                detail=str(error).split("\n\nJVM stacktrace")[0].strip(),
                hint=f"the warehouse has the views: {', '.join(sorted(known)) or 'none'}",
            ) from None

    def _wait_for(self, position: AtPosition, named: Collection[str]) -> None:
        """Wait until a write is in: until every view has its tick that is continuous or named, and has not stopped."""
        continuous = {file.name for file in self.project.views if isinstance(file.refresh, Continuous)}
        deadline = time.monotonic() + _AFTER_SECONDS
        while not self._has(position, continuous.union(named)):
            if time.monotonic() > deadline:
                raise NotReadable(
                    f"{position} is not in yet",
                    code="HW-123",
                    detail=f"waited {_AFTER_SECONDS:.0f} s",
                    hint="is `headwater run` running? `headwater status` says how far sources are followed, and "
                    "when views are due; `headwater refresh VIEW` does not wait for that",
                )
            time.sleep(_LOOK_SECONDS)

    def _has(self, position: AtPosition, views: Collection[str]) -> bool:
        warehouse = self._warehouse()
        followed = {one.name: one.position for one in read_sources(self.project, warehouse)}.get(position.source)
        if followed is None or followed.offset < position.offset:
            return False
        tick = warehouse.log.tick_at(position.source, replace(followed, offset=position.offset)) or Tick(0)
        record = warehouse.head().record
        going = [
            frontier for name, frontier in record.frontiers.items() if name not in record.stopped and name in views
        ]
        return min(going, default=Tick(0)) >= tick


class ViewReader:
    """One view at one moment."""

    def __init__(self, project: Headwater, name: str, moment: When | None) -> None:
        """Use `Headwater.view`."""
        self._project = project
        self._name = name
        self._moment = moment

    def at(self, moment: When) -> ViewReader:
        """Return a reader of the view at a tick, a source's position, or a time."""
        return ViewReader(self._project, self._name, moment)

    def df(self) -> DataFrame:
        """Return the rows as a Spark DataFrame."""
        return self._project.sql(f"SELECT * FROM `{self._name}`", at=self._moment)

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.df().toArrow()

    def trace(self, where: str | None = None, *, whole_rows: bool = False) -> dict[str, DataFrame]:
        """Return the source rows that derived the rows for which a condition is true, by relation, as Spark DataFrames.

        A row that its relation holds k times stands k times.
        """
        found = self._project.trace(self._name, where=where, at=self._moment, whole_rows=whole_rows)
        spark = self._project.spark
        return {one.relation: to_dataframe(spark, unfolded(ArrowBag(one.rows))) for one in found.relations}


@contextlib.contextmanager
def _stopping_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C and a polite kill end the run after the batch at hand, instead of in the middle of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
