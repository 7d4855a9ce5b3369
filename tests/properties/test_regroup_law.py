"""A regroup's laws against recomputation from whole inputs, at every tick, in volume: Spark texts, run by DuckDB."""

from __future__ import annotations

from random import Random

import pytest
from regroup_cases import LAWS, check, check_many
from stamped_history import random_history, run_on_duckdb


def test_oracle_regroups_at_every_tick() -> None:
    check_many("regroup", run_on_duckdb, range(120))


@pytest.mark.parametrize("tick_count", [1, 6, 17])
def test_oracle_extremes_at_every_tick(tick_count: int) -> None:
    check_many("extremes", run_on_duckdb, range(30), tick_count)


@pytest.mark.parametrize(
    ("law", "case", "said", "instead"),
    [
        ("regroup", 3, "UNION ALL", "UNION"),
        ("regroup", 3, "SEQUENCE(1, copies)", "SEQUENCE(1, 1)"),
        ("regroup", 3, "ORDER BY born ROWS", "ORDER BY born DESC ROWS"),
        ("regroup", 3, "born <= _tick", "born < _tick"),
        ("regroup", 3, "dead > _tick", "dead >= _tick"),
        ("regroup", 3, "`k` <=> ", "`k` = "),
        ("regroup", 2, "CASE WHEN some._tick IS NULL THEN none.`n` ELSE some.`n` END", "some.`n`"),
        ("regroup", 5, "PARTITION BY `k`, `_tick`, `_until` ORDER", "PARTITION BY `k` ORDER"),
        ("regroup", 5, "SUM(side) <> 0", "TRUE"),
        ("regroup", 7, "place > 1", "place > 0"),
        ("extremes", 0, "LEFT JOIN", "JOIN"),
        ("extremes", 1, "<=> moments.`k`", "= moments.`k`"),
        ("extremes", 1, "head < tail", "head <= tail"),
        ("extremes", 1, "tail - 1", "tail"),
        ("extremes", 1, "copies > 0", "TRUE"),
        ("extremes", 1, "THEN head ELSE tail END % 2 = 1", "THEN head ELSE tail END % 2 = 0"),
        ("extremes", 1, "SEQUENCE(0, top)", "SEQUENCE(0, 1)"),
    ],
)
def test_mutations_are_noticed(law: str, case: int, said: str, instead: str) -> None:
    """Each of these mistakes is seen by some history."""
    law_sql, segment = LAWS[law][case]
    changed = []

    def wrong(*given: object) -> str:
        text = law_sql(*given)  # type: ignore[arg-type]
        changed.append(said in text)
        return text.replace(said, instead)

    for seed in range(100):
        random = Random(seed)
        try:
            check(random_history(random, 8), segment, random, run_on_duckdb, wrong)
        except AssertionError:
            assert all(changed)
            return
    pytest.fail("nobody noticed")
