"""A view is the same as long as what it reads is: whatever else happens to its tables, its steps stay."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from in_duckdb import World, relation

from headwater.model.relation import Column, Relation
from headwater.views.steps.segment_names import shape

FILE = Path(__file__).with_name("compile") / "constructs.sql"
CONSTRUCTS = [
    sql
    for name, sql in re.findall(r"^-- (.+): .+\n(.+);$", FILE.read_text(), re.MULTILINE)
    if "after the list" not in name  # DuckDB, which types the texts here, has no WITH ROLLUP
]
CONSTRUCTS += [
    "WITH p AS (SELECT * FROM a.r), q AS (SELECT * FROM a.s) SELECT p.y, q.w FROM p LEFT JOIN q ON p.x = q.x",
    "SELECT r.y AS added, COUNT(*) AS n FROM a.r LEFT JOIN a.s ON r.x = s.x GROUP BY r.y ORDER BY n",
    "SELECT y, e FROM a.r LATERAL VIEW EXPLODE(ARRAY(x, y)) AS e",  # recomputed
]
RELATIONS = (
    relation("a", "r", x="int", y="int", z="int"),
    relation("a", "s", x="int", w="int"),
    relation("b", "u", key=("id",), id="int!", x="int"),
    relation("b", "t", y="int", w="int", k="int"),
)
ADDED = Column(name="added", type="string", native="text")
UNREAD = Column(name="unread", type="int", native="int4")

CHANGES: dict[str, Callable[[Relation], Relation]] = {
    "a column is added": lambda one: replace(one, columns=(*one.columns, ADDED)),
    "a column that nobody reads is dropped": lambda one: replace(
        one, columns=tuple(column for column in one.columns if column is not UNREAD)
    ),
    "columns have another order": lambda one: replace(one, columns=one.columns[::-1]),
    "types have other names": lambda one: replace(
        one, columns=tuple(replace(column, native="another") for column in one.columns)
    ),
    "statistics and indexes are others": lambda one: replace(
        one, row_estimate=10**9, indexes=((one.column_names[-1],),)
    ),
}


def shapes(world: World) -> dict[str, str]:
    return {sql: shape(world.compile(sql)) for sql in CONSTRUCTS if "*" not in sql.split("FROM")[0] or "COUNT" in sql}


@pytest.fixture(scope="module")
def before() -> dict[str, str]:
    return shapes(World([replace(one, columns=(UNREAD, *one.columns)) for one in RELATIONS]))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_view_is_the_same_whatever_else_changes(
    change: Callable[[Relation], Relation], before: dict[str, str]
) -> None:
    after = shapes(World([change(replace(one, columns=(UNREAD, *one.columns))) for one in RELATIONS]))
    assert len({digest for digest in before.values() if digest}) > len(before) / 2, "most are several steps"
    assert [sql for sql, digest in after.items() if before[sql] != digest] == []


def test_a_view_is_another_when_its_steps_rest_on_a_key_that_is_gone() -> None:
    sql = "SELECT x FROM a.r WHERE EXISTS (SELECT 1 FROM b.u WHERE u.id = r.x)"
    without = World([replace(one, key=(), not_null=frozenset()) for one in RELATIONS])
    assert shape(World(RELATIONS).compile(sql)) != shape(without.compile(sql))
