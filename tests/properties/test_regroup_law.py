"""A regroup's laws against recomputation from whole inputs, at every tick, in volume: Spark texts, run by DuckDB."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from regroup_cases import LAWS, check, check_many
from stamped_history import INPUT, counted, random_history, run_on_duckdb, stamped

from headwater.views.steps.regroup_step import RegroupStep
from headwater_lab.in_memory.bag import Row


def test_oracle_regroups_at_every_tick() -> None:
    check_many("regroup", run_on_duckdb, range(120))


@pytest.mark.parametrize("tick_count", [1, 6, 17])
def test_oracle_extremes_at_every_tick(tick_count: int) -> None:
    check_many("extremes", run_on_duckdb, range(30), tick_count)


def test_a_hot_partition_costs_its_changes() -> None:
    """A window of 50 values slides over one partition for 4,000 ticks; 500 larger ones lie still."""
    ticks, width = 4000, 50
    values = [(tick * 7919) % 10_007 for tick in range(ticks)]
    entries = [(*row(value), tick, 1) for tick, value in enumerate(values, 1)]
    entries += [(*row(value), tick + width, -1) for tick, value in enumerate(values[:-width], 1)]
    law_sql, segment = LAWS["extremes"][1]
    assert isinstance(segment.step, RegroupStep)
    sql = law_sql(segment.step, INPUT, segment.relation, "changes", "old_rows")
    old = counted(Counter({row(20_000 + n): 1 for n in range(500)}))
    found = run_on_duckdb(sql, {"changes": stamped(entries), "old_rows": old}).to_pylist()
    least = {one["_tick"]: one["least"] for one in found if one["_count"] > 0}
    expected, last = {}, 20_000
    for tick in range(1, ticks + 1):
        lowest = min(values[max(0, tick - width) : tick])
        if lowest != last:
            expected[tick] = last = lowest
    assert least == expected


def row(value: int) -> Row:
    return (1, None, value, None, None, None)


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
        ("regroup", 5, "SUM(_side) <> 0", "TRUE"),
        ("regroup", 7, "_place > 1", "_place > 0"),
        ("extremes", 0, "LEFT JOIN", "JOIN"),
        ("extremes", 1, "<=> turns.`k`", "= turns.`k`"),
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
