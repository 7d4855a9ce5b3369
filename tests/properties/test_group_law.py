"""A group's law against recomputation from scratch, at every tick, in volume: the Spark text, run by DuckDB."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from group_cases import CASES, check, check_many, group, grouped
from stamped_history import INPUT, History, counted, plain, random_history, run_on_duckdb, stamped

from headwater.views.laws.group import group_law_sql, impossible_tick
from headwater.views.steps.segments import Segment


def sale(store: int | None, profit: int | None) -> tuple[object, ...]:
    """Return a row with a store in `k` and a profit in `x`."""
    return (store, None, profit, None, None, None)


def test_oracle_every_tick() -> None:
    check_many(run_on_duckdb, range(300))


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("FROM `changes`", "FROM (SELECT DISTINCT * FROM `changes`)"),
        ("ORDER BY s ROWS", "ORDER BY s DESC ROWS"),
        ("LEAD(s)", "LAG(s)"),
        ("PARTITION BY k0", "PARTITION BY COALESCE(k0, 0)"),
        ("summed WHERE n <> 0 OR m0 <> 0 OR t0 <> 0", "summed WHERE n <> 0"),
        ("SUM(_count) AS n", "SUM(1) AS n"),
        ("IS NULL THEN 0", "IS NULL THEN _count"),
        ("THEN s ELSE until END > 0", "THEN s ELSE until END > 1"),
        ("WHERE (n <> 0", "WHERE (TRUE"),
    ],
)
def test_mutations_are_noticed(said: str, instead: str) -> None:
    """Each of these mistakes is seen by some history."""
    step, relation = group(("k",), ("x",))
    sql = group_law_sql(step, relation, "changes", "old_rows")
    assert said in sql
    wrong = sql.replace(said, instead)
    for seed in range(200):
        random = Random(seed)
        try:
            check(random_history(random, 8), step, relation, random, run_on_duckdb, wrong)
        except AssertionError:
            return
    pytest.fail("nobody noticed")


@pytest.mark.parametrize("seed", range(len(CASES)))
def test_whole_inputs_give_the_same(seed: int) -> None:
    step, relation = CASES[seed]
    for rows in (Counter[tuple[object, ...]](), random_history(Random(seed), 3).at(3)):
        segment = Segment(relation=relation, step=step, is_kept=True)
        found = run_on_duckdb(segment.whole_sql({INPUT.name: "whole"}), {"whole": plain(rows)})
        assert Counter(tuple(row.values()) for row in found.to_pylist()) == grouped(step, rows)


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        # PAPERS §7, 3: with the paper's UNION the first two give 14 and 10, and without a count the last group stays.
        pytest.param({sale(1, 10): 1}, {sale(1, 4): 2}, (1, 3, 18, 3), id="two new sales of equal profit"),
        pytest.param({sale(1, 10): 1}, {sale(1, 10): 1}, (1, 2, 20, 2), id="a change that equals the old row"),
        pytest.param({sale(1, 0): 1}, {sale(1, 0): -1}, None, id="the last row of a group goes"),
    ],
)
def test_paper_004(
    before: dict[tuple[object, ...], int], change: dict[tuple[object, ...], int], after: tuple[int, ...] | None
) -> None:
    step, relation = group(("k",), ("x",))
    history = History(Counter(before), (Counter(change),))
    check(history, step, relation, Random(0), run_on_duckdb)
    assert grouped(step, history.at(1)) == Counter([after] if after else [])


@pytest.mark.parametrize(
    ("gone", "tick"),
    [
        pytest.param([(*sale(2, 5), 3, -1)], 3, id="a group that is not there"),
        pytest.param([(*sale(1, 5), 4, -3)], 4, id="more rows than there are"),
        pytest.param([(*sale(1, None), 5, -1), (*sale(1, None), 6, 1)], 5, id="more values than rows"),
        pytest.param([(*sale(1, 7), 6, -2)], 6, id="another value"),
        pytest.param([(*sale(1, 5), 7, -1)], None, id="nothing wrong"),
    ],
)
def test_impossible_changes_are_seen(gone: list[tuple[object, ...]], tick: int | None) -> None:
    step, relation = group(("k",), ("x",))
    old = counted(grouped(step, Counter({sale(1, 5): 2})), relation)
    sql = group_law_sql(step, relation, "changes", "old_rows")
    assert impossible_tick(step, run_on_duckdb(sql, {"changes": stamped(gone), "old_rows": old})) == tick


def test_a_hot_key_costs_its_versions() -> None:
    step, relation = group(("k",), ("x",))
    ticks = 20_000
    changes = stamped([(*sale(1, tick), tick, 1) for tick in range(1, ticks + 1)])
    old = counted(Counter(), relation)
    found = run_on_duckdb(group_law_sql(step, relation, "changes", "old_rows"), {"changes": changes, "old_rows": old})
    assert found.num_rows == 2 * ticks - 1
    assert max(found["total_x"].to_pylist()) == ticks * (ticks + 1) // 2
