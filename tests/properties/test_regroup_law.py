"""A regroup's law against recomputation from whole inputs, at every tick, in volume: the Spark text, run by DuckDB."""

from __future__ import annotations

from random import Random

import pytest
from regroup_cases import CASES, check, check_many
from stamped_history import INPUT, random_history, run_on_duckdb

from headwater.views.regroup_law import regroup_law_sql
from headwater.views.segments import RegroupStep


def test_oracle_every_tick() -> None:
    check_many(run_on_duckdb, range(160))


@pytest.mark.parametrize(
    ("case", "said", "instead"),
    [
        (3, "UNION ALL", "UNION"),
        (3, "SEQUENCE(1, copies)", "SEQUENCE(1, 1)"),
        (3, "ORDER BY born ROWS", "ORDER BY born DESC ROWS"),
        (3, "born <= _tick", "born < _tick"),
        (3, "dead > _tick", "dead >= _tick"),
        (3, "`k` <=> ", "`k` = "),
        (2, "CASE WHEN some._tick IS NULL THEN none.`n` ELSE some.`n` END", "some.`n`"),
        (5, "PARTITION BY `k`, `_tick`, `_until` ORDER", "PARTITION BY `k` ORDER"),
        (5, "SUM(side) <> 0", "TRUE"),
        (7, "place > 1", "place > 0"),
    ],
)
def test_mutations_are_noticed(case: int, said: str, instead: str) -> None:
    """Each of these mistakes is seen by some history."""
    segment = CASES[case]
    assert isinstance(segment.step, RegroupStep)
    sql = regroup_law_sql(segment.step, INPUT, segment.relation, "changes", "old_rows")
    assert said in sql
    for seed in range(100):
        random = Random(seed)
        try:
            check(random_history(random, 8), segment, random, run_on_duckdb, sql.replace(said, instead))
        except AssertionError:
            return
    pytest.fail("nobody noticed")
