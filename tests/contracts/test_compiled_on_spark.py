"""What the compiler makes of each construct, and of random views, on Spark: its rows are the original's at every tick.

Before the first tick every segment is computed whole, and has Spark's types. Then two batches of transactions flow
through the segments, and Spark evaluates the original text at every tick.
"""

from __future__ import annotations

import random
import re

import pytest
from compiled_stories import BATCHES, CONSTRUCTS, story
from mixed_views import Mixed
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from random_views import Chance
from ticking import Computed, check_every_tick
from volume import THOROUGH, volume

from headwater.errors import InvalidView
from headwater.views.text.upstream_views import ViewText, views_below

ON_SPARK_ALONE = re.compile(
    "membership as a value|sets of a list|cube|qualify groups|truths|linked value within|after the list"
    "|another's name|by grouping, and|sum of a linked count|union with nothing|left join of nothing|called as well"
)
"""What every build plays: what DuckDB cannot tell, and what has the most steps; `make thorough` plays all."""
QUICK = [found for found in CONSTRUCTS if THOROUGH or ON_SPARK_ALONE.search(found[0])]


@pytest.mark.parametrize("sql", [sql for _, sql in QUICK], ids=[name for name, _ in QUICK])
def test_oracle_a_construct_at_every_tick(sql: str, spark: SparkSession) -> None:
    check_every_tick(spark, sql, story(len(sql)), BATCHES)


@pytest.mark.parametrize("seed", range(1000, 1000 + volume(1, 60)))
def test_oracle_a_random_view_at_every_tick(seed: int, spark: SparkSession) -> None:
    sql = Chance(random=random.Random(seed)).view()
    try:
        check_every_tick(spark, sql, story(seed), BATCHES)
    except PySparkException as error:
        if error.getCondition() not in _NOT_SPARK:
            raise
        pytest.skip(f"Spark does not run it: {error.getCondition()}")


@pytest.mark.parametrize("seed", range(5000, 5000 + volume(1, 60)))
def test_oracle_a_mixed_view_at_every_tick(seed: int, spark: SparkSession) -> None:
    sql = Mixed(random=random.Random(seed)).view()
    try:
        check_every_tick(spark, sql, story(seed), BATCHES)
    except InvalidView as refused:
        if refused.code not in {"HW-217", "HW-244", "HW-296"}:
            raise
        pytest.skip(f"Spark does not run it, or it has no type: {sql}")


@pytest.mark.parametrize("seed", range(2000, 2000 + volume(1, 30)))
def test_oracle_random_views_over_random_views_at_every_tick(seed: int, spark: SparkSession) -> None:
    """The last one reads the others; what they have in common is computed once, for all of them."""
    chance = Chance(random=random.Random(seed))
    texts: dict[str, ViewText] = {}
    for name in ("low", "middle", "high"):
        sql, columns = chance.query(1, ())
        texts[name] = ViewText(name=name, sql=sql)
        chance.tables[name] = columns
        if name == "middle":
            chance.tables = {view: chance.tables[view] for view in texts}
    computed: Computed = {}
    told = story(seed)
    try:
        for name, text in texts.items():
            check_every_tick(spark, text.sql, told, BATCHES, lower=views_below(name, texts), computed=computed)
    except PySparkException as error:
        if error.getCondition() not in _NOT_SPARK:
            raise
        pytest.skip(f"Spark does not run it: {error.getCondition()}")


def test_what_views_have_in_common_is_computed_once(spark: SparkSession) -> None:
    low = ViewText(
        name="low", sql="SELECT r.x, COUNT(*) AS n, SUM(s.w) AS t FROM a.r JOIN a.s ON r.x = s.x GROUP BY r.x"
    )
    computed: Computed = {}
    told = story(7)
    below = check_every_tick(spark, low.sql, told, BATCHES, computed=computed)
    had = {span: dict(found) for span, found in computed.items()}
    check_every_tick(
        spark, "SELECT l.x, u.id FROM low l JOIN b.u ON u.x = l.n", told, BATCHES, lower=(low,), computed=computed
    )
    assert {name for found in had.values() for name in found} == {segment.name for segment in below.segments[:-1]}
    for span, found in had.items():
        assert found.keys() <= computed[span].keys()
        assert all(computed[span][name] is bag for name, bag in found.items()), "nobody computed it again"
    with pytest.raises(AssertionError, match="at tick"):  # what is taken over is what is shown
        check_every_tick(
            spark,
            low.sql,
            told,
            BATCHES,
            computed={span: {n: b.negated() for n, b in f.items()} for span, f in had.items()},
        )


_NOT_SPARK = {"SCALAR_SUBQUERY_TOO_MANY_ROWS"}
