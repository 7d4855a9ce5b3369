"""Check a live warehouse: read whole relations, roll them back to ticks, run the original SQL there, and grade.

It stops nothing. One snapshot per source is read; the change log brings each relation from what its snapshot saw back
to a tick, by the judge's own way (`judge/roll_back`). What the sources hold and what the view holds meet only in the
comparison. The states compared are a sample, spread over what can be read, with the newest; if one is wrong, halving
finds the tick where the mistake came in.

Where rows are few and DuckDB is installed, DuckDB judges all states of all views in one pass over the log
(`judge/one_pass`). If it gives what the warehouse shows, the state is right. A view is written in Spark's SQL, so where
DuckDB cannot run it, or gives something else, Spark runs it, and its word counts. The result says which engine judged
how many states.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.compare import Difference, Row
from headwater.deltas.compare_frames import compare_counted, compare_frames, fingerprint
from headwater.deltas.extent import WHOLE
from headwater.engine.bootstrap.recompute import recompute
from headwater.engine.bootstrap.staging import one_moment, stage_relation
from headwater.engine.bootstrap.whole_view import computed_rows, require_same_rows, require_same_types, whole_view
from headwater.engine.service.wait_until_followed import MaintainersLog, wait_until_followed
from headwater.engine.state.truncation import truncations
from headwater.errors import NotReadable, SourceUnavailable, UnfaithfulLog
from headwater.judge.complete_orders import judged_text
from headwater.judge.grade import Observation, Verdict, grade
from headwater.judge.one_pass import PassedView, PassResult, judge_in_one_pass
from headwater.judge.replay import ReplayedView
from headwater.judge.result import SPARK, CheckResult, ViewCheck
from headwater.judge.roll_back import IMPOSSIBLE, LoggedRelation, RelationInSnapshot, rolled_back
from headwater.judge.sample import first_wrong, spread
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.observe.events import CheckEstimated, CheckProgress, Listener, ignore_event
from headwater.project.outdated_view import refuse_outdated
from headwater.project.resolve import ResolvedProject
from headwater.spark.executors import has_executors
from headwater.spark.view_errors import is_contradiction, unchecked_error
from headwater.storage.object_store import store_at
from headwater.storage.spark_files import read_files
from headwater.views.steps.segments import SegmentedView, described_relations
from headwater.views.text.upstream_views import whole_text
from headwater.warehouse.catalog import ViewEntry
from headwater.warehouse.folders import passing_name
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse


def check_views(
    spark: SparkSession,
    resolved: ResolvedProject,
    view: str | None,
    ticks: int | None,
    listener: Listener,
    *,
    steps: bool = False,
) -> CheckResult:
    """Check one view, or all that the warehouse has, at `ticks` ticks. None means all.

    With `steps` every state is also computed by the view's steps, and has to be what its SQL gives.
    """
    warehouse = Warehouse.open(resolved.project.warehouse)
    kept = warehouse.catalog().views
    names = [warehouse.view(view).name] if view is not None else [name for name in resolved.views if name in kept]
    if not names:
        raise NotReadable(
            "the warehouse has none of the project's views yet", code="HW-430", hint="run `headwater run` first"
        )
    with _staging(spark, warehouse.path) as folder:
        staged_relations = _stage(spark, resolved, names, folder, warehouse)
        warehouse.log.refresh()  # it is not looked at again: what happens from now on does not matter
        since = min(max(warehouse.view(name).birth, warehouse.log.horizon()) for name in names)
        logged = {name: LoggedRelation.read(spark, one, warehouse.log, since) for name, one in staged_relations.items()}
        try:
            due = [_view_to_check(spark, resolved, name, warehouse, logged, ticks) for name in names]
            passed = _passed(resolved, staged_relations, warehouse, due, listener)
            checked = tuple(_check_view(view, passed.get(view.entry.name), listener, steps=steps) for view in due)
        finally:
            for relation in logged.values():
                relation.release()
    return CheckResult(views=checked)


@contextmanager
def _staging(spark: SparkSession, warehouse: str) -> Iterator[str]:
    """Give a folder for what is read of sources: on this machine, or in the warehouse if tasks run elsewhere."""
    if not has_executors(spark):
        with tempfile.TemporaryDirectory(prefix="headwater-check-") as folder:
            yield folder
        return
    shared = f"{warehouse}/{passing_name(datetime.now(UTC))}"
    try:
        yield shared
    finally:
        store_at(shared).delete()


def _stage(
    spark: SparkSession, resolved: ResolvedProject, names: list[str], folder: str, warehouse: Warehouse
) -> dict[RelationName, RelationInSnapshot]:
    """Read every relation whole, one snapshot per source, and wait until the change log knows all that was seen."""
    needed: dict[RelationName, set[str]] = {}
    for name in names:
        for relation, columns in resolved.views[name].view.relations.items():
            needed.setdefault(relation, set()).update(columns)
    staged_relations = {}
    for source in sorted({relation.source for relation in needed}):
        settings = resolved.project.settings.bootstrap
        asked, own = resolved.sources[source], [name for name in needed if name.source == source]
        with asked.snapshot(own) as opened, one_moment(asked, opened) as snapshot:
            with snapshot.reader() as reader:
                seen, positions = reader.seen, reader.positions
            for relation in own:
                described = resolved.relations[relation]
                wanted = tuple(column for column in described.column_names if column in needed[relation])
                staged = stage_relation(folder, asked, snapshot, described, wanted, WHOLE, ignore_event, settings)
                files = [chunk.path for chunk in staged.chunks]
                rows = read_files(spark, files, described.arrow_schema(wanted))
                staged_relations[relation] = RelationInSnapshot(
                    name=relation, columns=wanted, rows=rows, files=tuple(files), seen=seen
                )
            wait_until_followed(resolved, warehouse, positions)
            if not snapshot.is_valid(MaintainersLog(resolved=resolved, warehouse=warehouse)):
                raise SourceUnavailable(
                    "a source restarted, or rewrote a table, while it was asked",
                    code="HW-533",
                    detail=f'source "{source}", during the check',
                    hint="run the check again",
                )
    return staged_relations


@dataclass(frozen=True, slots=True, kw_only=True)
class _ViewToCheck:
    """A view, the ticks whose states it claims to show, and those of them that are compared."""

    entry: ViewEntry
    states: _States
    claimed: Sequence[Tick]
    sample: Sequence[Tick]
    frontier: Tick

    def difference(self, tick: Tick) -> Difference | None:
        """Return what is shown wrongly as Spark finds it. None if the tick went out of retention meanwhile."""
        try:
            return self.states.difference(tick)
        except NotReadable:
            if tick == self.frontier:
                raise
            return None
        except (PySparkException, Py4JError) as error:
            raise unchecked_error(self.entry.name, error, tick) from error


def _view_to_check(
    spark: SparkSession,
    resolved: ResolvedProject,
    name: str,
    warehouse: Warehouse,
    logged: Mapping[RelationName, LoggedRelation],
    count: int | None,
) -> _ViewToCheck:
    """Choose the states of a view to compare: at its frontier, and at earlier ticks that can still be read."""
    entry, view = warehouse.view(name), resolved.views[name].view
    frontier = min(
        warehouse.frontier(name), warehouse.log.durable_tick
    )  # it goes on; what was read of the log does not
    refuse_outdated(entry, view)
    states = _States(
        spark=spark,
        view=view,
        completed=judged_text(whole_text(view.sql, view.lower), described_relations(view.joins).values()),
        own=ReplayedView(name=name, sql=entry.sql, birth=entry.birth, lower=entry.lower),
        table=warehouse.kept_table(name),
        log=warehouse.log,
        logged=logged,
    )
    claimed = _claimed_ticks(warehouse, entry, states.oldest(entry.birth), frontier)
    return _ViewToCheck(
        entry=entry, states=states, claimed=claimed, sample=spread(claimed, count), frontier=Tick(frontier)
    )


def _passed(
    resolved: ResolvedProject,
    staged: Mapping[RelationName, RelationInSnapshot],
    warehouse: Warehouse,
    due: Sequence[_ViewToCheck],
    listener: Listener,
) -> dict[str, PassResult]:
    """Let DuckDB judge what it can."""
    if find_spec("duckdb") is None:
        return {}
    views = [
        PassedView(
            replayed=one.states.own,
            table=one.states.table,
            described=tuple(described_relations(one.states.view.joins).values()),
            relations=one.states.view.relations,
            ticks=one.sample,
            ask=one.difference,
        )
        for one in due
    ]
    most_rows = resolved.project.settings.reading.judged_rows
    return judge_in_one_pass(staged=staged, log=warehouse.log, views=views, most_rows=most_rows, listener=listener)


def _check_view(due: _ViewToCheck, passed: PassResult | None, listener: Listener, *, steps: bool) -> ViewCheck:
    """Give the verdict over a view, of the pass or of Spark."""
    entry, states = due.entry, due.states
    if passed is None:
        verdict, judged_by = _judged_by_spark(due, listener)
    else:
        verdict, judged_by = _passed_verdict(due, passed), passed.judged_by
    if steps:
        for tick in due.sample:
            states.require_steps(tick)
    promised = Guarantee(entry.guarantee)
    if promised < Guarantee.COMPLETE:  # it claims only the ticks that were compared, and skips the others
        verdict = replace(verdict, guarantee=min(verdict.guarantee, promised))
    return ViewCheck(view=entry.name, promised=promised, tick=due.frontier, verdict=verdict, judged_by=judged_by)


def _passed_verdict(due: _ViewToCheck, passed: PassResult) -> Verdict:
    """Return the verdict of a pass, with the very tick where a mistake came in."""
    verdict = replace(passed.verdict(), states_checked=passed.judged_by.total())
    if passed.first_wrong is None:
        return verdict
    first = first_wrong(due.claimed, passed.last_good, passed.first_wrong, due.states.is_right)
    differs = passed.difference if first == passed.first_wrong else due.states.difference(first)
    return replace(verdict, first_bad_tick=first, difference=differs)


def _judged_by_spark(due: _ViewToCheck, listener: Listener) -> tuple[Verdict, Counter[str]]:
    """Compare each state by itself, on Spark."""
    name, found, began = due.entry.name, dict[Tick, Difference](), time.monotonic()
    for number, tick in enumerate(due.sample, 1):
        differs = due.difference(tick)
        if differs is not None:
            found[tick] = differs
        if number == 1:
            count = len(due.sample)
            seconds = (time.monotonic() - began) * (count - 1)
            listener(CheckEstimated(views=(name,), states_expected=count, recomputed_expected=count, seconds=seconds))
        listener(CheckProgress(view=name, states_checked=number, states_expected=len(due.sample)))
    verdict = _verdict(due.states, due.claimed, found) if found else _no_verdict(due)
    return verdict, Counter({SPARK: len(found)})


def _no_verdict(due: _ViewToCheck) -> Verdict:
    return Verdict(guarantee=Guarantee(due.entry.guarantee), states_checked=0)


def _claimed_ticks(warehouse: Warehouse, entry: ViewEntry, oldest: Tick, frontier: Tick) -> list[Tick]:
    """Return the ticks whose states a view claims to show: all, or those that some commit ended at."""
    if Guarantee(entry.guarantee) is Guarantee.COMPLETE:
        return [Tick(tick) for tick in range(oldest, frontier + 1)]
    ends = {commit.record.frontiers.get(entry.name, entry.birth) for commit in warehouse.commits.read()}
    return sorted(tick for tick in ends if oldest <= tick <= frontier)


@dataclass(frozen=True, slots=True, kw_only=True)
class _States:
    """A view's states, each twice: as its SQL gives it, and as the warehouse shows it.

    `completed` is its author's text with the open orders completed by the judge; `own` is the same for DuckDB.
    """

    spark: SparkSession
    view: SegmentedView
    completed: str
    own: ReplayedView
    table: KeptTable
    log: ChangeLog
    logged: Mapping[RelationName, LoggedRelation]

    def oldest(self, birth: Tick) -> Tick:
        """Return the first tick at which both can be known."""
        oldest = max(birth, self.table.horizon(), self.log.horizon())
        for relation in self.view.relations:  # what a TRUNCATE removed cannot be brought back
            oldest = max([oldest, *truncations(self.log, relation, oldest, self.log.last_tick)])
        return oldest

    def right(self, tick: Tick) -> DataFrame:
        """Return what the view's SQL gives."""
        plain = {name: rolled_back(self.logged[name], tick) for name in self.view.relations}
        return recompute(self.spark, self.view, self.completed, plain)

    def require_steps(self, tick: Tick) -> None:
        """Refuse a view whose steps, computed whole, give another state than its SQL."""
        plain = {name: rolled_back(self.logged[name], tick) for name in self.view.relations}
        with whole_view(self.spark, self.view, plain, computed_rows) as by_steps:
            by_text = recompute(self.spark, self.view, self.completed, plain)
            require_same_types(self.view, by_text, by_steps)
            require_same_rows(self.view, by_text, by_steps, tick)

    def difference(self, tick: Tick) -> Difference:
        """Return what the warehouse shows wrongly, to a reader. Where its rows cannot even be read, what it holds."""
        try:
            return compare_frames(self.right(tick), self.table.state_dataframe(self.spark, tick))
        except PySparkException as error:
            if is_contradiction(error):
                return compare_counted(self.right(tick), self.table.entries_dataframe(self.spark, tick))
            if IMPOSSIBLE not in str(error):
                raise
            raise UnfaithfulLog(
                f'the change log and the sources of view "{self.view.name}" contradict each other',
                code="HW-537",
                detail=str(error).split(IMPOSSIBLE, 1)[1].splitlines()[0].strip(),
                hint="the log took away a row that the source never had; `headwater teardown`, then `headwater run`, "
                "reads everything again",
            ) from None

    def is_right(self, tick: Tick) -> bool:
        """Tell whether the warehouse shows what it should."""
        return not self.difference(tick)


def _verdict(states: _States, claimed: Sequence[Tick], found: Mapping[Tick, Difference]) -> Verdict:
    """Grade what was compared. Whole states stay on Spark, and the grader is given something that stands for each."""
    wrong = [tick for tick, differs in found.items() if differs]
    right: dict[Tick, Row] = {tick: (tick,) for tick in found}
    if wrong:
        right = {tick: fingerprint(states.right(tick)) for tick in found}
    seen = {tick: _sign(states, tick, right[tick]) if tick in wrong else right[tick] for tick in found}
    verdict = grade(
        {tick: {sign: 1} for tick, sign in right.items()},
        [Observation(tick=tick, state={sign: 1}) for tick, sign in seen.items()],
    )
    if not wrong:
        return verdict
    good = max((tick for tick in found if tick < wrong[0]), default=None)
    first = first_wrong(claimed, good, wrong[0], states.is_right)
    return replace(verdict, first_bad_tick=first, difference=found.get(first) or states.difference(first))


def _sign(states: _States, tick: Tick, right: Row) -> Row:
    """Return what stands for a wrong state: never what stands for the right one of its tick."""
    try:
        sign = fingerprint(states.table.state_dataframe(states.spark, tick))
    except PySparkException as error:
        if not is_contradiction(error):
            raise
        return ("unreadable", tick)
    return ("differs", tick) if sign == right else sign
