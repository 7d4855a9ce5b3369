"""Differential: the old rows of a segment are the same whether they are kept or computed, whatever is looked up."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from in_duckdb import World
from keyed_cases import keeping, keyed_rows, keyed_world
from lineage_cases import InMemory, counted, new_world, segment_rows
from random_views import Chance
from stamped_history import run_on_duckdb
from volume import volume

from headwater.deltas.compare import Row
from headwater.deltas.lookup import RowRequest, look_up, restricted
from headwater.deltas.on_arrow import ArrowKeys
from headwater.engine.state.computed_segment import ComputedSegment
from headwater.engine.state.rewritings import Lineages
from headwater.engine.state.segment_reader import SegmentReader
from headwater.engine.state.segment_rows import SegmentRows
from headwater.model.keeping import LineageKind, TheseGroupTables
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation, RelationName
from headwater.views.steps.group_tables import computed_segments, keep_group_tables
from headwater.views.steps.keep_lineage import without_lineage
from headwater.views.steps.lookups import lookups

SEEDS = volume(10, 3_000)
VALUES = (None, 0, 1, 2, 3, 9)


def random_keys(chance: random.Random, relation: Relation, columns: Sequence[str]) -> pa.Table:
    count = chance.choice((0, 1, 2, 4))
    schema = relation.arrow_schema(tuple(columns))
    drawn = [pa.array([chance.choice(VALUES) for _ in range(count)], pa.int64()).cast(one.type) for one in schema]
    return pa.table(drawn, schema=schema)


def found(rows: pa.Table) -> list[Row]:
    return sorted(zip(*(column.to_pylist() for column in rows.columns), strict=True), key=repr)


def compare(
    sql: str, rows: Mapping[RelationName, list[Row]], world: World, chance: random.Random, *kinds: LineageKind
) -> tuple[set[RelationName], set[RelationName]]:
    """Look keys up in kept and in computed segments of a view that may keep lineage.

    Return the segments that were computed, and all that was read.
    """
    world.fill(rows)
    view = world.compile(sql)
    held = segment_rows(world, view)
    without = keep_group_tables(view, TheseGroupTables(()))
    traceable = keeping(without, *kinds)
    base = {name: counted(world.catalog[name], found) for name, found in rows.items()}
    there = segment_rows(world, traceable)
    reading = InMemory({**base, **{name: there[name] for name in there if name != view.output.name}})
    lineages = Lineages(kept={one.of: one for one in traceable.lineage}, cost=reading.cost)
    plain = without_lineage(traceable)
    computing = SegmentRows(plain, reading, run_on_duckdb, plain.relations, lineages)
    for name in computed_segments(plain):
        relation = computing.segments[name].relation
        if any(not kind.type.startswith(("int", "bigint", "decimal")) for kind in relation.columns):
            continue
        kept = SegmentReader.of_parts(relation, [held[name].drop_columns([TICK])], Tick(7))
        computed = ComputedSegment(relation=relation, tick=Tick(7), rows=computing)
        for columns in [*lookups(view.segments)[name]] * 3:
            keys = random_keys(chance, relation, columns)
            wanted = tuple(dict.fromkeys((*columns, relation.column_names[-1])))
            request = RowRequest(relation=name, wanted=wanted, within=restricted(columns, ArrowKeys(keys)))
            right, seen = (look_up(one, request).rows.table for one in (kept, computed))
            assert found(seen) == found(right), (sql, rows, name, keys.to_pylist())
            assert seen.column_names == [*wanted, TICK, COUNT]
    return set(computed_segments(without)), {request.relation for request in reading.requests}


def test_differential_computed_rows_are_the_kept_ones() -> None:
    world, count = new_world(), 0
    for seed in range(SEEDS):
        drawn = Chance(random=random.Random(seed))
        computed, _ = compare(drawn.view(), drawn.rows(), world, drawn.random)
        count += len(computed)
    assert count > SEEDS // 2


@pytest.mark.parametrize("kind", list(LineageKind))
def test_differential_computed_rows_are_the_kept_ones_by_lineage(kind: LineageKind) -> None:
    """What is kept of a join's lineage is read instead of its operands."""
    world, count = keyed_world(), 0
    for seed in range(SEEDS):
        drawn = Chance(random=random.Random(seed))
        _, read = compare(drawn.view(), keyed_rows(drawn.rows()), world, drawn.random, kind)
        count += any(name.name.startswith(("lineage_", "split_")) for name in read)
    assert count > SEEDS // 10


def test_no_group_is_computed_twice() -> None:
    world = new_world()
    view = keep_group_tables(world.compile("SELECT x, COUNT(*) AS n FROM a.r GROUP BY x"), TheseGroupTables(()))
    [name] = computed_segments(view)
    rows = counted(world.catalog[next(iter(view.relations))], [(1, 2, 3), (1, 2, 4), (2, 0, 0), (None, 1, 1)])
    reading = InMemory(dict.fromkeys(view.relations, rows))
    computing = SegmentRows(view, reading, run_on_duckdb, view.relations)
    computed = ComputedSegment(relation=computing.segments[name].relation, tick=Tick(4), rows=computing)
    [key] = next(iter(lookups(view.segments)[name]))

    def asked(*values: int | None) -> list[object]:
        """Return the numbers of rows of some groups."""
        keys = pa.table({key: pa.array(values, pa.int32())})
        request = RowRequest(relation=name, wanted=(key, "rows"), within=restricted((key,), ArrowKeys(keys)))
        return sorted(look_up(computed, request).rows.table["rows"].to_pylist())

    assert asked(1, 2) == [1, 2]
    before = len(reading.requests)
    assert asked(2, 1) == [1, 2]
    assert asked(1) == [2]
    assert len(reading.requests) == before, "everything was known"
    assert asked(1, 5, None) == [1, 2]
    wished = [one.within.keys.table.column(0).to_pylist() for one in reading.requests[before:] if one.within]
    assert [values for values in wished if 1 in values] == [], "what was known is not asked for again"
