"""Each construct: the steps it becomes, and that they give what the original SQL gives."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from in_duckdb import World, relation
from random_views import Chance

from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.segments import SegmentedView

FILE = Path(__file__).with_name("constructs.sql")
CONSTRUCTS = re.findall(r"^-- (.+): (.+)\n(.+);$", FILE.read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def world() -> World:
    return World(
        [
            relation("a", "r", x="int", y="int", z="int"),
            relation("a", "s", x="int", w="int"),
            relation("b", "u", key=("id",), id="int!", x="int"),
            relation("b", "t", y="int", w="int", k="int"),
        ]
    )


def steps(view: SegmentedView) -> str:
    return " ".join(type(s.step).__name__.removesuffix("Step") + "*" * s.is_kept for s in view.segments)


# Where it is unknown whether a value is among others, DuckDB says NULL, Spark FALSE; GROUP BY y, x GROUPING SETS is
# Spark's own, and so is WITH ROLLUP; in ORDER BY, DuckDB finds columns before outputs where it calculates with them.
IN_BOTH = [
    found
    for found in CONSTRUCTS
    if not re.search("membership as a value|sets of a list|after the list|called as well", found[0])
]


@pytest.mark.parametrize(("expected", "sql"), [found[1:] for found in IN_BOTH], ids=[name for name, *_ in IN_BOTH])
def test_a_construct_becomes_steps_that_give_what_it_gives(expected: str, sql: str, world: World) -> None:
    view = world.compile(sql)
    if expected != "...":
        assert steps(view) == expected
    chance = Chance(random=random.Random(7))
    for _ in range(6):
        rows = chance.rows()
        if re.search("ROLLUP|CUBE|GROUPING SETS", sql) and not next(iter(rows.values())):
            continue  # over no rows at all Spark gives none, and DuckDB the grand total
        world.fill(rows)
        assert world.evaluate(view) == world.original(sql)


def test_a_plain_join_is_one_step_in_its_authors_words(world: World) -> None:
    sql = "SELECT r.x, s.w FROM a.r JOIN a.s ON r.x = s.x WHERE r.y > 0"
    view = world.compile(sql)
    assert view.only_join is not None
    assert view.only_join.sql == (
        "SELECT `r`.`x` AS `x`, `s`.`w` AS `w` FROM `a`.`r` AS `r`, `a`.`s` AS `s` "
        "WHERE (`r`.`x` = `s`.`x`) AND (`r`.`y` > 0)"
    )
    assert [occurrence.alias for occurrence in view.only_join.occurrences] == ["r", "s"]


def test_only_needed_columns_are_kept(world: World) -> None:
    view = world.compile("SELECT n FROM (SELECT x, y, COUNT(*) AS n, SUM(z) AS s FROM a.r GROUP BY x, y) q")
    assert [segment.relation.column_names for segment in view.segments] == [("c0", "c1"), ("c0", "c1", "rows"), ("n",)]
    assert {str(name): columns for name, columns in view.relations.items()} == {"a.r": ("x", "y")}


def test_what_alternatives_have_in_common_joins(world: World) -> None:
    view = world.compile("SELECT COUNT(*) AS n FROM a.r, a.s WHERE (r.x = s.x AND r.y = 1) OR (r.x = s.x AND s.w = 2)")
    [join] = [s.step.view for s in view.segments if isinstance(s.step, JoinStep) and len(s.step.view.occurrences) > 1]
    assert [edge.pairs for edge in join.edges] == [(("x", "x"),)]


def test_a_plain_join_joins_by_what_alternatives_have_in_common(world: World) -> None:
    join = world.compile("SELECT r.y FROM a.r, a.s WHERE (r.x = s.x AND r.y = 1) OR (r.x = s.x AND s.w = 2)").only_join
    assert join is not None
    assert [(edge.left, edge.right, edge.pairs) for edge in join.edges] == [("r", "s", (("x", "x"),))]


@pytest.mark.parametrize(
    ("sql", "aliases"),
    [
        ("SELECT p.x FROM a.r AS p JOIN a.s AS Q ON p.x = q.x", ["p", "Q"]),
        ("SELECT x FROM a.r ORDER BY y", ["r"]),
        ("SELECT p.x FROM a.r AS p LEFT SEMI JOIN b.u AS q ON p.x = q.id", ["o2", "o3"]),
        ("SELECT p.x FROM (SELECT x FROM a.r) AS p", ["o3"]),
    ],
)
def test_relations_of_the_views_own_from_go_by_their_aliases(sql: str, aliases: list[str], world: World) -> None:
    join = world.compile(sql).only_join
    assert join is not None
    assert [occurrence.alias for occurrence in join.occurrences] == aliases


def test_what_a_select_writes_out_may_be_large(world: World) -> None:
    branches = " ".join(f"WHEN r.x = {number} THEN r.y" for number in range(3000))
    assert world.compile(f"SELECT CASE {branches} END AS found FROM a.r").only_join is not None


def test_what_grows_too_deep_is_recomputed(world: World) -> None:
    inner = "SELECT ABS(ABS(ABS(x))) AS x, x AS y FROM "
    text = f"SELECT x FROM {f'({inner}' * 40}a.r{')' * 40}"
    assert [reason.code for reason in world.compile(text).reasons] == ["HW-280"]
