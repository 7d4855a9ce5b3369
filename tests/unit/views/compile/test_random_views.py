"""What the compiler makes of a view gives what the view's SQL gives: random views over random rows, in DuckDB."""

from __future__ import annotations

import random

import duckdb
import pytest
from in_duckdb import World, relation
from random_views import Chance

VIEWS = 60


@pytest.fixture(scope="module")
def world() -> World:
    return World(
        [
            relation("a", "r", x="int", y="int", z="int"),
            relation("a", "s", x="int", w="int"),
            relation("b", "t", y="int", w="int", k="int"),
            relation("b", "u", key=("id",), id="int!", x="int"),
        ]
    )


@pytest.mark.parametrize("seed", range(VIEWS))
def test_oracle_segments_give_what_the_original_gives(seed: int, world: World) -> None:
    chance = Chance(random=random.Random(seed))
    sql = chance.view()
    try:
        world.original(sql)
    except duckdb.Error as error:
        pytest.skip(f"DuckDB does not run it: {str(error)[:80]}")
    view = world.compile(sql)
    for _ in range(3):
        world.fill(chance.rows())
        assert world.evaluate(view) == world.original(sql), sql
