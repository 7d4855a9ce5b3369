"""Keep a warehouse fast and small: fold the journal, merge small files, drop what is out of retention or not read.

Runs in a thread of its own, beside the maintainer, on handles of its own. It writes no commit rows: states are
addressed by tick, so only the table knows where rows are. A maintainer whose append meets a chore's
commit looks again, finds the table's numbers unchanged, and tries again; a chore that meets a maintainer's commit gives
up until next time. The change log and the commits are never made to wait. None of it needs the lease.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from headwater.changelog.change_log import HORIZON
from headwater.errors import HeadwaterError
from headwater.fail_points import reach
from headwater.model.position import Tick
from headwater.storage.fenced_table import FencedTable
from headwater.storage.object_store import store_at
from headwater.warehouse.catalog import Catalog
from headwater.warehouse.chores import (
    Chore,
    CleanLog,
    Compact,
    DropRows,
    Fold,
    Policy,
    TableFacts,
    Trim,
    Vacuum,
    chores,
    droppable,
    is_fold_due,
)
from headwater.warehouse.commit_record import Commit, CommitRecord
from headwater.warehouse.commits import REFERRED
from headwater.warehouse.folders import (
    changelog_folder,
    is_past,
    older_commits_folder,
    replica_folder,
    segment_folder,
    view_folder,
)
from headwater.warehouse.generations import abandoned
from headwater.warehouse.journal import folded_upto, table_name
from headwater.warehouse.query import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoreDone:
    """A chore, how many files it removed from a table or from disk, and how long it took."""

    table: str
    chore: Chore
    files_removed: int
    seconds: float


@dataclass(slots=True, kw_only=True)
class _Handle:
    """A table, and when what was done about it last."""

    table: FencedTable
    cleaned_version: int
    vacuumed_at: datetime


class Housekeeper:
    """Does the chores of one warehouse. Used by one thread."""

    def __init__(self, warehouse: Warehouse, policy: Policy, *, started_at: datetime) -> None:
        """Take a warehouse of our own: its handles are moved to the newest versions."""
        self._warehouse = warehouse
        self._policy = policy
        self._handles: dict[str, _Handle] = {}
        self._started_at = started_at
        self._swept_at = started_at
        self._journal = warehouse.commits.journal
        self._folded_at = started_at
        self._folded_sequence = 0
        self._named: set[str] = set()
        """The tables of the catalog, as it was last looked at: these are never taken for gone."""
        self.folded: Mapping[str, Tick] = {}
        """How far tables had come when they were last folded."""

    def run(self, now: datetime, needed: Tick) -> Iterator[ChoreDone]:
        """Do the chores of now, yielding after each. The maintainer needs the log's rows after `needed`."""
        head, catalog, kept = self._look()
        if self._is_fold_due(now, head.sequence):
            yield self._timed(Fold(path=self._journal.table.path), now)
        old_enough = self._old_enough(now)
        log_needed = [needed, *head.record.frontiers.values()]
        for folder, last in kept.items():
            at, folded = self._tick(f"{folder}/checkpoint"), self._folded(f"{folder}/changes")
            upto = droppable(self._policy, last=last, old_enough=old_enough, needed=min(at, last, folded))
            yield from self._table(f"{folder}/changes", now, upto)
            yield from self._table(f"{folder}/checkpoint", now, Tick(0), replaced=True)
        for replica in catalog.replicas.values():
            path = f"{replica_folder(self._warehouse.path, replica.relation, replica.generation)}/checkpoint"
            log_needed.append(self._tick(path))
            yield from self._table(path, now, Tick(0), replaced=True)
        upto = droppable(self._policy, last=head.tick, old_enough=old_enough, needed=min(log_needed))
        yield from self._table(changelog_folder(self._warehouse.path), now, upto)
        if len(self._journal.table.entries()) >= self._policy.journal_files:
            yield self._timed(Trim(path=self._journal.table.path), now)
        yield from self._table(self._journal.table.path, now, Tick(0), replaced=True)
        if now - self._swept_at >= self._policy.vacuum_every:
            self._swept_at = now
            self._sweep(now)

    def _look(self) -> tuple[Commit, Catalog, dict[str, Tick]]:
        """Return the newest commit, its catalog, and the tables that it keeps."""
        head = self._warehouse.head()
        catalog = self._warehouse.commits.catalog(head)
        kept = self._kept(catalog, head.record)
        self._named = {table_name(folder) for folder in kept}
        return head, catalog, kept

    def _kept(self, catalog: Catalog, record: CommitRecord) -> dict[str, Tick]:
        """Return the folders of views and auxiliary tables, each with the first tick from which a view goes on."""
        path, found = self._warehouse.path, dict[str, Tick]()
        for view in sorted(catalog.views.values(), key=lambda view: view.name in record.stopped):
            frontier = record.frontiers.get(view.name, view.birth)
            found[view_folder(path, view.name, view.generation)] = frontier
            for table in view.segments:
                before = found.setdefault(segment_folder(path, table), frontier)
                if view.name not in record.stopped:
                    found[segment_folder(path, table)] = min(before, frontier)
        return found

    def _table(self, path: str, now: datetime, upto: Tick, *, replaced: bool = False) -> Iterator[ChoreDone]:
        handle = self._handle(path)
        handle.table.reload()
        facts = TableFacts(
            path=path,
            file_sizes=[entry["size_bytes"] for entry in handle.table.entries()],
            version=handle.table.version,
            cleaned_version=handle.cleaned_version,
            vacuumed_at=handle.vacuumed_at,
            horizon=Tick(handle.table.number(HORIZON) or 0),
            droppable=upto,
            replaced=replaced,
        )
        for chore in chores(facts, self._policy, now):
            yield self._timed(chore, now)

    def _timed(self, chore: Chore, now: datetime) -> ChoreDone:
        started = time.perf_counter()
        reach(f"before {type(chore).__name__}")
        removed = self._do(chore, now)
        reach(f"after {type(chore).__name__}")
        return ChoreDone(table=chore.path, chore=chore, files_removed=removed, seconds=time.perf_counter() - started)

    def _do(self, chore: Chore, now: datetime) -> int:
        handle = self._handle(chore.path)
        removed = 0
        match chore:
            case Fold():
                self._folded_at = now
                self.fold()
            case Trim():
                removed = self._journal.trim(self._is_covered, self._policy.journal_files)
            case DropRows():
                removed = handle.table.drop(chore.upto, numbers={HORIZON: chore.upto})
            case Compact():
                removed = handle.table.compact(chore.below_bytes)
            case Vacuum():
                handle.vacuumed_at = now
                removed = handle.table.vacuum(grace_hours=self._policy.grace_hours, strays=False)
                if not self._is_referred_to(chore.path):
                    removed += handle.table.vacuum(grace_hours=self._policy.stray_hours, strays=True)
            case CleanLog():
                if handle.table.clean_log():
                    handle.cleaned_version = handle.table.version
            case _:
                assert_never(chore)
        return removed

    def fold(self, needed: Collection[str] | None = None) -> Mapping[str, Tick]:
        """Move what is in the journal into its tables, and return the ticks up to which these have it.

        If one of the needed tables cannot be folded, that is raised once the others are. All of the catalog are needed,
        unless the caller names them. A table that the catalog has dropped may still be read by a reader that began
        earlier, so it is folded too if it can be.
        """
        head, _, _ = self._look()
        if needed is None:
            needed = self._named
        done = self._journal.fold(self._changes)
        self.folded = done.upto
        for name, error in done.failed.items():
            if name in needed:
                raise error
        self._folded_sequence = head.sequence
        return self.folded

    def _is_fold_due(self, now: datetime, sequence: int) -> bool:
        return is_fold_due(
            self._policy,
            commits=sequence - self._folded_sequence,
            since=now - self._folded_at,
            refers=(self._journal.table.number(REFERRED) or 0) > self._folded_sequence,
        )

    def _changes(self, name: str) -> FencedTable | None:
        """Return the newest version of a table's `changes`, or None if the table is gone."""
        path = f"{self._warehouse.path}/{name}/changes"
        try:
            if name not in self._named and not FencedTable.exists(path):
                return None
            table = self._handle(path).table
            table.reload()
        except HeadwaterError:
            if name in self._named:
                raise
            return None
        return table

    def _is_covered(self, name: str, upto: Tick) -> bool:
        table = self._changes(name)
        return table is None or folded_upto(table) >= upto

    def _is_referred_to(self, path: str) -> bool:
        """Tell whether the journal names files of a table that are not part of it yet: to Delta they are strays."""
        if self._journal.table.number(REFERRED) is None:
            return False
        return any(path == f"{self._warehouse.path}/{name}/changes" for name in self._journal.referring(self._changes))

    def _folded(self, path: str) -> Tick:
        table = self._handle(path).table
        table.reload()
        return folded_upto(table)

    def _handle(self, path: str) -> _Handle:
        if path not in self._handles:
            self._handles[path] = _Handle(table=FencedTable.open(path), cleaned_version=0, vacuumed_at=self._started_at)
        return self._handles[path]

    def _tick(self, path: str) -> Tick:
        table = self._handle(path).table
        table.reload()
        return Tick(table.number("headwater") or 0)

    def _old_enough(self, now: datetime) -> Tick:
        if self._policy.keep_for is None:
            return Tick(0)
        commit = self._warehouse.commits.at(now - self._policy.keep_for)
        return Tick(0) if commit is None else commit.tick

    def _sweep(self, now: datetime) -> None:
        store_at(older_commits_folder(self._warehouse.path)).delete()  # an upgrade has carried them over
        for name in store_at(self._warehouse.path).names():
            if is_past(name, now):
                store_at(f"{self._warehouse.path}/{name}").delete()
        for folder in abandoned(self._warehouse, now - (self._policy.keep_for or timedelta(days=1))):
            store_at(folder).delete()
