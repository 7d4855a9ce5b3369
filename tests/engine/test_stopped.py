"""Whatever a maintainer was doing when it stopped, the next one goes on: nothing is lost, and nothing happens twice."""

from __future__ import annotations

import contextlib

import pytest
from scripted_world import Died, FailPoints, ScriptedWorld

from headwater.errors import HeadwaterError

pytestmark = pytest.mark.filterwarnings("ignore:Exception in thread upkeep")  # it died, as it was told

IN_BATCHES = (
    "before log append",
    "after log append",
    "before batch commit",
    "before commit",
    "after commit",
    "before changes append",
    "after changes append",
)
AT_BIRTH = (
    "before log mark",
    "after log mark",
    "slot made",
    "chunk staged",
    "replicas written",
    "before checkpoint write",
    "after checkpoint write",
    "before catalog commit",
)


def stopped(world: ScriptedWorld, points: FailPoints, name: str, skipped: int = 0) -> None:
    """Let a maintainer run until it dies at a fail point."""
    with points.armed(name, skipped):
        with contextlib.suppress(Died, HeadwaterError):
            world.run()
        assert points.is_dead, f"nobody came by {name}"
    for database in (world.shop, world.stock):
        database.disconnect()


@pytest.mark.parametrize("name", IN_BATCHES)
def test_stopped_in_a_batch(world: ScriptedWorld, points: FailPoints, name: str) -> None:
    world.sell(*range(16, 20))
    world.price(2, 22)
    stopped(world, points, name)
    world.sell(20)
    world.run()
    assert world.assert_exact("sold", "totals") == 7 + 6


def test_stopped_again_and_again(world: ScriptedWorld, points: FailPoints) -> None:
    for number, name in enumerate(IN_BATCHES, 16):
        world.sell(number)
        stopped(world, points, name)
    world.run()
    assert world.assert_exact("sold", "totals") == 7 + len(IN_BATCHES)


def test_what_a_stopped_bootstrap_left_is_cleared_by_the_next(fresh: ScriptedWorld, points: FailPoints) -> None:
    stopped(fresh, points, "replicas written")
    replicas = fresh.folder / "warehouse" / "replicas"
    assert {one.parent.name: one.name for one in replicas.glob("*/*")} == {"shop.sales": "1", "stock.products": "1"}
    assert list(replicas.rglob("*.parquet"))
    fresh.run()
    assert not list(replicas.rglob("1/**/*.parquet")), "what nobody can ever read is gone"
    assert list(replicas.glob("*/2/checkpoint"))
    fresh.assert_exact("sold")


@pytest.mark.parametrize("name", AT_BIRTH)
def test_stopped_while_views_are_born(fresh: ScriptedWorld, points: FailPoints, name: str) -> None:
    stopped(fresh, points, name)
    fresh.sell(*range(10, 13))
    fresh.run()
    fresh.assert_exact("sold")
