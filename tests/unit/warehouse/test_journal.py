from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from journaled import rows_at

from headwater.deltas.on_arrow import ArrowBag
from headwater.errors import WarehouseRefused
from headwater.model.position import Tick
from headwater.storage.data_file import DataFile, write_rows
from headwater.storage.fenced_table import FencedTable
from headwater.storage.object_store import store_at
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.chores import DropRows, Policy, is_fold_due
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.folders import view_folder
from headwater.warehouse.housekeeping import Housekeeper
from headwater.warehouse.journal import FOLDED, TableChange, folded_upto
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("id", pa.int64())])
NAMES = ("v", "w")


def delta(*ids: int, tick: int) -> pa.Table:
    """Rows that come at a tick."""
    return pa.table({"id": list(ids), "_tick": [tick] * len(ids), "_count": [1] * len(ids)})


def ids(table: KeptTable, tick: int) -> list[int]:
    """A table's rows at a tick."""
    return sorted(row[0] for row in rows_at(table, tick).elements())


class World:
    """A warehouse of two views to which the tests commit what they like."""

    def __init__(self, path: str) -> None:
        self.warehouse = Warehouse.create(path)
        self.journal = self.warehouse.commits.journal
        self.epoch = self.warehouse.commits.take_lease("here:1")
        self.tables = {
            name: KeptTable.create(view_folder(path, name, 1), self.journal, SCHEMA, Tick(0)) for name in NAMES
        }
        for table in self.tables.values():
            table.checkpoint.write(SCHEMA.empty_table(), Tick(0))
        self.catalog(*NAMES)

    def catalog(self, *names: str, generation: int = 1) -> None:
        """Keep just these views."""
        views = {
            name: ViewEntry(name=name, generation=generation, sql="…", birth=Tick(0), guarantee="complete", schema=())
            for name in names
        }
        head = self.warehouse.head()
        record = CommitRecord(frontiers=dict.fromkeys(names, head.tick))
        self.warehouse.commits.commit(
            CommitKind.CATALOG, head.tick, record, epoch=self.epoch, catalog=Catalog(views=views)
        )

    def commit(self, tick: int, **rows: pa.Table) -> None:
        """Commit changes of some views; all come to the tick."""
        changes = [self.tables[name].change(ArrowBag(one), Tick(tick)) for name, one in rows.items()]
        self.commit_changes(tick, *(change for change in changes if change is not None))

    def commit_changes(self, tick: int, *changes: TableChange) -> None:
        record = CommitRecord(frontiers=dict.fromkeys(NAMES, Tick(tick)))
        self.warehouse.commits.commit(CommitKind.BATCH, Tick(tick), record, epoch=self.epoch, changes=changes)

    def refer(self, tick: int, name: str, *ids: int) -> DataFile:
        """Commit changes of a view by the file that holds them, and return it."""
        table = self.tables[name]
        rows = delta(*ids, tick=tick).select(["_tick", "_count", "id"])
        file = write_rows(table.changes.path, rows)
        after = table.committed_upto()
        self.commit_changes(tick, TableChange(table=table.name, after=after, upto=Tick(tick), files=(file,)))
        return file

    def keeper(self, policy: Policy | None = None) -> Housekeeper:
        """Return what keeps house beside, on handles of its own."""
        return Housekeeper(Warehouse.open(self.warehouse.path), policy or Policy(), started_at=NOW)

    def read(self, name: str, tick: int, journal: str = "own") -> list[int]:
        """Return a view's rows at a tick as somebody else reads them, or whoever commits."""
        table = self.tables[name] if journal == "own" else Warehouse.open(self.warehouse.path).kept_table(name)
        return ids(table, tick)

    def folded(self, name: str) -> int:
        return folded_upto(FencedTable.open(self.tables[name].changes.path))

    def payload(self) -> set[tuple[str, int]]:
        """What the journal still carries, as it is on disk."""
        journal = Warehouse.open(self.warehouse.path).commits.journal
        names = [f"views/{name}/{generation}" for name in NAMES for generation in (1, 2)]
        return {(one, change.upto) for one in names for change in journal.read(one, Tick(0))}


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(str(tmp_path / "warehouse"))
    made.journal.hold()
    return made


def test_a_commit_is_read_before_and_after_it_is_folded(world: World) -> None:
    world.commit(1, v=delta(1, tick=1), w=delta(10, 20, tick=1))
    world.commit(3, v=delta(3, tick=3))
    for _ in range(2):
        for reader in ("own", "another"):
            assert world.read("v", 3, reader) == [1, 3]
            assert world.read("v", 2, reader) == [1]
            assert world.read("w", 3, reader) == [10, 20]
            assert world.read("w", 0, reader) == []
        world.keeper().fold()
        assert (world.folded("v"), world.folded("w")) == (3, 1)
    assert FencedTable.open(world.tables["v"].changes.path).version == 1, "folding again changes nothing"


def test_a_commit_of_many_tables_is_one_data_file(world: World) -> None:
    before = len(world.journal.table.files())
    versions = [table.changes.version for table in world.tables.values()]
    world.commit(1, v=delta(1, tick=1), w=delta(2, tick=1))
    assert len(world.journal.table.files()) == before + 1
    assert [FencedTable.open(table.changes.path).version for table in world.tables.values()] == versions


def test_what_was_told_is_not_told_again(world: World) -> None:
    table = world.tables["v"]
    world.commit(2, v=delta(1, tick=1))
    assert table.committed_upto() == 2
    assert table.change(ArrowBag(delta(1, tick=1)), Tick(2)) is None
    later = table.change(ArrowBag(pa.concat_tables([delta(1, tick=1), delta(5, tick=5)])), Tick(6))
    assert later is not None
    assert (later.after, later.upto) == (2, 6)
    assert later.rows is not None
    assert later.rows["id"].to_pylist() == [5]
    both = later.followed_by(TableChange(table=table.name, after=Tick(6), upto=Tick(7), rows=later.rows))
    assert (both.after, both.upto) == (2, 7)
    with pytest.raises(AssertionError, match="committed once"):
        world.commit_changes(3, TableChange(table=table.name, after=Tick(1), upto=Tick(3), rows=later.rows))
    with pytest.raises(AssertionError, match="where a view stands"):
        world.commit_changes(5, later)


@pytest.mark.parametrize("moves_first", [True, False])
@pytest.mark.parametrize("reader", ["own", "another"])
def test_a_reader_between_journal_and_table_misses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, reader: str, *, moves_first: bool
) -> None:
    """What is folded, trimmed and let go right before or after the table is looked at is found, and once."""
    reload = FencedTable.reload
    moved: list[str] = []

    def move(table: FencedTable) -> None:
        if not table.path.endswith("v/1/changes") or moved:
            reload(table)
            return
        moved.append(table.path)
        if not moves_first:
            reload(table)
        keeper = world.keeper(Policy(journal_files=1))
        world.journal.let_go(keeper.fold())
        keeper._journal.trim(keeper._is_covered, 1)
        if moves_first:
            reload(table)

    for tick in range(1, 5):
        world.commit(tick, v=delta(tick, tick=tick))
    table = world.tables["v"] if reader == "own" else Warehouse.open(world.warehouse.path).kept_table("v")
    monkeypatch.setattr(FencedTable, "reload", move)
    found = ids(table, 3)
    assert moved
    assert world.payload() == set()
    assert found == [1, 2, 3]


def test_who_commits_never_reads_the_journal_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.commit(1, v=delta(1, tick=1))
    folded = world.keeper().fold()
    world.commit(2, v=delta(2, tick=2))

    def refuse(*_: object) -> None:
        raise AssertionError("the journal was read")

    monkeypatch.setattr(type(world.journal), "_rows", refuse)
    assert world.read("v", 2) == [1, 2]
    world.journal.let_go(folded)
    assert [change.upto for change in world.journal.read("views/v/1", Tick(0))] == [2]
    assert world.read("v", 2) == [1, 2]
    assert world.tables["v"].committed_upto() == 2


def test_rows_leave_the_journal_when_their_tables_have_them(world: World) -> None:
    keeper = world.keeper(Policy(journal_files=3))
    world.commit(1, v=delta(1, tick=1), w=delta(2, tick=1))
    keeper.fold()
    world.commit(2, v=delta(3, tick=2))
    assert world.payload() == {("views/v/1", 1), ("views/w/1", 1), ("views/v/1", 2)}
    files = len(world.journal.table.files())
    assert keeper._journal.trim(keeper._is_covered, files + 1) == 0, "it waits until there are so many"
    assert keeper._journal.trim(keeper._is_covered, files) == files
    assert world.payload() == {("views/v/1", 2)}
    assert [commit.sequence for commit in Warehouse.open(world.warehouse.path).commits.read()] == [1, 2, 3, 4]
    assert (world.read("v", 2, "another"), world.read("w", 2, "another")) == ([1, 3], [2])
    world.commit(3, v=delta(4, tick=3))
    assert world.read("v", 3, "another") == [1, 3, 4]


def test_a_large_file_is_trimmed_when_its_tables_have_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.warehouse.journal._SMALL_BYTES", 100)
    keeper = world.keeper()
    world.commit(1, v=delta(1, tick=1))
    assert keeper._journal.trim(keeper._is_covered, 1) == 0
    keeper.fold()
    assert keeper._journal.trim(keeper._is_covered, 1) == 1
    assert world.payload() == set()


def test_a_dropped_generation_blocks_nothing(world: World) -> None:
    world.commit(1, v=delta(1, tick=1), w=delta(2, tick=1))
    world.catalog("v")
    world.commit(2, v=delta(3, tick=2))
    store_at(world.tables["w"].folder).delete()
    keeper = world.keeper(Policy(journal_files=1))
    assert keeper.fold() == {"views/v/1": 2}
    assert keeper._journal.trim(keeper._is_covered, 1)
    assert world.payload() == set()
    assert world.read("v", 2, "another") == [1, 3]


def test_a_dropped_generation_that_is_still_there_is_folded_for_its_last_readers(world: World) -> None:
    world.commit(1, v=delta(1, tick=1), w=delta(2, tick=1))
    reader = Warehouse.open(world.warehouse.path).kept_table("w")
    world.catalog("v")
    keeper = world.keeper()
    keeper.fold()
    keeper._journal.trim(keeper._is_covered, 1)
    assert world.payload() == set()
    assert ids(reader, 1) == [2]


def test_a_table_of_the_catalog_that_is_missing_keeps_its_rows_in_the_journal(world: World) -> None:
    world.commit(1, v=delta(1, tick=1), w=delta(2, tick=1))
    moved = Path(world.tables["w"].folder).rename(f"{world.tables['w'].folder}-moved")
    keeper = world.keeper()
    with pytest.raises(WarehouseRefused, match="incomplete"):
        keeper.fold()
    assert world.folded("v") == 1, "it does not stop the others"
    assert keeper.folded == world.keeper().fold({"views/v/1"}) == {"views/v/1": 1}
    with pytest.raises(WarehouseRefused, match="incomplete"):
        keeper._journal.trim(keeper._is_covered, 1)
    assert ("views/w/1", 1) in world.payload()
    moved.rename(world.tables["w"].folder)
    world.keeper().fold()
    assert world.read("w", 1, "another") == [2]


def test_nothing_is_dropped_that_is_not_folded(world: World) -> None:
    for tick in range(1, 9):
        world.commit(tick, v=delta(tick, tick=tick))
    table = world.tables["v"]
    table.checkpoint.write(pa.table({"id": list(range(1, 9))}), Tick(8))
    keeper = world.keeper(Policy(keep_ticks=2))
    assert not [one for one in keeper.run(NOW, Tick(0)) if isinstance(one.chore, DropRows)]
    keeper.fold()
    dropped = [one.chore for one in keeper.run(NOW, Tick(0)) if isinstance(one.chore, DropRows)]
    assert dropped == [DropRows(path=table.changes.path, upto=Tick(6))]
    table.changes.reload()
    assert table.horizon() <= folded_upto(table.changes) <= world.warehouse.head().tick
    assert world.read("v", 7, "another") == list(range(1, 8))


def test_numbers_only_rise(world: World) -> None:
    world.commit(5, v=delta(1, tick=5))
    world.keeper().fold()
    changes = FencedTable.open(world.tables["v"].changes.path)
    assert folded_upto(changes) == 5
    with pytest.raises(AssertionError, match=r"numbers only rise: headwater\.folded"):
        changes.register([], numbers={FOLDED: 4})
    behind = world.keeper()
    world.commit(6, v=delta(2, tick=6))
    stale = behind._changes("views/v/1")
    world.keeper().fold()
    behind._journal.fold(lambda _: stale)
    assert (world.folded("v"), world.read("v", 6, "another")) == (6, [1, 2])


def test_files_are_committed_by_reference(world: World) -> None:
    world.commit(1, v=delta(1, tick=1))
    world.refer(2, "v", 2, 22)
    world.commit(3, v=delta(3, tick=3))
    for _ in range(2):
        for reader in ("own", "another"):
            assert world.read("v", 3, reader) == [1, 2, 3, 22]
            assert world.read("v", 1, reader) == [1]
        world.keeper().fold()
    changes = FencedTable.open(world.tables["v"].changes.path)
    assert len(changes.files()) == 2, "the file itself, and one of the rows that were carried"
    assert len(changes.files(after=1, upto=2)) >= 1
    assert folded_upto(changes) == 3


def test_references_are_folded_at_once(world: World) -> None:
    keeper = world.keeper()
    world.commit(1, v=delta(1, tick=1))
    assert not list(keeper.run(NOW, Tick(0)))
    world.refer(2, "v", 2)
    assert [type(one.chore).__name__ for one in keeper.run(NOW, Tick(0))] == ["Fold"]
    assert not list(keeper.run(NOW, Tick(0)))
    assert world.folded("v") == 2


def test_no_stray_is_deleted_while_the_journal_names_files_of_the_table(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.refer(1, "v", 1)
    named = Path(world.tables["v"].changes.path, file.path)
    stray = Path(write_rows(world.tables["v"].changes.path, delta(9, tick=9)).path)
    stray = Path(world.tables["v"].changes.path, stray)
    policy = Policy(vacuum_every=timedelta(), stray_hours=0, grace_hours=0)
    keeper = world.keeper(policy)
    with monkeypatch.context() as late:
        late.setattr(Housekeeper, "_is_fold_due", lambda *_: False)
        list(keeper.run(NOW, Tick(0)))
        assert named.exists()
        assert stray.exists()
    list(keeper.run(NOW, Tick(0)))
    assert named.exists()
    assert not stray.exists()
    assert world.read("v", 1, "another") == [1]


def test_what_a_killed_one_committed_is_folded_before_another_goes_on(world: World) -> None:
    world.commit(1, v=delta(1, tick=1))
    world.refer(2, "v", 2)
    second = Warehouse.open(world.warehouse.path)
    epoch = second.commits.take_lease("there:2")
    Housekeeper(second, Policy(), started_at=NOW).fold()
    second.commits.journal.hold()
    table = second.kept_table("v")
    assert table.committed_upto() == 2
    change = table.change(ArrowBag(delta(2, tick=2)), Tick(2)) or table.change(ArrowBag(delta(3, tick=3)), Tick(3))
    assert change is not None
    assert (change.after, change.upto) == (2, 3)
    record = CommitRecord(frontiers=dict.fromkeys(NAMES, Tick(3)))
    second.commits.commit(CommitKind.BATCH, Tick(3), record, epoch=epoch, changes=[change])
    assert world.read("v", 3, "another") == [1, 2, 3]
    world.keeper().fold()
    assert world.read("v", 3, "another") == [1, 2, 3]
    assert world.read("v", 2) == [1, 2], "one that was overtaken still reads what it has seen"


@pytest.mark.parametrize(
    ("commits", "seconds", "refers", "due"),
    [(0, 99, False, False), (1, 29, False, False), (1, 30, False, True), (100, 0, False, True), (1, 0, True, True)],
)
def test_when_it_is_folded(commits: int, seconds: int, *, refers: bool, due: bool) -> None:
    since = timedelta(seconds=seconds)
    assert is_fold_due(Policy(), commits=commits, since=since, refers=refers) == due
