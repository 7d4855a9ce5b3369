"""Play a trial: compile its views, maintain them by the production code on Spark, and compare every tick.

    trial ──► scripted sources ──► maintainer (log, bootstrap, batches, commits) ──► what readers see ──┐
      └─────► the author's text over whole relations, in another engine, at every tick ─────────────────┴─► compare

A state counts if something that the view reads changed at its tick. What DuckDB says is compared first, because it is
fast; where it cannot run a text, or disagrees, Spark runs the author's text at that tick, and has the last word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.demo.recompute import shown_history
from headwater.errors import HeadwaterError
from headwater.guarantee import Guarantee
from headwater.judge.audit import AuditedChange, RowText
from headwater.judge.compare import Difference, Row, difference
from headwater.judge.grade_changes import History
from headwater.judge.replay import ReplayedView, replay
from headwater.keeping import AllGroupTables, Continuous, Maintenance, TheseGroupTables
from headwater.position import Tick
from headwater.project import DEFAULT_ALGORITHM, Project, Reading, RetainTicks, SourceDeclaration, ViewFile
from headwater.prove.chance import RELATIONS
from headwater.prove.trial import Trial, TrialView
from headwater.relation import Relation
from headwater.runtime.events import unheard
from headwater.runtime.maintainer import Maintainer
from headwater.runtime.start import start_maintainer
from headwater.runtime.understand import Understood, understand
from headwater.sources.scripted import Changes, ScriptedSource, Values
from headwater.warehouse.query import Warehouse

_WAIT_SECONDS = 60.0


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
    stopped: dict[str, str] = field(default_factory=dict)
    """Views that could not go on, with the code."""
    judged_by_spark: set[str] = field(default_factory=set)
    wrong: list[Wrong] = field(default_factory=list)


def play(spark: SparkSession, trial: Trial, folder: Path) -> Played:
    """Play a trial in an empty folder."""
    sources = {
        name: ScriptedSource(name, tuple(one for one in RELATIONS if one.name.source == name))
        for name in sorted({relation.name.source for relation in RELATIONS})
    }
    for source, changes in trial.before:
        sources[source].commit(changes)
    played = Played()
    views = _accepted(spark, trial, folder, sources, played)
    if not views:
        return played
    understood = _understood(spark, views, folder, sources)
    maintainer = start_maintainer(spark, understood, unheard)
    try:
        maintainer.begin()
        _settle(maintainer, played)
        ahead = 0
        for count in trial.cuts:
            for source, changes in trial.after[ahead : ahead + count]:
                position = sources[source].commit(changes)
                maintainer.acceptor.wait_for(position, _WAIT_SECONDS)  # so that ticks come in the trial's order
            ahead += count
            _settle(maintainer, played)
    finally:
        maintainer.close()
        maintainer.release()
    _compare(spark, trial, views, str(folder / "warehouse"), played)
    return played


def _accepted(
    spark: SparkSession, trial: Trial, folder: Path, sources: Mapping[str, ScriptedSource], played: Played
) -> list[TrialView]:
    """Return the views that are not refused."""
    accepted = []
    for view in trial.views:
        for tried in (view, _plainly(view)):
            try:
                _understood(spark, [tried], folder, sources)
            except HeadwaterError as error:
                played.refused[view.name] = error
            else:
                played.refused.pop(view.name, None)
                accepted.append(tried)
                break
    return accepted


def _plainly(view: TrialView) -> TrialView:
    """Return a view without what its author chose for how it is kept: some choices do not go with some views."""
    return TrialView(name=view.name, sql=view.sql, constructs=view.constructs)


def _understood(
    spark: SparkSession, views: Sequence[TrialView], folder: Path, sources: Mapping[str, ScriptedSource]
) -> Understood:
    project = Project(
        name="prove",
        file=folder / "headwater.toml",
        warehouse=folder / "warehouse",
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
        views=tuple(_view_file(view, folder) for view in views),
    )
    return understand(project, spark, connect=lambda _: sources)


def _view_file(view: TrialView, folder: Path) -> ViewFile:
    return ViewFile(
        name=view.name,
        sql=view.sql,
        file=folder / f"{view.name}.sql",
        guarantee=None if view.guarantee is None else Guarantee(view.guarantee),
        algorithm=DEFAULT_ALGORITHM,
        maintenance=None if view.maintenance is None else Maintenance(view.maintenance),
        refresh=Continuous(),
        group_tables=AllGroupTables() if view.group_tables else TheseGroupTables(()),
    )


def _settle(maintainer: Maintainer, played: Played) -> None:
    """Let the maintainer work until every view has come to the end of the log, or stopped."""
    while maintainer.step() or maintainer.is_bringing_in():
        maintainer.acceptor.wait_for_news(0.005)
    for name, error in maintainer.unborn().items():
        played.refused[name] = error
    for view in maintainer.views.values():
        if view.stopped is not None:
            played.stopped[view.name] = view.stopped.code


def _compare(spark: SparkSession, trial: Trial, views: Sequence[TrialView], path: str, played: Played) -> None:
    warehouse = Warehouse.open(path)
    entries = warehouse.catalog().views
    log = [
        (tick, one.source, one.identity)
        for tick, one in warehouse.log.transactions(None, Tick(0), warehouse.log.last_tick)
    ]
    identities: Counter[str] = Counter()
    audited: list[AuditedChange] = []
    for source, changes in (*trial.before, *trial.after):
        identities[source] += 1
        audited += _audited(source, identities[source], changes)
    for view in views:
        if view.name in entries:
            _compare_view(spark, view, warehouse, audited, log, played)


def _compare_view(
    spark: SparkSession,
    view: TrialView,
    warehouse: Warehouse,
    audited: Sequence[AuditedChange],
    log: Sequence[tuple[Tick, str, int]],
    played: Played,
) -> None:
    entry, through = warehouse.view(view.name), warehouse.frontier(view.name)
    shown = shown_history(spark, warehouse, view.name, through)
    replayed = ReplayedView(name=view.name, sql=view.sql, birth=entry.birth)
    right = replay(relations=RELATIONS, views=[replayed], history=audited, before=(), ticks=log)[view.name]
    played.states[view.name] = len([tick for tick in range(entry.birth, through + 1)])
    claimed = _claimed(warehouse, view.name, entry.birth, through) if entry.guarantee != "complete" else None
    for tick, differs in _differences(right, shown, through, claimed):
        played.wrong.append(Wrong(view=view, tick=tick, difference=differs))
        break


def _claimed(warehouse: Warehouse, view: str, birth: Tick, through: Tick) -> set[Tick]:
    """Return the ticks whose states a strong view claims: those that some commit ended at."""
    ends = {commit.record.frontiers.get(view, birth) for commit in warehouse.commits.read()}
    return {birth, *(tick for tick in ends if birth <= tick <= through)}


def _differences(
    right: History, shown: History, through: Tick, claimed: set[Tick] | None
) -> list[tuple[Tick, Difference]]:
    """Return the ticks at which the view shows something else than it should, and what."""
    found = []
    expected, actual = Counter(right.start), Counter(shown.start)
    for tick in range(right.birth, through + 1):
        if tick > right.birth:
            _add(expected, right.changes.get(Tick(tick), {}))
            _add(actual, shown.changes.get(Tick(tick), {}))
        if (claimed is None or tick in claimed) and (differs := difference(expected, actual)):
            found.append((Tick(tick), differs))
    return found


def _add(state: Counter[Row], changes: Mapping[Row, int]) -> None:
    for row, count in changes.items():
        state[row] += count


def _audited(source: str, identity: int, changes: Changes) -> list[AuditedChange]:
    """Return what a transaction did, row by row, as a database's own triggers would have told."""
    found = []
    for relation in RELATIONS:
        for row, count in sorted(changes.get(relation.name, {}).items(), key=lambda one: one[1]):
            told = _told(relation, row)
            change = AuditedChange(
                source=source,
                identity=identity,
                relation=relation.name,
                old=told if count < 0 else None,
                new=told if count > 0 else None,
            )
            found += [change] * abs(count)
    return found


def _told(relation: Relation, row: Values) -> RowText:
    return {
        column.name: None if value is None else str(value) for column, value in zip(relation.columns, row, strict=True)
    }
