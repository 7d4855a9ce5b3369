"""Views over PostgreSQL and MariaDB together: every tick is what both databases' own triggers wrote down."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import observe
from mariadb_server import MariadbServer, mariadb_server
from pyspark.sql import SparkSession
from two_kinds import VIEWS, MixedWorld, states
from volume import volume

from headwater.judge.grade_changes import History
from headwater.model.position import Tick
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariadbServer]:
    with tempfile.TemporaryDirectory(prefix="headwater-test-") as folder, mariadb_server(Path(folder)) as server:
        yield server


@pytest.fixture
def world(postgres_server: EmbeddedServer, mariadb: MariadbServer, tmp_path: Path) -> Iterator[MixedWorld]:
    made = MixedWorld(postgres_server, mariadb, tmp_path / "project")
    made.make()
    yield made
    made.drop()


def test_every_tick_is_what_both_databases_wrote_down(world: MixedWorld, spark: SparkSession) -> None:
    for source in ("crm", "shop"):
        world.write(source, 20, seed=7, own=3)
    world.open().run(until_idle=True)
    running = world.busy(volume(60, 800), writers=volume(2, 4))
    while any(one.is_alive() for one in running):
        world.open().run(until_idle=True)
    world.open().run(until_idle=True)
    assert_exact(world, spark)


def assert_exact(world: MixedWorld, spark: SparkSession) -> None:
    """Compare every view at every tick with what the notes of the transactions up to it give."""
    warehouse = Warehouse.open(str(world.open().project.warehouse))
    noted = world.noted()
    shown = {name: observe(warehouse, spark, name) for name in VIEWS}
    first = max(one.birth for one in shown.values())
    last = warehouse.log.last_tick
    assert {warehouse.frontier(name) for name in VIEWS} == {last}
    assert last - first > 20, "there were ticks to compare"
    running = {name: Running(history, first) for name, history in shown.items()}
    customers: Counter[tuple[object, ...]] = Counter()
    sales: Counter[tuple[object, ...]] = Counter()
    held: dict[str, set[int]] = {"crm": set(), "shop": set()}
    for number in range(first, last + 1):
        for name in VIEWS:
            running[name].come_to(Tick(number))
        for source, rows in (("crm", customers), ("shop", sales)):
            now = {tx for (tx,) in running[f"{source}_marks"].state}
            assert now >= held[source]
            assert number == first or len(now - held[source]) <= 1, "a tick is one transaction"
            for tx in now - held[source]:
                for sign, row in noted[source][tx]:
                    rows[row] += sign
            held[source] = now
        for name, right in states(+customers, +sales).items():
            assert running[name].state == right, f"{name} at tick {number}"
    assert held == {source: set(found) for source, found in noted.items()}, "nothing was lost"


class Running:
    """The state of a view while ticks go by."""

    def __init__(self, history: History, first: Tick) -> None:
        self.history = history
        self.state: Counter[tuple[object, ...]] = Counter(history.start)
        self.at = history.birth
        self.come_to(first)

    def come_to(self, tick: Tick) -> None:
        for number in range(self.at + 1, tick + 1):
            for row, count in self.history.changes.get(Tick(number), {}).items():
                self.state[row] += count
                if not self.state[row]:
                    del self.state[row]
        self.at = max(self.at, tick)
