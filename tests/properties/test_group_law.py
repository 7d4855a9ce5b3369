"""A group's law against recomputation from scratch, at every tick, in volume: the Spark text, run by DuckDB."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, localcontext
from random import Random
from typing import Any

import pytest
from stamped_history import INPUT, History, Run, check_every_tick, counted, random_history, run_on_duckdb

from headwater.deltas.in_memory import Row
from headwater.relation import Column, Relation, RelationName
from headwater.views.group_law import group_law_sql, impossible_tick
from headwater.views.segments import GroupStep, Total

SUM_TYPES = {"x": "bigint", "d": "decimal(22,2)", "w": "decimal(38,18)"}


def group(keys: tuple[str, ...], summed: tuple[str, ...]) -> tuple[GroupStep, Relation]:
    totals = tuple(Total(column=name, total=f"total_{name}", known=f"known_{name}") for name in summed)
    step = GroupStep(input=INPUT.name, keys=keys, rows="row count", totals=totals)
    columns = [*((name, INPUT.column(name).type) for name in keys), ("row count", "bigint")]
    for total in totals:
        columns += [(total.total, SUM_TYPES[total.column]), (total.known, "bigint")]
    described = tuple(Column(name=name, type=kind, native=kind) for name, kind in columns)
    return step, Relation(name=RelationName(source="segments", name="group"), columns=described)


def grouped(step: GroupStep, rows: Counter[Row]) -> Counter[Row]:
    """Group plain rows in plain Python."""
    found: dict[Row, list[Any]] = {} if step.keys else {(): []}
    for row in rows.elements():
        named = dict(zip(INPUT.column_names, row, strict=True))
        found.setdefault(tuple(named[key] for key in step.keys), []).append(named)
    return Counter(
        (*key, len(members), *(number for total in step.totals for number in _total(members, total.column)))
        for key, members in found.items()
    )


def _total(members: list[Any], column: str) -> tuple[object, int]:
    values = [member[column] for member in members if member[column] is not None]
    with localcontext(prec=60):
        return sum(values, start=Decimal(0) if SUM_TYPES[column] != "bigint" else 0), len(values)


def check(history: History, step: GroupStep, relation: Relation, random: Random, run: Run, sql: str = "") -> None:
    old = counted(grouped(step, history.before), relation)
    sql = sql or group_law_sql(step, relation, "changes", "old_rows")
    given = run(sql, {"changes": history.changes(random), "old_rows": old})
    assert impossible_tick(step, given) is None
    last = len(history.ticks)
    check_every_tick(given, relation.column_names, lambda tick: grouped(step, history.at(tick)), last)


CASES = [
    group((), ()),
    group(("k",), ()),
    group(("k", "g"), ("x",)),
    group((), ("x", "d")),
    group(("g",), ("x", "d")),
    group(("k",), ("d", "w", "x")),
]


def check_many(run: Run, seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        step, relation = random.choice(CASES)
        check(random_history(random, 8), step, relation, random, run)


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
