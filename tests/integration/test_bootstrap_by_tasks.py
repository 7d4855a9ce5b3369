"""Tasks of Spark read the chunks of relations, all in one snapshot; what they cannot do, the maintainer does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from audited import NAMES, VIEWS, AuditedWorld, assert_exact, audited_world
from pyspark.sql import SparkSession
from running import running
from spark_clusters import connect_server, environment, options
from writers import busy_writers

from headwater.observe.events import BatchCommitted, SourceConnected, SourceWarning, ViewBorn
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.postgres.snapshot import PostgresSnapshot
from headwater.sources.source import Chunk

KEPT = {name: VIEWS[name] for name in ("probing", "replicated", "mixed", "twins", "lately")}
CHUNKS = "[settings.bootstrap]\nchunk_rows = 8\nreaders = 3\n"


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        for source, names in NAMES.items():
            made.execute(source, "; ".join(f"ANALYZE {name}" for name in names))
        yield made


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> list[Chunk]:
    """Return the chunks that this process reads itself."""
    chunks: list[Chunk] = []
    read = PostgresSnapshot.read

    def noted(snapshot: PostgresSnapshot, *asked: Any) -> Iterator[pa.Table]:
        chunks.append(asked[2])
        return read(snapshot, *asked)

    monkeypatch.setattr(PostgresSnapshot, "read", noted)
    return chunks


@pytest.mark.parametrize("small_rows", [20_000, 1], ids=["log read here", "log read by Spark"])
def test_views_are_born_exact_from_what_tasks_read(
    world: AuditedWorld, spark: SparkSession, read_here: list[Chunk], small_rows: int
) -> None:
    world.write_project(KEPT, settings=f"{CHUNKS}small_rows = {small_rows}\n")
    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=0.05, seed=3)
    writers.start()
    with running(world, spark) as maintainer:
        maintainer.wait_until(lambda: len(maintainer.heard(SourceConnected)) == len(NAMES))
        world.note_before()  # from now on every transaction must have a tick
        maintainer.wait_until(lambda: len(maintainer.heard(ViewBorn)) == len(KEPT))
        maintainer.wait_until(lambda: maintainer.heard(BatchCommitted))
    writers.finish(stop=True)
    world.open().run(until_idle=True)
    assert not maintainer.heard(SourceWarning)
    assert not read_here, "tasks have read it all"
    assert assert_exact(world, spark).tick_count > 0


def test_what_keeps_tasks_out_does_not_keep_views_from_being_born(
    world: AuditedWorld, spark: SparkSession, read_here: list[Chunk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody answers them, and their own environment does not lead to these databases."""

    @contextmanager
    def unanswered(_: Callable[[], str]) -> Iterator[str]:
        yield ""

    monkeypatch.setattr("headwater.engine.bootstrap.task_reading.answered_logins", unanswered)
    world.write_project(KEPT, settings=CHUNKS)
    world.note_before()
    with running(world, spark) as maintainer:
        maintainer.wait_until(lambda: len(maintainer.heard(ViewBorn)) == len(KEPT))
    warned = {event.source: event.sentence for event in maintainer.heard(SourceWarning)}  # type: ignore[attr-defined]
    assert set(warned) == set(NAMES)
    assert len(maintainer.heard(SourceWarning)) == len(NAMES), "each is warned of once"
    assert all("so this process does: " in sentence for sentence in warned.values())
    assert {chunk.column for chunk in read_here} == {"id", "no"}
    assert_exact(world, spark)


SLOW_TABLE = """
CREATE TABLE t (id int PRIMARY KEY, x bigint);
INSERT INTO t SELECT g, g * 7 % 11 FROM generate_series(1, 90) g;
ANALYZE t;
CREATE FUNCTION slowly() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.5); END $$;
CREATE EVENT TRIGGER slowly ON login EXECUTE FUNCTION slowly()
"""

CHILD = """
import json, os, signal, sys
from pathlib import Path

import headwater
from headwater.observe.events import BootstrapProgress, SourceWarning
from headwater.sources.postgres.snapshot import PostgresSnapshot

def refuse(*_):
    raise AssertionError("tasks read")

PostgresSnapshot.read = refuse

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def is_ours(pid):
    while pid > 1 and pid != os.getpid():
        pid = parent(pid)
    return pid == os.getpid()

def executors():
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().split(b"\\0")
            kind = [part for part in command if part.endswith(b".CoarseGrainedExecutorBackend")]
            if kind and command[0].endswith(b"java") and is_ours(int(entry.name)):
                found.append(int(entry.name))
        except OSError:
            pass
    return found

killed, warned, read = [], [], []

def listen(event):
    if isinstance(event, SourceWarning):
        warned.append(event.sentence)
    if isinstance(event, BootstrapProgress):
        read.append(event.rows_read)
        if sys.argv[2] == "kill" and not killed:
            killed.append(min(executors()))
            os.kill(killed[0], signal.SIGKILL)

with headwater.open(sys.argv[1], listener=listen) as project:
    project.run(until_idle=True)
    rows = project.query("SELECT count(*) AS n, sum(id * x) AS total FROM kept").table.to_pylist()
print(json.dumps({"killed": len(killed), "warned": warned, "read": read, "rows": rows}))
"""


@dataclass(frozen=True, kw_only=True)
class SlowTable:
    """A table whose chunks are read slowly, in a database of its own, and a project that copies it."""

    server: EmbeddedServer
    database: str
    folder: Path

    def read_elsewhere(self, said: Mapping[str, str], how: str = "") -> dict[str, Any]:
        """Let a process of its own read the table by tasks of the Spark that its environment names."""
        child = subprocess.run(
            [sys.executable, "-c", CHILD, str(self.folder), how],
            env=environment({"SHOP_URL": self.server.url(self.database), **said}),
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert child.returncode == 0, child.stderr
        found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
        [(count, total)] = self.server.execute("SELECT count(*), sum(id * x) FROM t", database=self.database)
        assert found["rows"] == [{"n": count, "total": total}]
        assert len(found["read"]) > 5
        return found


@pytest.fixture
def slow_table(
    postgres_server: EmbeddedServer, postgres_database: Callable[[], str], tmp_path: Path
) -> Iterator[SlowTable]:
    database, folder = postgres_database(), tmp_path / "project"
    postgres_server.execute(SLOW_TABLE, database=database)
    (folder / "views").mkdir(parents=True)
    (folder / "headwater.toml").write_text(
        f'[project]\nname = "{database}"\n[sources.shop]\nurl = "${{SHOP_URL}}"\n'
        "[settings.bootstrap]\nchunk_rows = 10\n"
    )
    (folder / "views" / "kept.sql").write_text("SELECT id, x FROM shop.t")
    yield SlowTable(server=postgres_server, database=database, folder=folder)
    postgres_server.execute("DROP EVENT TRIGGER slowly", database=database)


def test_the_task_of_an_executor_that_dies_is_done_by_another(slow_table: SlowTable) -> None:
    said = {"SPARK_MASTER": "local-cluster[2,1,1024]", "PYSPARK_SUBMIT_ARGS": options()}
    found = slow_table.read_elsewhere(said, "kill")
    assert found["killed"] == 1
    assert found["warned"] == [], "Spark has tried the task again"


def test_tasks_of_a_server_of_spark_connect_read(
    slow_table: SlowTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)  # the server's own tasks find what is installed here
    with connect_server(tmp_path) as remote:
        assert slow_table.read_elsewhere({"SPARK_REMOTE": remote})["warned"] == []
