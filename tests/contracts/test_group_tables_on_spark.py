"""Views without group tables, on Spark: old rows are computed from their operands, and every tick is the original's.

The stories are those that compiled views are played with; sources answer late, so that every answer has to be rebased.
"""

from __future__ import annotations

import random
import re

import pytest
from compiled_stories import BATCHES, CONSTRUCTS, story
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from random_views import Chance
from ticking import check_every_tick
from volume import THOROUGH, volume

from headwater.model.keeping import TheseGroupTables
from headwater.views.steps.group_tables import computed_segments

QUICK = re.compile(r"^(count distinct and totals|full join|except all)")
"""What every build plays: groups below groups, and unions with signs."""
PLAYED = [found for found in CONSTRUCTS if THOROUGH or QUICK.search(found[0])]
NONE = TheseGroupTables(())
TWO_LEVELS = """
    SELECT q.x, q.n, q.t, p.m, u.id
    FROM (SELECT r.x, COUNT(*) AS n, SUM(s.w) AS t FROM a.r JOIN a.s ON r.x = s.x WHERE r.y > 0 GROUP BY r.x) q
    JOIN (SELECT t.y, SUM(t.k) AS m FROM b.t GROUP BY t.y) p ON p.y = q.x
    JOIN b.u ON u.id = q.x WHERE q.n + p.m > 1
"""


@pytest.mark.parametrize("sql", [sql for _, sql in PLAYED], ids=[name for name, _ in PLAYED])
def test_oracle_a_construct_without_group_tables(sql: str, spark: SparkSession) -> None:
    check_every_tick(spark, sql, story(len(sql) + 1), BATCHES, group_tables=NONE, answered_late=True)


@pytest.mark.parametrize("seed", range(volume(1, 15)))
def test_oracle_two_levels_with_any_group_tables(seed: int, spark: SparkSession) -> None:
    """The same history with both group tables, with one, with the other, and with none."""
    told = story(3_000 + seed)
    view = check_every_tick(spark, TWO_LEVELS, told, BATCHES)
    kept = [segment.name.name for segment in view.segments[:-1] if segment.is_kept]
    assert len(kept) == 2
    for names in ((kept[0],), (kept[1],), ()):
        played = check_every_tick(
            spark, TWO_LEVELS, told, BATCHES, group_tables=TheseGroupTables(names), answered_late=True
        )
        assert {name.name for name in computed_segments(played)} == {*kept} - {*names}


@pytest.mark.parametrize("seed", range(4_000, 4_000 + volume(1, 40)))
def test_oracle_a_random_view_without_group_tables(seed: int, spark: SparkSession) -> None:
    sql = Chance(random=random.Random(seed)).view()
    try:
        check_every_tick(spark, sql, story(seed), BATCHES, group_tables=NONE, answered_late=True)
    except PySparkException as error:
        if error.getCondition() != "SCALAR_SUBQUERY_TOO_MANY_ROWS":
            raise
        pytest.skip("Spark does not run it")
