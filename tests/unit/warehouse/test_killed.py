from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from journaled import rows_at
from s3_server import S3Server

from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.storage.object_store import reach, store_at
from headwater.warehouse.query import Warehouse

PROGRAM = str(Path(__file__).parent / "killed.py")
SALES = RelationName(source="shop", name="sales")
STEPS = ("log append", "changes append", "commit", "checkpoint write", "journal trim")
CHORES = ("Fold", "Trim", "Compact", "DropRows", "Vacuum", "CleanLog")
POINTS = [
    *(f"{when} {step}" for step in STEPS for when in ("before", "after")),
    *(f"after {chore}" for chore in CHORES),
    *(pytest.param(f"before {chore}", marks=pytest.mark.thorough) for chore in CHORES),
]


def run(path: str, target: int, point: str | None = None, s3: S3Server | None = None) -> int:
    environment = {**os.environ, **(s3.environment if s3 else {}), "HEADWATER_FAIL_POINT": point or ""}
    return subprocess.run([sys.executable, PROGRAM, path, str(target)], env=environment, check=False).returncode


def kept(path: str, tick: Tick) -> list[int]:
    """The state at a tick, from the checkpoint and the changes, without Spark."""
    table = Warehouse.open(path).kept_table("v")
    return sorted(row[0] for row in rows_at(table, tick).elements())


def assert_exact(path: str) -> None:
    """Every tick is in the log once, and every state of the view that can be read is right."""
    reader = Warehouse.open(path)
    horizon, last = reader.log.horizon(), reader.log.last_tick
    assert reader.head().tick == last
    assert reader.log.rows(SALES, ("id",), horizon, last)["id"].to_pylist() == list(range(horizon + 1, last + 1))
    assert [tick for tick, _ in reader.log.transactions(None, horizon, last)] == list(range(horizon + 1, last + 1))
    for tick in range(reader.kept_table("v").horizon(), last + 1):
        assert kept(path, Tick(tick)) == list(range(1, tick + 1))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("begun") / "warehouse"
    assert run(str(path), 9) == 0
    return path


@pytest.mark.parametrize("point", POINTS)
def test_nothing_is_lost_and_nothing_happens_twice(tmp_path: Path, begun: Path, point: str) -> None:
    assert_survives(str(shutil.copytree(begun, tmp_path / "warehouse")), point)


IN_EVERY_BUILD = ("before commit", "after commit", "after changes append")


@pytest.mark.parametrize(
    "point",
    [point if point in IN_EVERY_BUILD else pytest.param(point, marks=pytest.mark.thorough) for point in POINTS[:10]],
)
def test_nothing_is_lost_on_an_object_store_either(s3: S3Server, begun: Path, point: str) -> None:
    path = s3.address()
    reach(path, s3.options)
    for name in store_at(str(begun)).sizes():
        store_at(path).put(name, (begun / name).read_bytes())
    assert_survives(path, point, s3)


def assert_survives(path: str, point: str, s3: S3Server | None = None) -> None:
    assert run(path, 15, point, s3) == -signal.SIGKILL
    seen = Warehouse.open(path).head().tick
    assert seen >= 9
    assert kept(path, seen) == list(range(1, seen + 1))
    # first hardly further than the batch at hand, so that retention has not yet dropped what may be there twice
    assert run(path, Warehouse.open(path).log.last_tick + 1, s3=s3) == 0
    assert_exact(path)
    assert run(path, 18, s3=s3) == 0
    assert_exact(path)
    reader = Warehouse.open(path)
    assert reader.head().tick == 18
    sequences = [commit.sequence for commit in reader.commits.read()]
    assert sequences == list(range(1, len(sequences) + 1))


def test_two_maintainers_at_once_leave_one_history(place: str, s3: S3Server) -> None:
    path = place
    assert run(path, 1, s3=s3) == 0
    environment = {**os.environ, **s3.environment}
    both = [
        subprocess.Popen([sys.executable, PROGRAM, path, "40"], stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    errors = [process.communicate()[1] for process in both]
    assert sorted(process.returncode for process in both) in ([0, 0], [0, 1])
    assert all("LeaseLost" in error for error, process in zip(errors, both, strict=True) if process.returncode)
    reader = Warehouse.open(path)
    assert reader.head().tick == 40
    assert kept(path, Tick(40)) == list(range(1, 41))
    assert isinstance(reader.log.rows(SALES, ("id",), reader.log.horizon(), Tick(40)), pa.Table)
