"""`python -m bench.commits`: what a commit costs that changes one kept table, and one that changes forty.

A commit carries ten rows for each table, in one append to the journal. It is folded every hundred commits; the rule
that folds every 30 seconds is off, so the figures are those of more than about three commits a second. With fewer, each
commit has a larger share of folding. The time of a commit is without housekeeping, which has its own column. Beside it
stands the way before the journal: every table is appended to, and a commit says so. All ways take turns, so that they
meet the same load. No Spark, no sources. Writes bench/results/commits.md.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from bench.report import Report
from headwater.deltas.on_arrow import ArrowBag
from headwater.model.position import Tick
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.chores import Policy
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.folders import view_folder
from headwater.warehouse.housekeeping import Housekeeper
from headwater.warehouse.journal import FOLDED
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

COMMITS = 100
ROWS = 10
WARMING = 10
HOUSEKEEPING = 50
"""It is looked for chores every so many commits: at ten commits a second, every five seconds."""
POLICY = Policy(fold_every=timedelta(hours=1))
"""At ten commits a second, a hundred commits come before half a minute is over; here all ways share that time."""
SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("amount", pa.float64())])
COLUMNS = ("way", "tables", "commit, median ms", "95 %", "housekeeping, ms per commit", "files", "fsyncs")


@dataclass
class Way:
    """A warehouse of some tables, how it is committed to, and what that has cost."""

    name: str
    count: int
    warehouse: Warehouse
    keeper: Housekeeper
    by_journal: bool
    tick: int = 0
    commits: list[float] = field(default_factory=list)
    chores: float = 0.0
    fsyncs: int = 0
    seen: set[str] = field(default_factory=set)
    before: int = 0
    tables: list[KeptTable] = field(default_factory=list)
    epoch: int = 0

    @classmethod
    def make(cls, name: str, count: int, folder: Path, *, by_journal: bool) -> Way:
        """Make the warehouse."""
        warehouse = Warehouse.create(str(folder))
        keeper = Housekeeper(Warehouse.open(str(folder)), POLICY, started_at=datetime.now(UTC))
        made = cls(name=name, count=count, warehouse=warehouse, keeper=keeper, by_journal=by_journal)
        made.epoch = warehouse.commits.take_lease("bench")
        journal = warehouse.commits.journal
        journal.hold()
        views = {}
        for number in range(count):
            view = f"v{number}"
            table = KeptTable.create(view_folder(str(folder), view, 1), journal, SCHEMA, Tick(0))
            table.checkpoint.write(SCHEMA.empty_table(), Tick(0))
            made.tables.append(table)
            views[view] = ViewEntry(name=view, generation=1, sql="…", birth=Tick(0), guarantee="complete", schema=())
        record = CommitRecord(frontiers=dict.fromkeys(views, Tick(0)))
        warehouse.commits.commit(CommitKind.CATALOG, Tick(0), record, epoch=made.epoch, catalog=Catalog(views=views))
        made.look()
        return made

    def commit(self) -> None:
        """Commit a batch, and keep house if it is time."""
        self.tick += 1
        rows = [_rows(self.tick, number) for number in range(self.count)]
        fsyncs, started = _Fsyncs.count, time.perf_counter()
        self._commit(rows)
        self.commits.append(time.perf_counter() - started)
        if self.tick % HOUSEKEEPING == 0:
            started = time.perf_counter()
            for _ in self.keeper.run(datetime.now(UTC), Tick(0)):
                pass
            self.warehouse.commits.journal.let_go(self.keeper.folded)
            self.chores += time.perf_counter() - started
        self.fsyncs += _Fsyncs.count - fsyncs
        self.look()

    def _commit(self, rows: list[pa.Table]) -> None:
        upto = Tick(self.tick)
        record = CommitRecord(frontiers={f"v{number}": upto for number in range(self.count)})
        if self.by_journal:
            found = [table.change(ArrowBag(one), upto) for table, one in zip(self.tables, rows, strict=True)]
            changes = [change for change in found if change is not None]
        else:
            changes = []
            for table, one in zip(self.tables, rows, strict=True):
                while not table.changes.append(one, numbers={FOLDED: upto}):
                    pass  # housekeeping came between
        self.warehouse.commits.commit(CommitKind.BATCH, upto, record, epoch=self.epoch, changes=changes)

    def look(self) -> None:
        """Note the files that there are."""
        for folder, _, names in os.walk(self.warehouse.path):
            self.seen.update(f"{folder}/{name}" for name in names)


class _Fsyncs:
    """Counts what is forced to disk."""

    count = 0

    @classmethod
    def counting(cls, fsync: Callable[[Any], None]) -> Callable[[Any], None]:
        def counted(descriptor: Any) -> None:
            cls.count += 1
            fsync(descriptor)

        return counted


def _rows(tick: int, number: int) -> pa.Table:
    return pa.table(
        {
            "_tick": [tick] * ROWS,
            "_count": [1] * ROWS,
            "id": list(range(tick * ROWS, (tick + 1) * ROWS)),
            "city": [f"city {number}"] * ROWS,
            "amount": [1.5] * ROWS,
        }
    )


def main() -> None:
    """Measure and write."""
    os.fsync = _Fsyncs.counting(os.fsync)  # type: ignore[assignment]  # it takes what the other takes
    report = Report("commits.md")
    report.say(f"# Commits, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    report.say()
    report.say(
        f"{os.cpu_count()} cores; load before: {os.getloadavg()[0]:.1f}. {COMMITS} commits of {ROWS} rows for each "
        "table, all ways in turn. Files and fsyncs are those of a commit with its share of folding and trimming; it is "
        "folded every 100 commits and not by time, as with more than about three commits a second."
    )
    with tempfile.TemporaryDirectory() as folder:
        ways = [
            Way.make("journal", 1, Path(folder, "j1"), by_journal=True),
            Way.make("journal", 40, Path(folder, "j40"), by_journal=True),
            Way.make("each table", 1, Path(folder, "t1"), by_journal=False),
            Way.make("each table", 40, Path(folder, "t40"), by_journal=False),
        ]
        for number in range(WARMING + COMMITS):
            for way in ways:
                if number == WARMING:
                    way.commits, way.chores, way.fsyncs, way.seen = [], 0.0, 0, set()
                    way.look()
                    way.before = len(way.seen)
                way.commit()
        report.table(*COLUMNS)
        for way in ways:
            ordered = sorted(way.commits)
            report.row(
                way.name,
                str(way.count),
                f"{1000 * median(ordered):.1f}",
                f"{1000 * ordered[int(len(ordered) * 0.95)]:.1f}",
                f"{1000 * way.chores / COMMITS:.1f}",
                f"{(len(way.seen) - way.before) / COMMITS:.1f}",
                f"{way.fsyncs / COMMITS:.1f}",
            )
        one, many = (median(way.commits) for way in ways[:2])
        report.say()
        report.say(f"A commit of 40 tables takes {many / one:.2f} × one of a single table.")
    report.write()


if __name__ == "__main__":
    main()
