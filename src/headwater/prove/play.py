"""Play a trial: compile its views, maintain them by the production code on Spark, and compare every tick.

    trial ──► scripted sources ──► maintainer (log, bootstrap, batches, commits) ──► what readers see ──┐
      └─────► the author's text over whole relations, in another engine, at every tick ─────────────────┴─► compare

A state counts if something that the view reads changed at its tick. What DuckDB says is compared first, because it is
fast; where it cannot run a text, or disagrees, Spark runs the author's text at a sample of ticks, and its word counts.
Only states that were compared are counted.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.deltas.compare import Difference, difference
from headwater.demo.recompute import stored_history
from headwater.engine.service.maintainer import Maintainer
from headwater.engine.service.start import start_maintainer
from headwater.errors import HeadwaterError
from headwater.judge.grade_changes import History
from headwater.judge.sample import spread
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import AllGroupTables, Continuous, Maintenance, TheseGroupTables
from headwater.model.position import Tick, by_log
from headwater.model.project import DEFAULT_ALGORITHM, Project, Reading, RetainTicks, SourceDeclaration, ViewFile
from headwater.observe.events import ignore_event
from headwater.project.resolve import ResolvedProject, resolve_project
from headwater.prove.chance import RELATIONS
from headwater.prove.trial import Trial, TrialView
from headwater.prove.truth import Truth, state_at, states
from headwater.sources.scripted import Changes, ScriptedSource
from headwater.warehouse.commit_record import Stopped
from headwater.warehouse.query import Warehouse

_WAIT_SECONDS = 60.0
_SPARK_STATES = 24
"""The most states of a view that Spark judges, where DuckDB cannot: each is a query."""
_SHOWN_LINES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A state that is not what the author's text gives."""

    view: TrialView
    tick: Tick
    difference: Difference


@dataclass(slots=True, kw_only=True)
class Played:
    """What became of a trial's views."""

    states: Counter[str] = field(default_factory=Counter)
    """How many states were compared, by view."""
    refused: dict[str, HeadwaterError] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    """Views that read a view that was refused."""
    stopped: dict[str, Stopped] = field(default_factory=dict)
    """Views that could not go on, and why."""
    judged_by_spark: set[str] = field(default_factory=set)
    disagreed: dict[str, str] = field(default_factory=dict)
    """Views for which DuckDB has another state than the view and Spark, and the first difference."""
    unjudged: dict[str, str] = field(default_factory=dict)
    """Views whose text no engine could run over whole relations, and what it said."""
    wrong: list[Wrong] = field(default_factory=list)


def play_aside(spark: SparkSession, trial: Trial) -> Played:
    """Play a trial in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="headwater-prove-") as folder:
        return play_in(spark, trial, Path(folder), sources_of(trial))


def sources_of(trial: Trial, done: int = 0) -> dict[str, ScriptedSource]:
    """Return the sources of a trial, before its views are created or after `done` of its transactions."""
    sources = {
        name: ScriptedSource(name, tuple(one for one in RELATIONS if one.name.source == name))
        for name in sorted({relation.name.source for relation in RELATIONS})
    }
    for source, changes in (*trial.before, *trial.after[:done]):
        sources[source].commit(changes)
    return sources


def play_in(
    spark: SparkSession, trial: Trial, folder: Path, sources: Mapping[str, ScriptedSource], done: int = 0
) -> Played:
    """Play a trial after its first transactions, which the warehouse in the folder holds already."""
    played = Played()
    views = _accepted(spark, trial, folder, sources, played)
    if not views:
        return played
    resolved = _resolved(spark, views, folder, sources)
    trial = trial.of_sources(resolved.sources)
    maintainer = start_maintainer(spark, resolved, ignore_event)
    try:
        maintainer.begin()
        _settle(maintainer, played)
        ahead = 0
        for count in trial.cuts:
            _commit(trial.after[max(ahead, done) : ahead + count], sources, maintainer)
            ahead += count
            _settle(maintainer, played)
    finally:
        maintainer.close()
        maintainer.release()
    _compare(spark, trial.with_views(views), resolved, str(folder / "warehouse"), played)
    return played


def _commit(
    transactions: Sequence[tuple[str, Changes]], sources: Mapping[str, ScriptedSource], maintainer: Maintainer
) -> None:
    """Commit transactions, and see to it that their ticks come in this order."""
    for source, group in groupby(transactions, key=itemgetter(0)):
        positions = [sources[source].commit(changes) for _, changes in group]
        maintainer.acceptor.wait_for(by_log(positions), _WAIT_SECONDS)


def _accepted(
    spark: SparkSession, trial: Trial, folder: Path, sources: Mapping[str, ScriptedSource], played: Played
) -> list[TrialView]:
    """Return the views that are not refused."""
    accepted = []
    for view in trial.views:
        if played.refused.keys() & {name for name, _ in view.lower}:
            played.left_out.add(view.name)
            continue
        for tried in (view, _plainly(view)):
            try:
                _resolved(spark, [tried], folder, sources)
            except HeadwaterError as error:
                played.refused[view.name] = error
            else:
                played.refused.pop(view.name, None)
                accepted.append(tried)
                break
    return accepted


def _plainly(view: TrialView) -> TrialView:
    """Return a view without what its author chose for how it is kept: some choices do not go with some views."""
    return TrialView(name=view.name, sql=view.sql, constructs=view.constructs, lower=view.lower)


def _resolved(
    spark: SparkSession, views: Sequence[TrialView], folder: Path, sources: Mapping[str, ScriptedSource]
) -> ResolvedProject:
    project = Project(
        name="prove",
        file=folder / "headwater.toml",
        warehouse=str(folder / "warehouse"),
        retention=RetainTicks(count=1_000_000),
        batch_ticks=1_000,
        batch_interval_seconds=0.0,
        default_reading=Reading.REPLICA,
        readings={},
        sources=tuple(
            SourceDeclaration(
                name=name, url_text="", statement_timeout_seconds=60.0, probe_connections=4, declared_in="prove"
            )
            for name in sources
        ),
        views=tuple(_view_file(view, folder) for view in _with_lower(views)),
    )
    return resolve_project(project, spark, connect=lambda _, name: sources[name])


def _with_lower(views: Sequence[TrialView]) -> Iterable[TrialView]:
    """Return views and those that they read, each once."""
    named = {name: TrialView(name=name, sql=sql, constructs=()) for view in views for name, sql in view.lower}
    return {**named, **{view.name: view for view in views}}.values()


def _view_file(view: TrialView, folder: Path) -> ViewFile:
    return ViewFile(
        name=view.name,
        sql=view.sql,
        file=folder / f"{view.name}.sql",
        guarantee=None if view.guarantee is None else Guarantee(view.guarantee),
        algorithm=view.algorithm or DEFAULT_ALGORITHM,
        maintenance=None if view.maintenance is None else Maintenance(view.maintenance),
        refresh=Continuous(),
        group_tables=AllGroupTables() if view.group_tables else TheseGroupTables(()),
    )


def _settle(maintainer: Maintainer, played: Played) -> None:
    """Let the maintainer work until every view has come to the end of the log, or stopped."""
    while maintainer.step() or maintainer.is_bringing_in():
        maintainer.acceptor.wait_for_news(0.005)
    played.refused |= maintainer.unborn()
    for view in maintainer.views.values():
        if view.stopped is not None:
            played.stopped[view.name] = view.stopped


def _compare(spark: SparkSession, trial: Trial, resolved: ResolvedProject, path: str, played: Played) -> None:
    """Compare what readers see of every view with what its text gives, at every tick."""
    warehouse = Warehouse.open(path)
    accepted = warehouse.log.transactions(None, Tick(0), warehouse.log.last_tick)
    history = Truth(
        transactions=(*trial.before, *trial.after), ticks=[(tick, one.source, one.identity) for tick, one in accepted]
    )
    entries = warehouse.catalog().views
    born = [view for view in trial.views if view.name in entries]
    claimed = {
        view.name: _claimed(warehouse, view.name, history.ticks_of(resolved.views[view.name].view.relations))
        for view in born
    }
    right = history.by_duckdb(born, claimed)
    for view in born:
        _compare_view(spark, view, claimed[view.name], warehouse, history, right.get(view.name), played)


def _claimed(warehouse: Warehouse, view: str, changed: set[Tick]) -> set[Tick]:
    """Return the ticks of the states that a view claims to have shown, of those at which something changed."""
    entry, through = warehouse.view(view), warehouse.frontier(view)
    claimed = {tick for tick in changed if entry.birth <= tick <= through}
    if Guarantee(entry.guarantee) is not Guarantee.COMPLETE:
        claimed &= {one.record.frontiers.get(view, entry.birth) for one in warehouse.commits.read()}
    return claimed | {entry.birth}


def _compare_view(
    spark: SparkSession,
    view: TrialView,
    claimed: set[Tick],
    warehouse: Warehouse,
    truth: Truth,
    right: History | None,
    played: Played,
) -> None:
    """Compare the states that a view claims, as DuckDB has them. Where it has none, or others, Spark is asked."""
    stored = stored_history(spark, warehouse, view.name, max(claimed))
    suspects = claimed if right is None else _different(right, stored, claimed)
    if right is not None and suspects:
        first = min(suspects)
        differs = difference(state_at(right, first), state_at(stored, first))
        played.disagreed[view.name] = f"at tick {first}: {differs.text(_SHOWN_LINES)}"
    judged = spread(sorted(suspects), _SPARK_STATES)
    played.states[view.name] = len(claimed - suspects) + len(judged)
    if judged:
        played.judged_by_spark.add(view.name)
    try:
        for tick, expected in zip(judged, truth.on_spark(spark, view, judged), strict=True):
            differs = difference(expected, state_at(stored, tick))
            if differs:
                played.wrong.append(Wrong(view=view, tick=tick, difference=differs))
                played.disagreed.pop(view.name, None)
                return
    except PySparkException as error:
        played.states[view.name] = len(claimed - suspects)
        played.unjudged[view.name] = str(error).splitlines()[0]


def _different(right: History, stored: History, ticks: set[Tick]) -> set[Tick]:
    """Return the ticks, of these, at which two histories have different states."""
    pairs = zip(states(right, max(ticks)), states(stored, max(ticks)), strict=True)
    return {
        tick
        for (tick, expected), (_, actual) in pairs
        if tick in ticks and expected != actual and difference(expected, actual)
    }
