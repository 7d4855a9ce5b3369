"""What cannot be written makes a run fail and say why; readers keep the last commit, and nothing is lost or twice."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from headwater.api.session import Headwater, open_project
from headwater.changelog import change_log
from headwater.errors import HeadwaterError
from headwater.sources.embedded import EmbeddedServer
from headwater.storage import data_file, fenced_table
from headwater.storage.data_file import DataFile
from headwater.warehouse import journal

ROWS = 20_000
FULL = OSError(errno.ENOSPC, "No space left on device")
DENIED = DeltaError("Generic LocalFileSystem error: Permission denied (os error 13)")


class World:
    """A table, a view that is a copy of it, and a warehouse in a folder of the test's choice."""

    def __init__(self, server: EmbeddedServer, database: str, folder: Path, warehouse: Path) -> None:
        self._server, self._database, self.folder = server, database, folder
        self.execute("CREATE TABLE t (id int PRIMARY KEY, a text); INSERT INTO t SELECT g, md5(g::text) FROM "
                     "generate_series(1, 10) g")  # fmt: skip
        (folder / "views").mkdir(parents=True)
        (folder / "views/v.sql").write_text("SELECT id, a FROM shop.t")
        (folder / "headwater.toml").write_text(
            f'[project]\nname = "{database}"\n[warehouse]\npath = "{warehouse}"\n[sources.shop]\nurl = "${{HW_FULL}}"\n'
        )
        os.environ["HW_FULL"] = server.url(database)

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        return self._server.execute(sql, database=self._database)

    def insert_many(self) -> None:
        self.execute(f"INSERT INTO t SELECT g, md5(g::text) FROM generate_series(11, {10 + ROWS}) g")

    def open(self) -> Headwater:
        return open_project(self.folder)

    def failed_run(self) -> HeadwaterError:
        with pytest.raises(HeadwaterError) as failed:
            self.open().run(until_idle=True)
        return failed.value

    def rows(self) -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for row in self.open().query("SELECT id, a FROM v").table.to_pylist())

    def truth(self) -> list[tuple[object, ...]]:
        return sorted(self.execute("SELECT id, a FROM t"))


@pytest.fixture
def make_world(
    postgres_server: EmbeddedServer,
    postgres_database: Callable[[], str],
    tmp_path: Path,
    spark: SparkSession,  # noqa: ARG001 - what a run needs, made as tests want it
) -> Iterator[Callable[[Path], World]]:
    yield lambda warehouse: World(postgres_server, postgres_database(), tmp_path / "project", warehouse)
    open_project(tmp_path / "project").teardown()


def test_a_run_fails_at_every_place_that_cannot_be_written_and_the_next_goes_on(
    make_world: Callable[[Path], World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(tmp_path / "warehouse")
    world.open().run(until_idle=True)
    before = world.truth()
    world.insert_many()
    for place, error, code in (
        ("changelog", FULL, "HW-434"),
        ("changelog", DENIED, "HW-435"),
        ("changelog", OSError(errno.EIO, "Input/output error"), "HW-436"),
        ("journal", FULL, "HW-434"),
    ):
        written: list[str] = []

        def fail(
            write: Callable[..., DataFile],
            root: str,
            *rows: Any,
            place: str = place,
            error: Exception = error,
            written: list[str] = written,
            **options: Any,
        ) -> DataFile:
            is_lease = place == "journal" and not any("/changelog" in one for one in written)
            if f"/{place}" in root and not is_lease:
                raise error
            written.append(root)
            return write(root, *rows, **options)

        with monkeypatch.context() as failing:
            for module in (fenced_table, journal):
                failing.setattr(module, "write_rows", partial(fail, data_file.write_rows))
            failing.setattr(change_log, "write_parts", partial(fail, data_file.write_parts))
            failed = world.failed_run()
        assert (place, failed.code) == (place, code)
        assert any("/changelog" in one for one in written) == (place == "journal")
        assert re.search("run it again|the next `headwater run` goes on", failed.hint)
        assert str(tmp_path / "warehouse") in str(failed), "it is said where to look"
        assert world.rows() == before, "readers keep the last commit"
    world.open().run(until_idle=True)
    assert world.rows() == world.truth()
    assert len(world.rows()) == 10 + ROWS


def test_a_table_that_cannot_be_written_holds_no_commit_up(
    make_world: Callable[[Path], World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(tmp_path / "warehouse")
    world.open().run(until_idle=True)
    world.insert_many()
    write_rows = journal.write_rows

    def fail(root: str, rows: pa.Table, **options: Any) -> DataFile:
        if "/views" in root:
            raise FULL
        return write_rows(root, rows, **options)

    with monkeypatch.context() as failing:
        failing.setattr(journal, "write_rows", fail)
        world.open().run(until_idle=True)
        assert world.rows() == world.truth(), "it is in the journal"
        failed = world.failed_run()
    assert failed.code == "HW-434", "who begins folds what is left there"
    world.open().run(until_idle=True)
    assert world.rows() == world.truth()


def test_a_file_system_that_is_really_full(make_world: Callable[[Path], World], tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", small], check=False).returncode:
        pytest.skip("only root may mount")
    try:
        world = make_world(small / "warehouse")
        world.open().run(until_idle=True)
        before = world.truth()
        world.insert_many()
        assert world.failed_run().code == "HW-434"
        assert world.rows() == before
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        world.open().run(until_idle=True)
        assert world.rows() == world.truth()
    finally:
        subprocess.run(["umount", small], check=True)
