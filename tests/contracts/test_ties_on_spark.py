"""Views with open orders on Spark: born whole and changed by batches, they give at every tick what was written by hand.

Three engines' answers meet here: Spark's for the compiler's text and its segments, Spark's for the judge's text, and
DuckDB's for a text in which a person completed the orders.
"""

from __future__ import annotations

import random
import zlib
from collections import Counter

import pytest
from in_duckdb import World
from pyspark.sql import SparkSession
from ticking import Story, check_every_tick, original_states, random_story
from tied_views import RELATIONS, TIED, E, K, tied_row, tied_rows
from volume import THOROUGH

from headwater.deltas.compare import Row
from headwater.errors import UnsupportedView
from headwater.model.relation import RelationName
from headwater.spark.types import SelectTypes
from headwater.views.compile.compile_view import compile_view

BATCHES = [(0, 3), (3, 5)]
QUICK = (
    "newest row",
    "order by and limit",
    "first rows under a linked value",
    "last value so far",
    "second value so far",
    "qualify over a join",
    "totals",
)


@pytest.mark.parametrize("name", list(TIED) if THOROUGH else QUICK)
def test_oracle_ties_are_broken_alike_at_every_tick(name: str, spark: SparkSession) -> None:
    sql, by_hand = TIED[name]
    told = story(zlib.crc32(name.encode()))
    right = written_by_hand(by_hand, told)
    view = check_every_tick(spark, sql, told, BATCHES)  # segments, against the judge's text
    assert [plain(state) for state in original_states(spark, view.whole, told)] == right


def story(seed: int) -> Story:
    chance = random.Random(seed)
    before = tied_rows(seed)
    before[E.name] += [before[E.name][0]]

    def row(name: RelationName) -> Row:
        return tied_row(chance, None if name == E.name else chance.randrange(5))

    return random_story({one.name: one for one in RELATIONS}, before, chance, row, BATCHES[-1][1])


def written_by_hand(text: str, told: Story) -> list[Counter[Row]]:
    world = World((E, K))
    found = []
    for bags in told.states:
        world.fill({name: list(bag.elements()) for name, bag in bags.items()})
        found.append(world.by_hand(text))
    return found


def plain(state: Counter[Row]) -> Counter[Row]:
    return Counter(
        tuple(float(v) if isinstance(v, int) else v for v in row) for row, n in state.items() for _ in range(n)
    )


def test_a_story_has_ties() -> None:
    """Without them nothing above could fail."""
    for name in QUICK:
        states = story(zlib.crc32(name.encode())).states
        counted = [Counter((row[0], row[1]) for row in bags[E.name].elements()) for bags in states]
        assert any(count > 1 for state in counted for count in state.values())


def test_what_has_no_order_cannot_complete_one(spark: SparkSession) -> None:
    sql = """
        SELECT q.val, row_number() OVER (ORDER BY q.val) AS n
        FROM (SELECT e.val, CAST(NULL AS MAP<STRING, INT>) AS m FROM a.e) AS q
    """
    catalog = {one.name: one for one in RELATIONS}
    with pytest.raises(UnsupportedView) as caught:
        compile_view("v", sql, catalog, SelectTypes(spark=spark, view="v").columns)
    assert caught.value.code == "HW-290"
    assert 'ordering on type "MAP<STRING, INT>"' in caught.value.detail
    assert "headwater_typed" not in caught.value.detail
