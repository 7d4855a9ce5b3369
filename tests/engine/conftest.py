"""A project over scripted sources whose views are there, made once; every test gets a copy of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession
from scripted_world import ONCE, SOLD, TOTALS, FailPoints, ScriptedWorld

from headwater import fail_points


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> FailPoints:
    """Return what stops maintainers at fail points, in place of what kills the process."""
    made = FailPoints()
    monkeypatch.setattr(fail_points, "os", SimpleNamespace(environ=made))
    return made


@pytest.fixture(scope="session")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> ScriptedWorld:
    """Return a world whose views have been maintained for some ticks."""
    world = ScriptedWorld(spark, tmp_path_factory.mktemp("scripted") / "begun")
    world.write_project({"sold": SOLD, "totals": TOTALS})
    for product in range(4):
        world.price(product, 10 * product)
    world.sell(*range(1, 10))
    world.run()
    world.sell(*range(10, 16))
    world.price(1, 11)
    world.run()
    assert world.assert_exact("sold", "totals") == 7
    return world


@pytest.fixture
def world(begun: ScriptedWorld, tmp_path: Path) -> ScriptedWorld:
    """Return a copy of that world."""
    return begun.copied_to(tmp_path / "scripted")


@pytest.fixture
def fresh(spark: SparkSession, tmp_path: Path) -> ScriptedWorld:
    """Return a world with rows and one view, and without a warehouse. What is born is not computed twice: for speed."""
    world = ScriptedWorld(spark, tmp_path / "scripted")
    world.write_project({"sold": SOLD}, ONCE)
    for product in range(4):
        world.price(product, 10 * product)
    world.sell(*range(1, 10))
    return world
