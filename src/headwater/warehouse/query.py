"""Reading a warehouse: which views there are, how far they have come, and their rows at any moment that is kept.

A reader needs no maintainer: it opens its own handles and sees the newest commit, and never half of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self, assert_never

import pyarrow as pa

from headwater.changelog import ChangeLog
from headwater.deltas.on_arrow import ArrowBag
from headwater.errors import NotReadable, did_you_mean
from headwater.model.moment import AtPosition, AtTick, AtTime, Moment
from headwater.model.position import Position, Tick, of_source
from headwater.model.settings import DEFAULTS, ReadingSettings
from headwater.observe.status import HistoryEntry
from headwater.storage.object_store import store_at
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.commit_record import Commit
from headwater.warehouse.commits import Commits
from headwater.warehouse.folders import (
    changelog_folder,
    journal_folder,
    older_commits_folder,
    segment_folder,
    segment_of_table,
    view_folder,
)
from headwater.warehouse.followed import followed_positions
from headwater.warehouse.format import check_format, is_warehouse, write_format
from headwater.warehouse.history import view_history
from headwater.warehouse.kept_table import KeptTable

if TYPE_CHECKING:  # most readers need no Spark, and begin sooner without importing it
    from pyspark.sql import DataFrame, SparkSession


class Warehouse:
    """A warehouse's folder, open for reading. The holder of the lease can write its log and commits."""

    def __init__(
        self, path: str, log: ChangeLog, commits: Commits, settings: ReadingSettings = DEFAULTS.reading
    ) -> None:
        """Wrap what is open. Use `create` or `open`."""
        self.path = path
        self.log = log
        self.commits = commits
        self._settings = settings

    @classmethod
    def create(cls, path: str) -> Self:
        """Make an empty warehouse, if there is none. One that a crash left half made is completed."""
        if not is_warehouse(path):
            if not ChangeLog.exists(changelog_folder(path)):
                ChangeLog.create(changelog_folder(path))
            store_at(older_commits_folder(path)).delete()  # an older version began here, and came to nothing
            if not Commits.exists(journal_folder(path)):
                Commits.create(journal_folder(path))
            write_format(path)
        return cls.open(path)

    @classmethod
    def open(cls, path: str, settings: ReadingSettings = DEFAULTS.reading) -> Self:
        """Open a warehouse. One of another format is refused, unless it can be read as it is."""
        check_format(path)
        folder = journal_folder(path) if has_journal(path) else older_commits_folder(path)
        return cls(path, ChangeLog.open(changelog_folder(path)), Commits.open(folder), settings)

    def head(self) -> Commit:
        """Return the newest commit."""
        return self.commits.head()

    def catalog(self) -> Catalog:
        """Return the views and replicas as the newest commit knows them."""
        return self.commits.catalog(self.head())

    def view(self, name: str) -> ViewEntry:
        """Return a view. One that is not there is refused."""
        views = self.catalog().views
        if name not in views:
            raise NotReadable(
                f'there is no view "{name}"',
                code="HW-416",
                detail=f"the warehouse has: {', '.join(sorted(views)) or 'none'}",
                hint=did_you_mean(
                    name,
                    tuple(sorted(views)),
                    otherwise="check the name, or run `headwater run` so that a new view is filled",
                ),
            )
        return views[name]

    def frontier(self, name: str) -> Tick:
        """Return the newest tick that a view can be read at."""
        birth = self.view(name).birth
        return self.head().record.frontiers.get(name, birth)

    def resolve_at(self, name: str, moment: Moment | None) -> Tick:
        """Return the tick that a moment means for a view, or its frontier. A tick it cannot be read at is refused."""
        match moment:
            case None:
                tick = self.frontier(name)
            case AtTick():
                tick = moment.tick
            case AtPosition():
                tick = self.tick_at(moment)
            case AtTime():
                tick = self._tick_at_time(name, moment)
            case _:
                assert_never(moment)
        self._check_readable(name, tick)
        return tick

    def view_dataframe(self, spark: SparkSession, name: str, tick: Tick) -> DataFrame:
        """Return a view's plain rows at a tick."""
        self._check_readable(name, tick)
        return self.kept_table(name).state_dataframe(spark, tick)

    def view_entries(self, spark: SparkSession, name: str, tick: Tick) -> DataFrame:
        """Return entries that sum up to a view's rows at a tick, with `_count`: for callers that need few of them.

        A small view's are read here: Spark takes longer to find out what to read.
        """
        self._check_readable(name, tick)
        table = self.kept_table(name)
        few = table.few_rows(tick, tuple(table.schema.names), None, self._settings.handed_rows)
        if few is None:
            return table.entries_dataframe(spark, tick)
        from headwater.deltas.on_spark import to_dataframe  # noqa: PLC0415 - as above

        return to_dataframe(spark, few.counted).coalesce(1)

    def changes_dataframe(self, spark: SparkSession, name: str, after: Tick, upto: Tick) -> DataFrame:
        """Return a view's signed rows with after < tick <= upto, with `_tick` and `_count`."""
        self._check_readable(name, after)
        self._check_readable(name, upto)
        return self.kept_table(name).changes_dataframe(spark, after, upto)

    def row_count(self, name: str, tick: Tick) -> int:
        """Return how many rows a view has at a tick, without reading them."""
        self._check_readable(name, tick)
        return self.kept_table(name).row_count(tick)

    def few_rows(self, name: str, tick: Tick, columns: Sequence[str]) -> ArrowBag | None:
        """Return some columns of a view's rows at a tick, not netted, or None if Spark has to read them."""
        self._check_readable(name, tick)
        return self.kept_table(name).few_rows(tick, tuple(columns), None, self._settings.local_rows)

    def few_changes(self, name: str, after: Tick, upto: Tick) -> pa.Table | None:
        """Return the same without Spark, or None if there are more than a few."""
        self._check_readable(name, after)
        self._check_readable(name, upto)
        return self.kept_table(name).few_changes(after, upto, self._settings.local_rows)

    def kept_table(self, name: str) -> KeptTable:
        """Open the tables of a view's present generation."""
        return KeptTable.open(view_folder(self.path, name, self.view(name).generation), self.commits.journal)

    def kept_segments(self, name: str) -> dict[str, KeptTable]:
        """Open the auxiliary tables of a view, by segment."""
        tables = self.view(name).segments
        return {
            segment_of_table(table): KeptTable.open(segment_folder(self.path, table), self.commits.journal)
            for table in tables
        }

    def tick_at(self, moment: AtPosition) -> Tick:
        """Return the first tick whose state holds all that a source committed up to a position.

        A position from before the source was followed is refused: what it had committed by then is not known.
        """
        tick = self.newest_tick_upto(moment)
        if tick is not None:
            return tick
        first, last = self._followed_from(moment.log_name), self._followed_to(moment.log_name)
        if self.log.horizon() or first is None or first.notation.parse(moment.text) < first.offset:
            raise NotReadable(
                f"the state at {moment} is not known",
                code="HW-150",
                detail="retention has dropped what happened before"
                if self.log.horizon()
                else f'source "{moment.source}" was not followed yet at this position',
                hint=f"ask for a position from {first or last} to {last}",
            )
        return Tick(0)

    def newest_tick_upto(self, moment: AtPosition) -> Tick | None:
        """Return the tick of the newest transaction of a source's log up to a position, or None if there is none.

        A position beyond what was followed is refused: transactions up to it may still come.
        """
        known = self._followed_to(moment.log_name)
        offset = None if known is None else known.notation.parse(moment.text)
        if known is None or offset is None or offset > known.offset:
            raise NotReadable(
                f"the change log has not come to {moment} yet",
                code="HW-417",
                detail=f"it has come to {known}" if known else self._without_log(moment),
                hint="wait for it with `query --after`, or see `headwater status`",
            )
        return self.log.tick_at(replace(known, offset=offset))

    def _without_log(self, moment: AtPosition) -> str:
        """Say that a log is not known, and which of the source are."""
        known = ", ".join(sorted(of_source(self.log.positions(), moment.source)))
        return f"positions of this source are those of {known}" if known else f'it holds nothing of "{moment.log_name}"'

    def _followed_to(self, log: str) -> Position | None:
        """Return up to which position the change log holds all transactions of a source's log."""
        said = followed_positions(self.path)  # before the log is looked at, which holds all this by then
        self.log.refresh()
        known = [found[log] for found in (self.log.positions(), self.head().record.positions, said) if log in found]
        return max((one for one in known if one.history == known[0].history), key=lambda one: one.offset, default=None)

    def _followed_from(self, log: str) -> Position | None:
        """Return the lowest position that a commit whose changes are kept knows the log to have been followed to."""
        horizon = self.log.horizon()
        found = (commit.record.positions.get(log) for commit in self.commits.read() if commit.tick >= horizon)
        return min((one for one in found if one is not None), key=lambda one: one.offset, default=None)

    def _tick_at_time(self, name: str, moment: AtTime) -> Tick:
        """Return the tick that readers of a view saw at a time. One that has not come, or was before it, is refused."""
        view, head = self.view(name), self.head()
        if moment.time > max(datetime.now(UTC), head.committed_at):
            raise NotReadable(
                f"{moment} is in the future",
                code="HW-151",
                detail=f"the newest commit is of {head.committed_at.isoformat(timespec='seconds')}",
                hint=f"ask for a time that has passed, or a tick from {view.birth} to {self.frontier(name)}",
            )
        commit = self.commits.at(moment.time)
        if commit is None or not self._has_generation(commit, view):
            first = next((one for one in self.commits.read() if self._has_generation(one, view)), head)
            raise NotReadable(
                f'view "{name}" cannot be read at {moment}',
                code="HW-152",
                detail=f"it became readable at {first.committed_at.isoformat()}",
                hint=f"ask for a time from then on, or a tick from {view.birth} to {self.frontier(name)}",
            )
        return commit.record.frontiers[name]

    def _has_generation(self, commit: Commit, view: ViewEntry) -> bool:
        """Tell whether a commit shows a view as it is defined now."""
        if view.name not in commit.record.frontiers or not commit.catalog_sequence:
            return False
        then = self.commits.catalog(commit).views.get(view.name)
        return then is not None and then.generation == view.generation

    def history(self, name: str) -> list[HistoryEntry]:
        """Return the commits that changed a view, oldest first."""
        self.view(name)
        return view_history(self.commits.read(), name)

    def _check_readable(self, name: str, tick: Tick) -> None:
        view, head = self.view(name), self.head()
        frontier = head.record.frontiers.get(name, view.birth)
        if tick < view.birth:
            raise NotReadable(
                f'view "{name}" cannot be read at tick {tick}',
                code="HW-414",
                detail=f"it was born at tick {view.birth}; nothing is known of its rows before",
                hint=f"ask for a tick from {view.birth} to {frontier}",
            )
        if tick > frontier:
            stopped = head.record.stopped.get(name)
            raise NotReadable(
                f'view "{name}" cannot be read at tick {tick}',
                code="HW-415",
                detail=f"it stopped at tick {frontier}: {stopped.summary} [{stopped.code}]"
                if stopped
                else f"it has come to tick {frontier}",
                hint=(stopped.hint if stopped else "") or f"ask for a tick from {view.birth} to {frontier}",
            )


def has_journal(warehouse: str) -> bool:
    """Tell whether the commits are in the journal. An upgrade copies them there as its last step."""
    path = journal_folder(warehouse)
    if not Commits.exists(path):
        return False
    return not Commits.exists(older_commits_folder(warehouse)) or Commits.open(path).head().sequence > 0
