"""All rewritings are the definition of lineage: over the operands, the lineage views and the split lineage tables."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from in_duckdb import World
from keyed_cases import KEYED, keeping, keyed_rows, keyed_world
from lineage_cases import InMemory, Row, counted, lineage_by_row, segment_rows
from lineage_oracle import Derived, Interpreter
from random_views import Chance
from stamped_history import run_on_duckdb
from volume import volume

from headwater.engine.state.rewritings import Rewriting, cheapest
from headwater.engine.state.tick_lookup import Cost
from headwater.lineage.trace import trace
from headwater.model.keeping import LineageKind
from headwater.model.relation import RelationName
from headwater.views.steps.keep_lineage import without_lineage
from headwater.views.steps.recompute_step import RecomputeStep
from headwater.views.steps.segments import SegmentedView

SEEDS = volume(25, 3_000)


def traced(view: SegmentedView, selected: list[Row], reading: InMemory, cost: Cost) -> list[set[tuple[str, Row, int]]]:
    schema = view.output.relation.arrow_schema()
    columns = [pa.array([row[place] for row in selected], held.type) for place, held in enumerate(schema)]
    found = trace(view, pa.table(columns, schema=schema), reading, run_on_duckdb, without_lineage(view).relations, cost)
    return lineage_by_row(found, len(selected))


def defined(
    view: SegmentedView, derived: list[Derived], rows: Mapping[RelationName, list[tuple[Any, ...]]]
) -> dict[Row, set[tuple[str, Row, int]]]:
    """Return by row of the view what the interpreter says it derives from: of each row the columns that are shown."""
    shown: dict[str, list[Row]] = {}
    needed = without_lineage(view).relations
    for name, found in rows.items():
        places = [KEYED[str(name)].index(column) for column in needed.get(name, ())]
        shown[str(name)] = [tuple(row[place] for place in places) for row in found]
    expected: dict[Row, set[tuple[str, Row, int]]] = {}
    for one in derived:
        expected.setdefault(one.values, set()).update(
            (name, shown[name][place], shown[name].count(shown[name][place])) for name, place in one.lineage
        )
    return expected


def check(sql: str, rows: Mapping[RelationName, list[tuple[Any, ...]]], world: World) -> set[Rewriting]:
    """Trace all rows of a view in every way there is; return the ways that were really gone."""
    world.fill(rows)
    plain = world.compile(sql)
    if any(isinstance(segment.step, RecomputeStep) for segment in plain.segments):
        return set()
    view = keeping(plain, LineageKind.VIEW, LineageKind.SPLIT)
    derived = Interpreter(KEYED, {str(name): found for name, found in rows.items()}).run(sql)
    if not derived:
        return set()
    expected = defined(view, derived, rows)
    whole = {one.whole.name for one in view.lineage}
    split = {name for one in view.lineage for name in one.split.values()}
    base = {name: counted(world.catalog[name], found) for name, found in rows.items()}
    kept = {**base, **segment_rows(world, view)}
    gone: set[Rewriting] = set()
    for way, names in {
        Rewriting.OPERANDS: whole | split,
        Rewriting.SPLIT_LINEAGE: whole,
        Rewriting.LINEAGE_VIEW: split,
    }.items():
        reading = InMemory({name: found for name, found in kept.items() if name not in names})

        def cost(name: RelationName, _key_count: int, held: InMemory = reading) -> float | None:
            return (0.0 if name in whole | split else 1.0) if name in held.rows_of else None

        found = traced(view, list(expected), reading, cost)
        assert found == list(expected.values()), (way, sql, rows)
        asked = {one.relation for one in reading.requests}
        assert not asked & names
        gone |= {way} if asked & (whole | split) - names or way is Rewriting.OPERANDS else set()
    return gone


def test_oracle_all_rewritings_agree() -> None:
    world = keyed_world()
    gone = [
        check(chance.view(), keyed_rows(chance.rows()), world)
        for chance in (Chance(random=random.Random(seed)) for seed in range(SEEDS))
    ]
    for way in Rewriting:
        assert sum(way in one for one in gone) > SEEDS // 6, way


@pytest.mark.parametrize(
    ("costs", "chosen"),
    [
        ({"lineage": 1.0, "split": 1.0, "operand": 1.0}, Rewriting.LINEAGE_VIEW),
        ({"lineage": 3.0, "split": 1.0, "operand": 2.0}, Rewriting.SPLIT_LINEAGE),
        ({"lineage": 5.0, "split": 5.0, "operand": 2.0}, Rewriting.OPERANDS),
        ({"lineage": None, "split": 1.0, "operand": 2.0}, Rewriting.SPLIT_LINEAGE),
        ({"lineage": None, "split": None, "operand": 99.0}, Rewriting.OPERANDS),
    ],
)
def test_the_cheapest_is_taken(costs: dict[str, float | None], chosen: Rewriting) -> None:
    sql = "SELECT r.y AS y, s.w AS w FROM a.r AS r JOIN a.s AS s ON r.x = s.x"
    view = keeping(keyed_world().compile(sql), LineageKind.VIEW, LineageKind.SPLIT)
    [lineage] = view.lineage
    segments = {one.name: one for one in without_lineage(view).segments}

    def cost(name: RelationName, _key_count: int) -> float | None:
        return costs.get(name.name.partition("_")[0], costs["operand"])

    wanted = {alias: tuple(own) for alias, own in lineage.columns.items()}
    assert cheapest(lineage, wanted, 1, cost, segments) is chosen
    assert cheapest(lineage, {**wanted, "r": ("x", "z")}, 1, cost, segments) is Rewriting.OPERANDS, "z is not kept"
