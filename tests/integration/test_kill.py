"""Nothing is lost, nothing happens twice: `kill -9` of the maintainer anywhere, and of a server, while writers write.

Five series over one kind of world, each judged at every tick:
- every named fail point: the maintainer dies there, and the next one recovers and goes on to the next fail point;
- the same in batches whose rows are written by Spark's tasks, between writing, commit and folding;
- a bootstrap dies after each of its first chunks, and goes on from them;
- random moments (fifty with `make thorough`), most of them while a batch is under way, some while it starts;
- a PostgreSQL server dies, three times, below a maintainer that lives on.

The maintainers are forked (see `maintainer_child`), so that fifty of them fit into minutes; Spark's JVM outlives them.
Chores of housekeeping have fail points of their own, which `tests/unit/warehouse/test_killed.py` goes through.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import NAMES, VIEWS, AuditedWorld, Judgement, assert_exact, audited_world
from pyspark.sql import SparkSession
from volume import volume
from writers import Writers, busy_writers

from headwater.engine.service.start import start_maintainer
from headwater.observe.events import Event, SourceConnected, SourceDisconnected
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.commits import REFERRED
from headwater.warehouse.query import Warehouse

KILLS = volume(15, 50)
KEPT = {name: VIEWS[name] for name in ("probing", "replicated", "mixed", "twins", "lately")}
FEW = {name: VIEWS[name] for name in ("probing", "mixed", "lately")}
SETTINGS = "[maintenance]\nbatch_ticks = 60\n"
SOURCE_FILES = Path(__file__).resolve().parents[2] / "src" / "headwater"
AT_UPGRADE = tuple(f"{when} {step} upgrade" for step in ("format", "table", "journal") for when in ("before", "after"))
"""Killed there in `test_older_warehouses`: here no warehouse is old."""
AT_START = ("before log mark", "after log mark", "slot made")
AT_BIRTH = ("chunk staged", "replicas written", "before checkpoint write", "after checkpoint write")
AT_BIRTH_COMMIT = ("before catalog commit",)
IN_BATCHES = (
    "before log append",
    "after log append",
    "before batch commit",
    "before commit",
    "after commit",
    "before changes append",  # what the ones before have committed and not folded is folded at the start
    "after changes append",
)
IN_LARGE_BATCHES = ("rows written",)
"""Batches that are held do not pass there. Executors are killed in `test_spark_elsewhere`."""
AT_PUBLISH = ("before publish", "after publish")
"""Where the plain tables of views are written: `test_plain_table` kills there."""
IN_CHORES = ("before journal trim", "after journal trim")


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.write_project(KEPT, settings=SETTINGS)
        yield made


class Killable:
    """Starts maintainers one after the other, and kills them."""

    def __init__(self, world: AuditedWorld, spark: SparkSession) -> None:
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        parameters = gateway.gateway_parameters
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("maintainer_child.py")), str(world.folder)],
            env={
                **os.environ,
                **world.environment,
                "PYSPARK_GATEWAY_PORT": str(parameters.port),
                "PYSPARK_GATEWAY_SECRET": str(parameters.auth_token),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._pid = 0
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._news:
                self._lines.append(line.strip())
                self._news.notify_all()
        with self._news:
            self._lines.append("ended by itself")
            self._news.notify_all()

    def start(self, fail_point: str = "") -> None:
        assert self._process.stdin is not None
        with self._news:
            self._lines = []
        self._process.stdin.write(f"{fail_point}\n")
        self._process.stdin.flush()
        self._pid = int(self.wait_for("pid ").removeprefix("pid "))

    def wait_for(self, beginning: str, timeout_seconds: float = 90.0) -> str:
        """Wait until a line begins so, or the maintainer has ended, and return it."""
        deadline = time.monotonic() + timeout_seconds
        with self._news:
            while True:
                for line in self._lines:
                    if line.startswith((beginning, "ended")):
                        return line
                left = deadline - time.monotonic()
                assert left > 0, f"nothing began with {beginning!r}: {self._lines[-5:]}"
                self._news.wait(left)

    def kill(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        assert self.wait_for("ended") == "ended -9"

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._reader.join(timeout=30)
        self._process.stdout.close()


@pytest.fixture
def killable(world: AuditedWorld, spark: SparkSession) -> Iterator[Killable]:
    made = Killable(world, spark)
    yield made
    made.close()


def finish(world: AuditedWorld, writers: Writers, spark: SparkSession) -> Judgement:
    """Let a last maintainer bring everything in, and judge every tick."""
    writers.finish(stop=True)
    world.open().run(until_idle=True)
    return assert_exact(world, spark)


def test_the_list_of_fail_points_is_complete() -> None:
    written = set()
    for file in SOURCE_FILES.rglob("*.py"):
        written |= set(re.findall(r'^\s*reach\(f?"([^"]+)"\)', file.read_text(), re.MULTILINE))
    patterns = {"before {kind.value} commit", "before {type(chore).__name__}", "after {type(chore).__name__}"}
    assert written - patterns == {
        *AT_UPGRADE,
        *AT_START,
        *AT_BIRTH,
        *AT_BIRTH_COMMIT,
        *IN_BATCHES,
        *IN_LARGE_BATCHES,
        *IN_CHORES,
        *AT_PUBLISH,
    } - {
        "before batch commit",
        "before catalog commit",
    }


def test_killed_at_every_fail_point(world: AuditedWorld, killable: Killable, spark: SparkSession) -> None:
    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=1.0, seed=5)
    writers.start()
    for fail_point in (*AT_START, *AT_BIRTH, *AT_BIRTH_COMMIT, *IN_BATCHES):
        killable.start(fail_point)
        if fail_point == AT_BIRTH[0]:
            killable.wait_for("SourceConnected")
            world.note_before()  # the log has begun at all sources; from now on every transaction must have a tick
        assert killable.wait_for("ended") == "ended -9", fail_point
    judgement = finish(world, writers, spark)
    assert judgement.tick_count > 20


@pytest.mark.thorough
def test_killed_between_writing_rows_committing_and_folding_them(
    world: AuditedWorld, killable: Killable, spark: SparkSession
) -> None:
    world.write_project({"mixed": VIEWS["mixed"]}, settings=f"{SETTINGS}[settings.batch]\nheld_rows = 4\n")
    world.open().run(until_idle=True)
    world.note_before()
    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=1.0, seed=9)
    writers.start()
    for fail_point in (*IN_LARGE_BATCHES, "before commit", "after commit", "before changes append"):
        killable.start(fail_point)
        assert killable.wait_for("ended") == "ended -9", fail_point
    judgement = finish(world, writers, spark)
    assert judgement.tick_count > 10
    assert Warehouse.open(str(world.folder / "warehouse")).commits.table.number(REFERRED) is not None, (
        "commits named files of tasks"
    )


@pytest.mark.thorough
def test_a_killed_bootstrap_goes_on_from_its_chunks(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project(KEPT, settings=f"{SETTINGS}[settings.bootstrap]\nchunk_rows = 8\n")
    for source, names in NAMES.items():
        world.execute(source, "; ".join(f"ANALYZE {name}" for name in names))
    killable = Killable(world, spark)
    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=1.0, seed=12)
    finished = []
    try:
        for attempt in range(4):
            killable.start("chunk staged")
            if attempt == 0:
                killable.wait_for("SourceConnected")
                world.note_before()
                writers.start()
            assert killable.wait_for("ended") == "ended -9"
            finished.append(len(list((world.folder / "warehouse").rglob("chunk-*.json"))))
        assert finished == sorted(set(finished)), "every attempt went on where the one before had died"
        killable.start()
        assert killable.wait_for("ViewBorn") == "ViewBorn"
        killable.wait_for("BatchCommitted")
        killable.kill()
    finally:
        killable.close()
    finish(world, writers, spark)


@pytest.mark.thorough
def test_killed_at_random_moments(world: AuditedWorld, killable: Killable, spark: SparkSession) -> None:
    world.write_project(FEW, settings=SETTINGS)
    world.open().run(until_idle=True)
    world.note_before()
    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=1.0, seed=6)
    writers.start()
    chance = random.Random(7)
    for _ in range(KILLS):
        killable.start()
        if chance.random() < 0.8:
            killable.wait_for(chance.choice(("BatchStarted", "TransactionsAccepted", "ProbeAnswered")))
        time.sleep(chance.uniform(0, 0.8))
        killable.kill()
    judgement = finish(world, writers, spark)
    assert judgement.tick_count > 5 * KILLS


def test_a_server_is_killed_while_its_views_are_maintained(
    world: AuditedWorld, three_servers: dict[str, EmbeddedServer], spark: SparkSession
) -> None:
    world.open().run(until_idle=True)
    world.note_before()
    events: list[Event] = []
    maintainer = start_maintainer(spark, resolve_project(world.open().project, spark), events.append)
    running = threading.Thread(target=maintainer.run, kwargs={"until_idle": False, "ticks": None})
    running.start()
    writers = busy_writers(three_servers, world.database, transactions=40_000, pause_seconds=0.15, seed=8)
    writers.start()
    chance = random.Random(9)
    for name in ("shop", "crm", "geo"):
        time.sleep(chance.uniform(1.0, 2.0))
        three_servers[name].kill()
        time.sleep(chance.uniform(0.2, 1.0))
        three_servers[name].start()
    time.sleep(2.0)
    writers.finish(stop=True)
    assert running.is_alive(), "a maintainer outlives its sources"
    maintainer.stop()
    running.join(timeout=120)
    judgement = finish(world, writers, spark)
    assert judgement.tick_count > 50
    lost = {event.source for event in events if isinstance(event, SourceDisconnected)}
    assert lost == {"shop", "crm", "geo"}
    assert sum(isinstance(event, SourceConnected) for event in events) >= 6
