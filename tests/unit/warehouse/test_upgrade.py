"""A warehouse of format 3 becomes one with a journal: nothing is lost, whoever is killed or comes between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from journaled import rows_at

from headwater.changelog import ChangeLog
from headwater.deltas.on_arrow import ArrowBag
from headwater.errors import LeaseLost
from headwater.fail_points import VARIABLE
from headwater.model.position import Tick
from headwater.observe.events import Event, WarehouseUpgraded
from headwater.storage.fenced_table import FencedTable
from headwater.storage.notes import write_text
from headwater.warehouse import upgrade
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.checkpoint import Checkpoint
from headwater.warehouse.commit_record import Commit, CommitKind, CommitRecord, commit_text
from headwater.warehouse.commits import Commits
from headwater.warehouse.folders import (
    changelog_folder,
    journal_folder,
    older_commits_folder,
    segment_folder,
    view_folder,
)
from headwater.warehouse.format import FORMAT
from headwater.warehouse.journal import RECORDS, Journal, folded_upto
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

POINTS = [f"{when} {step} upgrade" for step in ("format", "table", "journal") for when in ("before", "after")]
SCHEMA = pa.schema([("id", pa.int64())])
FRONTIERS = {"a": 5, "b": 3}
PROGRAM = "import sys; from headwater.warehouse.upgrade import upgrade; upgrade(sys.argv[1], print)"


def older_table(folder: str, appended: int, checkpoint: int) -> FencedTable:
    """A table of format 3 that has a row for every tick it was appended to, in files of two ticks."""
    columns = pa.schema([("_tick", pa.int64()), ("_count", pa.int64()), *SCHEMA])
    made = FencedTable.create(f"{folder}/changes", columns, numbers={"headwater": 0, "headwater.birth": 0}, mark="{}")
    for tick in range(1, appended + 1, 2):
        ticks = [one for one in (tick, tick + 1) if one <= appended]
        rows = pa.table({"_tick": ticks, "_count": [1] * len(ticks), "id": ticks}, schema=columns)
        assert made.append(rows, numbers={"headwater": ticks[-1]})
    FencedTable.create(f"{folder}/checkpoint", SCHEMA, numbers={}, mark="{}", indexed=8)
    Checkpoint.open(f"{folder}/checkpoint").write(pa.table({"id": list(range(1, checkpoint + 1))}), Tick(checkpoint))
    return made


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A warehouse of format 3: views a and b share a table, and a dead maintainer appended what it did not commit."""
    path = str(tmp_path / "warehouse")
    ChangeLog.create(changelog_folder(path))
    nothing = Commits.create(str(tmp_path / "other")).head()
    numbers = {"headwater": 0, "headwater.epoch": 0}
    FencedTable.create(older_commits_folder(path), RECORDS, numbers=numbers, mark=commit_text(nothing), indexed=5)
    older_table(view_folder(path, "a", 1), appended=8, checkpoint=2)
    older_table(view_folder(path, "b", 2), appended=3, checkpoint=0)
    older_table(segment_folder(path, "s/1"), appended=7, checkpoint=1)
    commits = older_commits(path)
    epoch = commits.take_lease("here:1")
    a = ViewEntry(name="a", generation=1, sql="…", birth=Tick(0), guarantee="complete", schema=(), segments=("s/1",))
    catalog = Catalog(views={"a": a, "b": replace(a, name="b", generation=2)})
    record = CommitRecord(frontiers={"a": Tick(0), "b": Tick(0)})
    commits.commit(CommitKind.CATALOG, Tick(0), record, epoch=epoch, catalog=catalog)
    for tick in range(1, 6):
        record = CommitRecord(frontiers={"a": Tick(tick), "b": Tick(min(tick, 3))})
        commits.commit(CommitKind.BATCH, Tick(tick), record, epoch=epoch)
    write_text(path, "format.json", '{"format": 3}')
    return path


def older_commits(path: str) -> Commits:
    return Commits(Journal.open(older_commits_folder(path)))


def written(path: str) -> dict[str, tuple[bytes, int]]:
    return {str(one): (one.read_bytes(), one.stat().st_mtime_ns) for one in Path(path).rglob("*") if one.is_file()}


def rows(table: KeptTable, tick: int) -> list[int]:
    return sorted(row[0] for row in rows_at(table, tick).elements())


def assert_readable(path: str) -> list[Commit]:
    """All that was committed can be read, and what was not is not shown; return the commits that are no leases."""
    warehouse = Warehouse.open(path)
    assert {name: warehouse.frontier(name) for name in FRONTIERS} == FRONTIERS
    for name, frontier in FRONTIERS.items():
        table, [shared] = warehouse.kept_table(name), warehouse.kept_segments(name).values()
        for tick in range(frontier + 1):
            assert rows(table, tick) == rows(shared, tick) == list(range(1, tick + 1))
    return [commit for commit in warehouse.commits.read() if commit.kind is not CommitKind.LEASE]


def test_readers_read_it_as_it_is_and_write_nothing(path: str) -> None:
    before = written(path)
    assert len(assert_readable(path)) == 6
    assert written(path) == before


def test_it_is_upgraded_once_and_announced(path: str) -> None:
    commits = assert_readable(path)
    heard: list[Event] = []
    for _ in range(2):
        upgrade.upgrade(path, heard.append)
    assert heard == [WarehouseUpgraded(warehouse=path, before=3, after=FORMAT)]
    assert assert_readable(path) == commits
    assert Warehouse.open(path).commits.table.path == journal_folder(path)
    folded = {
        folder: folded_upto(FencedTable.open(f"{path}/{folder}/changes"))
        for folder in ("views/a/1", "views/b/2", "segments/s/1")
    }
    assert folded == {"views/a/1": 5, "views/b/2": 3, "segments/s/1": 5}, "what was not committed is taken back"


def test_it_goes_on_in_the_journal(path: str) -> None:
    upgrade.upgrade(path, lambda _: None)
    warehouse = Warehouse.open(path)
    epoch = warehouse.commits.take_lease("here:2")
    warehouse.commits.journal.hold()
    table = warehouse.kept_table("a")
    change = table.change(ArrowBag(pa.table({"id": [6, 7], "_tick": [6, 7], "_count": [1, 1]})), Tick(7))
    assert change is not None
    assert change.after == 5
    record = CommitRecord(frontiers={"a": Tick(7), "b": Tick(3)})
    warehouse.commits.commit(CommitKind.BATCH, Tick(7), record, epoch=epoch, changes=[change])
    reader = Warehouse.open(path)
    assert rows(reader.kept_table("a"), 7) == list(range(1, 8))
    assert [commit.sequence for commit in reader.commits.read()] == list(range(1, reader.head().sequence + 1))
    assert older_commits(path).head().tick == 5, "whoever reads there sees no new commits"


def test_an_older_maintainer_that_is_still_at_work_changes_nothing_any_more(path: str) -> None:
    older = older_commits(path)
    epoch = older.head().epoch
    upgrade.upgrade(path, lambda _: None)
    with pytest.raises(LeaseLost):
        older.commit(CommitKind.BATCH, Tick(9), CommitRecord(), epoch=epoch)
    changes = FencedTable.open(f"{view_folder(path, 'a', 1)}/changes")
    assert (changes.number("headwater") or 0) > 1 << 50, "it appends only what it finds lacking by this number"


@pytest.mark.parametrize("point", POINTS)
def test_killed_anywhere_it_can_be_read_and_the_next_goes_on(path: str, point: str) -> None:
    def run(fail_point: str) -> tuple[int, str]:
        environment = {**os.environ, VARIABLE: fail_point, "PYTHONUNBUFFERED": "1"}
        program = [sys.executable, "-c", PROGRAM, path]
        ended = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
        return ended.returncode, ended.stdout

    commits = assert_readable(path)
    announced = f"{WarehouseUpgraded(warehouse=path, before=3, after=FORMAT)}\n"
    assert run(point) == (-signal.SIGKILL, announced)
    assert assert_readable(path) == commits
    assert run("") == (0, "" if point == "after journal upgrade" else announced)
    assert run("") == (0, "")
    assert assert_readable(path) == commits


def test_of_two_that_upgrade_one_carries_the_commits_over(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = assert_readable(path)
    merge_files = upgrade.merge_files

    def overtaken(*arguments: object) -> object:
        monkeypatch.setattr(upgrade, "merge_files", merge_files)
        upgrade.upgrade(path, lambda _: None)
        return merge_files(*arguments)  # type: ignore[arg-type]  # what it was called with

    monkeypatch.setattr(upgrade, "merge_files", overtaken)
    with pytest.raises(LeaseLost):
        upgrade.upgrade(path, lambda _: None)
    assert assert_readable(path) == commits
    upgrade.upgrade(path, lambda _: None)
    assert assert_readable(path) == commits


def test_one_that_comes_late_carries_nothing_over_again(path: str) -> None:
    commits = assert_readable(path)
    upgrade.upgrade(path, lambda _: None)
    upgrade._carry_over(path)  # it had looked before the other was done
    assert assert_readable(path) == commits
