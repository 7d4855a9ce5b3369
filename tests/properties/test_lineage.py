"""Traced rows are those of the definition, for views by chance, with segments kept or not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

from in_duckdb import World
from lineage_cases import InMemory, counted, lineage_by_row, new_world, segment_rows, traced_rows
from lineage_oracle import Interpreter
from random_views import RELATIONS, Chance
from volume import volume

from headwater.model.relation import RelationName
from headwater.views.steps.recompute_step import RecomputeStep

SEEDS = volume(25, 3_000)


def check(sql: str, rows: Mapping[RelationName, list[tuple[object, ...]]], world: World) -> int:
    world.fill(rows)
    view = world.compile(sql)
    if any(isinstance(segment.step, RecomputeStep) for segment in view.segments):
        return 0
    derived = Interpreter(RELATIONS, {str(name): found for name, found in rows.items()}).run(sql)
    assert Counter(one.values for one in derived) == world.original(sql), "the interpreter is right"
    if not derived:
        return 0
    expected: dict[tuple[object, ...], set[object]] = {}
    for one in derived:
        expected.setdefault(one.values, set()).update(
            (name, tuple(rows[_name(name)][place]), rows[_name(name)].count(rows[_name(name)][place]))
            for name, place in one.lineage
        )
    selected = list(expected)
    base = {name: counted(world.catalog[name], found) for name, found in rows.items()}
    for kept in ({}, segment_rows(world, view)):
        traced = traced_rows(view, selected, InMemory({**base, **kept}), world.catalog)
        found = lineage_by_row(traced, len(selected))
        for row, own in zip(selected, found, strict=True):
            assert own == expected[row], (sql, rows, row)
    return len(selected)


def _name(text: str) -> RelationName:
    source, name = text.split(".")
    return RelationName(source=source, name=name)


def test_oracle_traced_rows_are_those_of_the_definition() -> None:
    world = new_world()
    traced = 0
    for seed in range(SEEDS):
        chance = Chance(random=random.Random(seed))
        traced += check(chance.view(), chance.rows(), world)
    assert traced > SEEDS // 2
