"""View rows found forward from a source row are exactly those whose lineage has it, for views by chance."""

from __future__ import annotations

import random

import pyarrow as pa
from in_duckdb import World
from lineage_cases import InMemory, counted, new_world, traced_rows
from lineage_oracle import Interpreter
from random_views import RELATIONS, Chance
from stamped_history import run_on_duckdb
from volume import volume

from headwater.engine.state.segment_rows import SegmentRows
from headwater.lineage.forward import deriving, may_derive
from headwater.model.relation import TICK, RelationName
from headwater.views.steps.recompute_step import RecomputeStep

SEEDS = volume(12, 1_500)


def test_oracle_what_derives_from_a_source_row() -> None:
    world = new_world()
    found = sum(check(Chance(random=random.Random(seed)), world) for seed in range(SEEDS))
    assert found > SEEDS / 6


def check(chance: Chance, world: World) -> int:
    sql, rows = chance.view(), chance.rows()
    world.fill(rows)
    view = world.compile(sql)
    if any(isinstance(segment.step, RecomputeStep) for segment in view.segments):
        return 0
    base = {name: counted(world.catalog[name], own) for name, own in rows.items()}
    relation = chance.random.choice(sorted(view.relations))
    if not rows[relation]:
        return 0
    row = chance.random.choice(rows[relation])
    derived = Interpreter(RELATIONS, {str(name): own for name, own in rows.items()}).run(sql)
    expected = {one.values for one in derived if any(_is(source, row, relation, rows) for source in one.lineage)}
    marked = counted(world.catalog[relation], [row]).drop_columns([TICK])
    wanted = {name: world.catalog[name].column_names for name in view.relations}
    reading = InMemory(base)
    candidates = may_derive(view, SegmentRows(view, reading, run_on_duckdb, wanted), relation, marked)
    state = world.original(sql)
    possible = [one for one in dict.fromkeys(_rows(candidates)) if one in state]
    assert expected <= set(possible), (sql, rows, relation, row)
    traced = traced_rows(view, possible, reading, world.catalog)
    places = deriving(traced, len(possible), relation, marked, run_on_duckdb)
    assert {possible[place] for place in places} == expected, (sql, rows, relation, row)
    return len(expected)


def _is(
    source: tuple[str, int],
    row: tuple[object, ...],
    relation: RelationName,
    rows: dict[RelationName, list[tuple[object, ...]]],
) -> bool:
    return source[0] == str(relation) and rows[relation][source[1]] == row


def _rows(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
