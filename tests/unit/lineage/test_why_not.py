"""What keeps a row out of a view is named, whatever stands between."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest
from in_duckdb import World
from lineage_cases import InMemory, counted, new_world
from random_views import Chance
from stamped_history import run_on_duckdb
from volume import volume

from headwater.lineage.obstacles import Obstacle, ObstacleKind
from headwater.lineage.why_not import why_not
from headwater.model.relation import RelationName
from headwater.views.steps.segments import SegmentedView

SEEDS = volume(25, 1_000)
ROWS: Mapping[RelationName, list[tuple[object, ...]]] = {
    RelationName(source="a", name="r"): [(1, 10, 0), (1, 11, 0), (2, 20, 5), (3, 30, 0)],
    RelationName(source="a", name="s"): [(1, 7), (2, 8)],
    RelationName(source="b", name="t"): [(10, 7, 1)],
    RelationName(source="b", name="u"): [(1, 4), (2, None)],
}
JOIN = "SELECT r.x AS x, s.w AS w FROM a.r AS r JOIN a.s AS s ON r.x = s.x WHERE r.y > 10"
GROUP = "SELECT r.x AS x, SUM(r.y) AS total FROM a.r AS r GROUP BY r.x HAVING COUNT(*) > 1"
STRANGERS = "SELECT r.x AS x FROM a.r AS r WHERE NOT EXISTS (SELECT 1 FROM a.s AS s WHERE s.x = r.x)"
LEFT = "SELECT r.x AS x, s.w AS w FROM a.r AS r LEFT JOIN a.s AS s ON r.x = s.x"
EXTREMES = "SELECT r.x AS x, COUNT(*) AS n, MIN(r.y) AS low FROM a.r AS r GROUP BY r.x"
FIRST = "SELECT r.y AS y FROM a.r AS r ORDER BY r.y LIMIT 2"


@pytest.mark.parametrize(
    ("sql", "row", "kind", "text"),
    [
        (JOIN, {"x": 1, "w": 7}, None, ""),
        (JOIN, {"x": 9}, ObstacleKind.NO_ROW, "no row of a.r has x = 9"),
        (JOIN, {"x": 3}, ObstacleKind.NO_PARTNER, "no row of a.s has x = 3"),
        (JOIN, {"x": 1, "w": 8}, ObstacleKind.VALUE, "w is not 8 (with s.w = 7)"),
        (GROUP, {"x": 1, "total": 21}, None, ""),
        (GROUP, {"x": 9}, ObstacleKind.NO_ROW, "no row of a.r has x = 9"),
        (GROUP, {"x": 1, "total": 22}, ObstacleKind.VALUE, "total is not 22 (with total = 21)"),
        (GROUP, {"x": 2}, ObstacleKind.CONDITION, "not true: COUNT(*) > 1 (with COUNT(*) = 1)"),
        (STRANGERS, {"x": 3}, None, ""),
        (STRANGERS, {"x": 1}, ObstacleKind.TAKEN_AWAY, "there is a row that must not be there: one with s.x = r.x"),
        (LEFT, {"x": 3, "w": None}, None, ""),
        (LEFT, {"x": 1, "w": None}, ObstacleKind.VALUE, "s.w is not NULL (with s.w = 7)"),
        (FIRST, {"y": 30}, ObstacleKind.NOT_FIRST, "it is at place 4, the first 2 are shown"),
        (FIRST, {"y": 31}, ObstacleKind.NO_ROW, "no row of a.r has y = 31"),
        (f"{FIRST} OFFSET 1", {"y": 10}, ObstacleKind.NOT_FIRST, "it is at place 1, places 2 to 3 are shown"),
        (
            FIRST.replace("LIMIT 2", "LIMIT 1"),
            {"y": 30},
            ObstacleKind.NOT_FIRST,
            "it is at place 4, only the first is shown",
        ),
        (EXTREMES, {"x": 2, "n": 9}, ObstacleKind.VALUE, "there is another value: n = 1"),
        (f"{EXTREMES} HAVING COUNT(*) > 1", {"x": 2}, ObstacleKind.CONDITION, "not true: n > 1 (with n = 1)"),
        (
            f"{EXTREMES} HAVING SUM(r.z) > 9",
            {"x": 2},
            ObstacleKind.CONDITION,
            "not true: SUM(r.z) > 9 (with SUM(r.z) = 5 and COUNT(r.z) = 1)",
        ),
    ],
)
def test_the_first_obstacle_is_named(sql: str, row: dict[str, Any], kind: ObstacleKind | None, text: str) -> None:
    world = new_world()
    view = world.compile(sql)
    found = obstacles(world, view, ROWS, row)
    assert [(one.kind, one.text) for one in found[:1]] == ([] if kind is None else [(kind, text)])


def test_where_a_condition_fails_the_values_are_shown() -> None:
    world = new_world()
    [found] = obstacles(world, world.compile(f"{JOIN} AND s.w > 7"), ROWS, {"x": 1})
    assert found.text == "not true: s.w > 7 (with s.w = 7)"


def test_every_way_to_a_row_has_its_obstacle() -> None:
    world = new_world()
    view = world.compile("SELECT r.x AS x FROM a.r AS r UNION ALL SELECT s.w AS w FROM a.s AS s WHERE s.w < 8")
    assert [one.text for one in obstacles(world, view, ROWS, {"x": 8})] == [
        "no row of a.r has x = 8",
        "not true: s.w < 8 (with s.w = 8)",
    ]


def test_oracle_a_row_has_an_obstacle_exactly_if_it_is_not_there() -> None:
    world = new_world()
    there, absent = 0, 0
    for seed in range(SEEDS):
        chance = Chance(random=random.Random(seed))
        sql, rows = chance.view(), chance.rows()
        world.fill(rows)
        view = world.compile(sql)
        state = set(world.original(sql))
        width = len(view.output_names)
        tried = [
            *sorted(state, key=repr)[:2],
            *(tuple(chance.random.choice((None, 0, 1, 2, 3)) for _ in range(width)),),
        ]
        for row in tried:
            named = dict(zip(view.output_names, row, strict=True))
            assert (not obstacles(world, view, rows, named)) == (row in state), (sql, rows, row)
            there += row in state
            absent += row not in state
    assert min(there, absent) > SEEDS / 3


def obstacles(
    world: World,
    view: SegmentedView,
    rows: Mapping[RelationName, list[tuple[object, ...]]],
    row: Mapping[str, Any],
) -> tuple[Obstacle, ...]:
    base = {name: counted(world.catalog[name], found) for name, found in rows.items()}
    columns = [pa.array([row[name]]).cast(view.output.relation.column(name).arrow_field.type) for name in row]
    given = pa.table(columns, names=list(row))
    return why_not(view, given, InMemory(base), run_on_duckdb, lambda value: "NULL" if value is None else str(value))
