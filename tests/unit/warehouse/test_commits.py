from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headwater.deltas.extent import EVERYTHING
from headwater.errors import LeaseLost, WarehouseRefused
from headwater.model.position import Position, Tick
from headwater.observe.events import ProbeCount
from headwater.warehouse.catalog import Catalog, ViewEntry, parse_catalog
from headwater.warehouse.commit_record import BatchStatistics, CommitKind, CommitRecord, Stopped, ViewDelta
from headwater.warehouse.commits import Commits
from headwater.warehouse.format import check_format, write_format
from headwater.warehouse.lease import ALIVE_FOR, Lease, read_lease, refuse_if_held, release_lease, renew_lease

VIEW = ViewEntry(
    name="v", generation=1, sql="SELECT 1 AS a", birth=Tick(0), guarantee="complete", schema=(("a", "int"),)
)

ASKED = ProbeCount(probe_count=1, key_count=2, row_count=3, byte_count=4, corrected_row_count=5)


def record(tick: int) -> CommitRecord:
    return CommitRecord(
        frontiers={"v": Tick(tick)},
        stopped={"w": Stopped(code="HW-1", summary="no", hint="do")},
        positions={"shop": Position(source="shop", history="1:1", offset=tick)},
        statistics=BatchStatistics(
            lo=Tick(tick - 1),
            hi=Tick(tick),
            seconds={"spark": 0.5},
            rows={"v": ViewDelta(rows_added=1, rows_removed=0, asked={"shop": ASKED}, seconds=0.25)},
        ),
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "commits")


def test_what_was_committed_is_read_back(path: str) -> None:
    commits = Commits.create(path)
    assert (commits.head().sequence, commits.catalog(commits.head())) == (0, Catalog())
    epoch = commits.take_lease("here:1")
    born = commits.commit(CommitKind.CATALOG, Tick(0), record(0), epoch=epoch, catalog=Catalog(views={"v": VIEW}))
    made = [commits.commit(CommitKind.BATCH, Tick(tick), record(tick), epoch=epoch) for tick in range(1, 30)]
    reader = Commits.open(path)
    assert reader.head() == made[-1]
    assert reader.catalog(reader.head()).views == {"v": VIEW}
    assert reader.read(after=1) == [born, *made]
    assert reader.at(made[4].committed_at) == made[4]
    assert reader.at(datetime(2000, 1, 1, tzinfo=UTC)) is None


def test_only_the_holder_of_the_lease_can_commit(path: str) -> None:
    old = Commits.create(path)
    first = old.take_lease("here:1")
    old.commit(CommitKind.BATCH, Tick(1), record(1), epoch=first)
    new = Commits.open(path)
    second = new.take_lease("there:2")
    assert second == first + 1
    with pytest.raises(LeaseLost):
        old.commit(CommitKind.BATCH, Tick(2), record(2), epoch=first)
    with pytest.raises(LeaseLost):
        old.commit(CommitKind.BATCH, Tick(2), record(2), epoch=first)
    new.commit(CommitKind.BATCH, Tick(2), record(2), epoch=second)
    assert [commit.epoch for commit in Commits.open(path).read()] == [1, 1, 2, 2]
    assert old.head() == new.head()


def test_reading_the_newest_commits_does_not_make_an_old_maintainer_commit_after_them(path: str) -> None:
    old = Commits.create(path)
    first = old.take_lease("here:1")
    Commits.open(path).take_lease("there:2")
    assert len(old.read()) == 2
    with pytest.raises(LeaseLost):
        old.commit(CommitKind.BATCH, Tick(1), record(1), epoch=first)
    assert [commit.epoch for commit in Commits.open(path).read()] == [1, 2]


def test_a_trim_between_does_not_disturb_a_commit(path: str) -> None:
    commits = Commits.create(path)
    epoch = commits.take_lease("here:1")
    for tick in range(1, 6):
        commits.commit(CommitKind.BATCH, Tick(tick), record(tick), epoch=epoch)
    assert Commits.open(path).journal.trim(lambda *_: True, 2) == 6
    assert Commits.open(path).head().tick == 5
    commits.commit(CommitKind.BATCH, Tick(6), record(6), epoch=epoch)
    assert [commit.sequence for commit in Commits.open(path).read()] == [1, 2, 3, 4, 5, 6, 7]


def test_the_courtesy_lease(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert read_lease(folder) is None
    refuse_if_held(folder)
    renew_lease(folder, 3)
    refuse_if_held(folder)
    lease = read_lease(folder)
    assert lease is not None
    now = datetime.now(UTC)
    assert lease.alive(now)
    assert not Lease(holder="x", epoch=1, renewed_at=now - ALIVE_FOR - timedelta(seconds=1)).alive(now)
    (tmp_path / "lease.json").write_text((tmp_path / "lease.json").read_text().replace(lease.holder, "else:1"))
    with pytest.raises(WarehouseRefused):
        refuse_if_held(folder)
    before = datetime.now(UTC)
    release_lease(folder, 3)
    refuse_if_held(folder)
    released = read_lease(folder)
    assert released is not None
    assert before <= released.renewed_at <= datetime.now(UTC), "it was seen when it said so"
    assert not released.alive(released.renewed_at)


def test_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WarehouseRefused):
        check_format(str(tmp_path))
    write_format(str(tmp_path))
    check_format(str(tmp_path))
    (tmp_path / "format.json").write_text('{"format": 1}')
    with pytest.raises(WarehouseRefused):
        check_format(str(tmp_path))


def test_a_replica_of_which_no_rows_are_said_holds_all() -> None:
    older = '{"views": [], "replicas": [{"relation": {"source": "s", "schema": "public", "name": "t"}, "generation": 1,'
    [replica] = parse_catalog(older + ' "columns": ["id"], "key": ["id"]}]}').replicas.values()
    assert replica.rows == EVERYTHING
