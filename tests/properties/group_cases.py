"""Groups of several shapes, and their law checked against grouping in plain Python, at every tick."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, localcontext
from random import Random
from typing import Any

from stamped_history import INPUT, History, Run, check_every_tick, counted, random_history

from headwater.model.relation import Column, Relation, SegmentName
from headwater.views.laws.group import group_law_sql, impossible_tick
from headwater.views.steps.group_step import GroupStep, Total
from headwater_lab.in_memory.bag import Row

SUM_TYPES = {"x": "bigint", "d": "decimal(22,2)", "w": "decimal(38,18)"}


def group(keys: tuple[str, ...], summed: tuple[str, ...]) -> tuple[GroupStep, Relation]:
    totals = tuple(Total(column=name, total=f"total_{name}", known=f"known_{name}") for name in summed)
    step = GroupStep(input=INPUT.name, keys=keys, rows="row count", totals=totals)
    columns = [*((name, INPUT.column(name).type) for name in keys), ("row count", "bigint")]
    for total in totals:
        columns += [(total.total, SUM_TYPES[total.column]), (total.known, "bigint")]
    described = tuple(Column(name=name, type=kind, native=kind) for name, kind in columns)
    return step, Relation(name=SegmentName(name="group"), columns=described)


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
