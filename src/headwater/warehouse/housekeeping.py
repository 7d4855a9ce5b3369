"""Keep a warehouse fast and small: merge small files, drop what is out of retention, delete what is not read.

Runs in a thread of its own, beside the maintainer, on handles of its own. It writes no commit rows: states are
addressed by tick, so only the table knows where rows are. A maintainer whose append meets a chore's
commit looks again, finds the table's numbers unchanged, and tries again; a chore that meets a maintainer's commit gives
up until next time. The change log and the commits are never made to wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from headwater.changelog.change_log import HORIZON
from headwater.fail_points import reach
from headwater.model.position import Tick
from headwater.storage.data_file import delete_folder
from headwater.storage.fenced_table import FencedTable
from headwater.warehouse.catalog import Catalog
from headwater.warehouse.chores import Chore, CleanLog, Compact, DropRows, Policy, TableFacts, Vacuum, chores, droppable
from headwater.warehouse.commit_record import CommitRecord
from headwater.warehouse.folders import changelog_folder, commits_folder, replica_folder, segment_folder, view_folder
from headwater.warehouse.generations import abandoned
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

    def run(self, now: datetime, needed: Tick) -> Iterator[ChoreDone]:
        """Do the chores of now, yielding after each. The maintainer needs the log's rows after `needed`."""
        head = self._warehouse.head()
        catalog = self._warehouse.commits.catalog(head)
        old_enough = self._old_enough(now)
        log_needed = [needed, *head.record.frontiers.values()]
        for folder, last in self._kept(catalog, head.record).items():
            at = self._tick(f"{folder}/checkpoint")
            upto = droppable(self._policy, last=last, old_enough=old_enough, needed=min(at, last))
            yield from self._table(f"{folder}/changes", now, upto)
            yield from self._table(f"{folder}/checkpoint", now, Tick(0), replaced=True)
        for replica in catalog.replicas.values():
            path = f"{replica_folder(self._warehouse.path, replica.relation, replica.generation)}/checkpoint"
            log_needed.append(self._tick(path))
            yield from self._table(path, now, Tick(0), replaced=True)
        upto = droppable(self._policy, last=head.tick, old_enough=old_enough, needed=min(log_needed))
        yield from self._table(changelog_folder(self._warehouse.path), now, upto)
        yield from self._table(commits_folder(self._warehouse.path), now, Tick(0))
        if now - self._swept_at >= self._policy.vacuum_every:
            self._swept_at = now
            self._sweep(now)

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
            started = time.perf_counter()
            reach(f"before {type(chore).__name__}")
            removed = self._do(handle, chore, now)
            reach(f"after {type(chore).__name__}")
            yield ChoreDone(table=path, chore=chore, files_removed=removed, seconds=time.perf_counter() - started)

    def _do(self, handle: _Handle, chore: Chore, now: datetime) -> int:
        match chore:
            case DropRows():
                return handle.table.drop(chore.upto, numbers={HORIZON: chore.upto})
            case Compact():
                return handle.table.compact(chore.below_bytes)
            case Vacuum():
                handle.vacuumed_at = now
                removed = handle.table.vacuum(grace_hours=self._policy.grace_hours, strays=False)
                return removed + handle.table.vacuum(grace_hours=self._policy.stray_hours, strays=True)
            case CleanLog():
                if handle.table.clean_log():
                    handle.cleaned_version = handle.table.version
                return 0
            case _:
                assert_never(chore)

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
        for folder in abandoned(self._warehouse, now - (self._policy.keep_for or timedelta(days=1))):
            delete_folder(folder)
