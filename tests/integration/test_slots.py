"""A slot belongs to one warehouse, and a warehouse that the source's log has moved past accepts nothing and says so."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headwater.api.session import Headwater, open_project
from headwater.changelog.mark import LogMark
from headwater.engine.service.maintainer import Maintainer
from headwater.engine.service.start import start_maintainer
from headwater.errors import SourceLost
from headwater.observe.events import Event, SourceConnected, SourceGone, SourceWarning, TransactionsAccepted
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

_PATIENCE_SECONDS = 120.0


class Twin:
    """A database with a table, and folders of one project that read it."""

    def __init__(self, server: EmbeddedServer, database: str, folder: Path) -> None:
        self.server = server
        self.database = database
        self.folder = folder

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        return self.server.execute(sql, database=self.database)

    def write(self, name: str, settings: str = "") -> Path:
        """Write the project into a folder, and return that."""
        folder = self.folder / name
        (folder / "views").mkdir(parents=True)
        text = '[project]\nname = "twin"\n[sources.staff]\nurl = "${TWIN_URL}"\n'
        (folder / "headwater.toml").write_text(text + settings)
        (folder / "views" / "people.sql").write_text("SELECT id, name FROM staff.people")
        return folder

    def copy(self, folder: Path, name: str) -> Path:
        return Path(shutil.copytree(folder, self.folder / name))

    def insert(self, *numbers: int) -> None:
        self.execute(f"INSERT INTO people VALUES {', '.join(f'({number}, $${number}$$)' for number in numbers)}")

    def slots(self) -> list[str]:
        rows = self.execute(
            "SELECT slot_name FROM pg_replication_slots WHERE database = current_database() ORDER BY slot_name"
        )
        return [name for (name,) in rows]

    def confirmed(self, slot: str) -> int:
        [(offset,)] = self.execute(
            f"SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = '{slot}'"
        )
        return int(offset)

    def wait_until_free(self) -> None:
        """Wait until the server has noticed that nobody follows a slot of this database any more."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self.execute("SELECT slot_name FROM pg_replication_slots WHERE database = current_database() AND active"):
            assert time.monotonic() < deadline, "a slot is still in use"
            time.sleep(0.02)


@pytest.fixture
def twin(postgres_server: EmbeddedServer, postgres_database: Callable[[], str], tmp_path: Path) -> Iterator[Twin]:
    made = Twin(postgres_server, postgres_database(), tmp_path)
    made.execute("CREATE TABLE people (id int PRIMARY KEY, name text); CREATE TABLE other (id int, text text)")
    made.insert(1, 2, 3)
    os.environ["TWIN_URL"] = postgres_server.url(made.database)
    yield made
    made.wait_until_free()
    made.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )


def run(folder: Path) -> list[Event]:
    heard: list[Event] = []
    open_project(folder, listener=heard.append).run(until_idle=True)
    return heard


@contextmanager
def maintaining(folder: Path) -> Iterator[tuple[Maintainer, list[Event]]]:
    """Run a maintainer beside a block."""
    heard: list[Event] = []
    project = open_project(folder)
    maintainer = start_maintainer(project.spark, resolve_project(project.project, project.spark), heard.append)
    thread = threading.Thread(target=lambda: maintainer.run(until_idle=False, ticks=None), daemon=True)
    thread.start()
    try:
        yield maintainer, heard
    finally:
        maintainer.stop()
        thread.join(_PATIENCE_SECONDS)


def ids(folder: Path) -> set[int]:
    return set(open_project(folder).view("people").arrow()["id"].to_pylist())


def log(folder: Path) -> Any:
    return Warehouse.open(str(open_project(folder).project.warehouse)).log


def slot_of(folder: Path) -> str:
    return str(log(folder).slots()["staff"].name)


def remedy(folder: Path) -> Headwater:
    """Do what the error offers."""
    project = open_project(folder)
    project.teardown(sources=("staff",))
    project.run(until_idle=True)
    return project


@pytest.mark.usefixtures("spark")
def test_two_folders_of_one_project_lose_nothing(twin: Twin) -> None:
    original, second = twin.write("original"), twin.write("second")
    run(original)
    twin.insert(107)
    warned = [event.sentence for event in run(second) if isinstance(event, SourceWarning)]
    assert [slot_of(original) in sentence for sentence in warned] == [True]
    twin.insert(108)
    run(original)
    run(second)
    twin.insert(109)
    run(original)
    run(second)
    assert ids(original) == ids(second) == {1, 2, 3, 107, 108, 109}
    assert sorted([slot_of(original), slot_of(second)]) == twin.slots()
    assert [one.slot for one in open_project(second).status().sources] == [slot_of(second)]

    slot_of_second = slot_of(second)
    result = open_project(second).teardown()
    assert [one.what for one in result.dropped] == [f"replication slot {slot_of_second}"]
    assert [one.slot for one in result.left] == [slot_of(original)]
    twin.insert(110)
    run(original)
    assert ids(original) == {1, 2, 3, 107, 108, 109, 110}, "the publication that both need is still there"
    assert [one.what.split()[0] for one in open_project(original).teardown().dropped] == ["replication", "publication"]
    assert twin.slots() == []


@pytest.mark.usefixtures("spark")
def test_a_copied_folder_and_an_older_copy_put_back_are_refused(twin: Twin) -> None:
    original = twin.write("original")
    run(original)
    backup = twin.copy(original, "backup")
    copy = twin.copy(original, "copy")
    twin.insert(107)
    run(copy)
    twin.insert(108)
    for verb in (lambda: run(original), open_project(original).plan):
        with pytest.raises(SourceLost, match="already forgotten changes") as refused:
            verb()
        assert refused.value.code == "HW-314"
        assert "headwater teardown --source staff" in refused.value.hint
        assert "copy" in refused.value.detail
    assert ids(original) == {1, 2, 3}, "nothing was accepted"
    remedy(original)
    twin.insert(109)
    run(original)
    run(copy)
    assert ids(original) == ids(copy) == {1, 2, 3, 107, 108, 109}, "the copy did not notice"
    assert len(twin.slots()) == 2

    shutil.rmtree(original / "warehouse")
    shutil.copytree(backup / "warehouse", original / "warehouse")
    with pytest.raises(SourceLost, match="already forgotten changes"):
        run(original)
    remedy(original)
    assert ids(original) == {1, 2, 3, 107, 108, 109}


@pytest.mark.usefixtures("spark")
def test_what_an_idle_source_may_forget_is_noted_first(twin: Twin) -> None:
    folder = twin.write("idle", '[settings.capture]\nnote_interval = "1 day"\n')
    run(folder)
    slot, noted = slot_of(folder), log(folder).positions()["staff"]
    with maintaining(folder):
        for _ in range(6):
            twin.execute("INSERT INTO other SELECT n, repeat('x', 1000) FROM generate_series(1, 6000) n")
        [(end,)] = twin.execute("SELECT pg_current_wal_flush_lsn() - '0/0'")
        until(lambda: twin.confirmed(slot) > noted.offset + (16 << 20))
        version = settled(lambda: log(folder)._table.version)
        twin.execute("INSERT INTO other VALUES (1, 'little')")
        time.sleep(0.5)
        assert log(folder)._table.version == version, "little is not worth a commit"
        assert twin.confirmed(slot) <= log(folder).positions()["staff"].offset
        twin.insert(107)
        until(lambda: log(folder).last_tick)
        assert log(folder).positions()["staff"].offset >= end, "with a transaction it costs nothing"
    twin.execute("INSERT INTO other SELECT n, repeat('x', 1000) FROM generate_series(1, 6000) n")
    run(folder)
    twin.insert(108)
    run(folder)
    assert ids(folder) == {1, 2, 3, 107, 108}


@pytest.mark.usefixtures("spark")
def test_a_slot_that_moved_while_we_were_disconnected(twin: Twin) -> None:
    folder = twin.write("moved")
    run(folder)
    with maintaining(folder) as (maintainer, heard):
        until(lambda: any(isinstance(event, SourceConnected) for event in heard))
        source = maintainer.acceptor.threads()["staff"].source
        follow = source.follow

        def follow_later(*arguments: Any) -> Any:
            twin.insert(107)
            twin.execute(f"SELECT pg_replication_slot_advance('{slot_of(folder)}', pg_current_wal_flush_lsn())")
            return follow(*arguments)

        source.follow = follow_later  # type: ignore[method-assign]
        twin.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
        until(lambda: any(isinstance(event, SourceGone | TransactionsAccepted) for event in heard))
    [gone] = [event for event in heard if isinstance(event, SourceGone)]
    assert gone.error.code == "HW-314"
    assert ids(folder) == {1, 2, 3}
    remedy(folder)
    assert ids(folder) == {1, 2, 3, 107}


@pytest.mark.usefixtures("spark")
def test_a_warehouse_from_before_slots_were_recorded_is_adopted_once(twin: Twin) -> None:
    folder = twin.write("old")
    run(folder)
    make_old(twin, folder)
    twin.execute("INSERT INTO other VALUES (1, 'x')")
    twin.execute("SELECT pg_replication_slot_advance('headwater_twin_staff', pg_current_wal_flush_lsn())")
    twin.insert(107)
    [planned] = open_project(folder).plan().warnings
    assert "cannot be proved" in planned
    warned = [event.sentence for event in run(folder) if isinstance(event, SourceWarning)]
    assert ["cannot be proved" in sentence for sentence in warned] == [True]
    assert ids(folder) == {1, 2, 3, 107}
    assert slot_of(folder) == "headwater_twin_staff"
    assert [event for event in run(folder) if isinstance(event, SourceWarning)] == []
    copy = twin.copy(folder, "copy")
    twin.insert(108)
    run(copy)
    with pytest.raises(SourceLost, match="already forgotten changes"):
        run(folder)
    remedy(folder)
    twin.insert(109)
    run(folder)
    run(copy)
    assert ids(folder) == ids(copy) == {1, 2, 3, 107, 108, 109}
    assert slot_of(folder) != slot_of(copy) == "headwater_twin_staff", "what was given up is not adopted again"


def make_old(twin: Twin, folder: Path) -> None:
    """Make a warehouse what it was when all of a project shared one slot and nothing of it was recorded."""
    [slot] = twin.slots()
    twin.wait_until_free()
    twin.execute(f"SELECT pg_drop_replication_slot('{slot}')")
    twin.execute("SELECT pg_create_logical_replication_slot('headwater_twin_staff', 'pgoutput')")
    opened = log(folder)
    mark = opened._mark
    opened._say(LogMark(tick=mark.tick, epoch=mark.epoch, positions={}))


@pytest.mark.usefixtures("spark")
def test_killed_while_a_lost_source_is_read_again(twin: Twin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slot was dropped and made again, and the views were not yet built anew: they must not go on over the gap."""
    folder = twin.write("killed")
    run(folder)
    twin.wait_until_free()
    twin.execute(f"SELECT pg_drop_replication_slot('{slot_of(folder)}')")
    twin.insert(107)

    def die(name: str) -> None:
        if name == "slot made":
            raise AssertionError(name)

    with monkeypatch.context() as dying:
        dying.setattr("headwater.project.slot_claims.reach", die)
        with pytest.raises(AssertionError, match="slot made"):
            run(folder)
    twin.insert(108)
    run(folder)
    assert ids(folder) == {1, 2, 3, 107, 108}


def settled(read: Callable[[], int]) -> int:
    """Return a number once it no longer changes."""
    before, now = -1, read()
    while before != now:
        time.sleep(1.0)
        before, now = now, read()
    return now


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
