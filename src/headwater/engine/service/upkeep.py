"""What keeps a warehouse quick and small, in a thread of its own: fold the journal, roll checkpoints, tidy up.

None of it changes a state: a checkpoint is another way to hold what the changes say. So it may be late, fail and be
tried again; the maintainer never waits for it. Rolling costs as much as the data, so it is done at most a small part of
the time: the larger a table, the more rarely.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from headwater.engine.service.publisher import Publisher
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.engine.state.replica_reader import ReplicaReader, refresh_replica
from headwater.model.memory_budget import MemoryBudget
from headwater.model.position import Tick
from headwater.model.project import Project, RetainFor, RetainTicks, Retention
from headwater.model.relation import RelationName
from headwater.model.settings import UpkeepSettings
from headwater.observe.events import CheckpointRolled, Housekept, Listener
from headwater.storage.object_store import look_seconds
from headwater.warehouse.chores import Policy
from headwater.warehouse.folders import replica_folder
from headwater.warehouse.housekeeping import Housekeeper
from headwater.warehouse.journal import Journal
from headwater.warehouse.query import Warehouse
from headwater.warehouse.replica import Replica

_log = logging.getLogger(__name__)

_RECENT_SHARE = 0.2


class Upkeep:
    """Looks after one warehouse until stopped."""

    def __init__(
        self,
        spark: SparkSession,
        path: str,
        project: Project,
        replicas: Callable[[], dict[RelationName, ReplicaReader]],
        tables: Callable[[], Collection[AuxiliaryTable]],
        needed: Callable[[], Tick],
        journal: Journal,
        budget: MemoryBudget,
        listener: Listener,
    ) -> None:
        """`replicas`, `tables` and `needed` say what the maintainer uses now: `needed` is the log's oldest tick.

        `journal` is the maintainer's, which holds what is not folded.
        """
        settings = project.settings
        self._spark = spark
        self._path = path
        self._replicas = replicas
        self._tables = tables
        self._needed = needed
        self._journal = journal
        self._budget = budget
        self._listener = listener
        self._settings = settings.upkeep
        self._batch = settings.batch
        self._interval_seconds = look_seconds(
            path, settings.upkeep.interval_seconds, settings.upkeep.remote_interval_seconds
        )
        self._policy = _policy(project.retention, settings.upkeep)
        self._publisher = Publisher(project, listener)
        self._next_roll: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
        self.refreshed: dict[RelationName, ReplicaReader] = {}
        """Replicas at a newer tick, for the maintainer to take over between two batches."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()
        self._publisher.start()

    def stop(self) -> None:
        """Stop after the current chore."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=120)
        self._publisher.stop()

    def _run(self) -> None:
        started_at = datetime.now(UTC)
        opened: tuple[Warehouse, Housekeeper] | None = None
        is_last = False
        while not is_last:
            is_last = self._stop.wait(self._interval_seconds)
            try:
                warehouse, housekeeper = opened = opened or self._open(started_at)
                if is_last:  # the next maintainer, and every reader, finds all in the tables
                    housekeeper.fold()
                else:
                    self._keep_house(housekeeper)
                    self._roll_views(warehouse, housekeeper)
                    self._refresh_replicas()
                    self._refresh_tables()
            except Exception:  # noqa: BLE001 - upkeep may fail and is tried again; it must never end the maintainer
                if not self._stop.is_set():
                    _log.warning("upkeep failed and will be tried again", exc_info=True)

    def _keep_house(self, housekeeper: Housekeeper) -> None:
        self._fold_if_much(housekeeper)
        try:
            for done in housekeeper.run(datetime.now(UTC), self._needed()):
                self._listener(Housekept(table=done.table, files_removed=done.files_removed, seconds=done.seconds))
                if self._stop.is_set():
                    return
        finally:
            self._journal.let_go(housekeeper.folded)

    def _fold_if_much(self, housekeeper: Housekeeper) -> None:
        """Fold the journal's changes if they are more than may be held."""
        if self._journal.held_bytes > self._budget.journal_bytes:
            try:
                housekeeper.fold()
            finally:
                self._journal.let_go(housekeeper.folded)

    def _open(self, started_at: datetime) -> tuple[Warehouse, Housekeeper]:
        housekeeper = Housekeeper(Warehouse.open(self._path), self._policy, started_at=started_at)
        return Warehouse.open(self._path), housekeeper

    def _roll_views(self, warehouse: Warehouse, housekeeper: Housekeeper) -> None:
        for name in warehouse.catalog().views:
            if self._stop.is_set() or time.monotonic() < self._next_roll.get(name, 0.0):
                continue
            self._fold_if_much(housekeeper)  # rolling a large view takes its time
            started = time.monotonic()
            tick = warehouse.frontier(name)
            tables = [warehouse.kept_table(name), *warehouse.kept_segments(name).values()]
            if [table for table in tables if table.roll_checkpoint(self._spark, tick)]:
                seconds = time.monotonic() - started
                self._listener(CheckpointRolled(table=name, tick=tick, seconds=seconds))
                pause_seconds = 100 * seconds / self._settings.checkpoint_time_percent
                soonest = max(self._settings.checkpoint_interval_seconds, pause_seconds)
                self._next_roll[name] = time.monotonic() + soonest

    def _refresh_replicas(self) -> None:
        for name, reader in self._replicas().items():
            if self._stop.is_set() or name in self.refreshed:
                continue
            if reader.rows.change_count < max(
                self._settings.replica_refresh_rows, _RECENT_SHARE * reader.rows.base_count
            ):
                continue
            replica = Replica.open(replica_folder(self._path, name, reader.entry.generation))
            log = Warehouse.open(self._path).log
            self.refreshed[name] = refresh_replica(reader, replica, log, self._budget, self._batch)

    def _refresh_tables(self) -> None:
        """Read group tables again from their checkpoints once many changes lie on top of what was read before."""
        for table in self._tables():
            if not self._stop.is_set():
                table.refresh(self._settings.replica_refresh_rows, _RECENT_SHARE)


def _policy(retention: Retention, settings: UpkeepSettings) -> Policy:
    policy = Policy(
        fold_commits=settings.fold_commits,
        fold_every=timedelta(seconds=settings.fold_interval_seconds),
        journal_files=settings.journal_files,
    )
    match retention:
        case RetainTicks(count=count):
            return replace(policy, keep_ticks=count)
        case RetainFor(seconds=seconds):
            return replace(policy, keep_for=timedelta(seconds=seconds))
