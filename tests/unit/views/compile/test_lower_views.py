"""Views over views: what the compiler makes of them gives what DuckDB gives when the lower ones are views there."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import duckdb
import pytest
from in_duckdb import World, in_duckdb, relation
from random_views import RELATIONS, Chance

from headwater.errors import HeadwaterError
from headwater.views.laws.join import renamed_sql
from headwater.views.steps.join_step import JoinStep
from headwater.views.steps.recompute_step import RecomputeStep
from headwater.views.steps.segments import SegmentedView
from headwater.views.text.upstream_views import ViewText, views_below

VIEWS = 60

InViews = Callable[[Mapping[str, ViewText], str], None]

PROFITS = "SELECT s.x, SUM(s.w) AS profit, COUNT(*) AS sold, SUM(s.w * s.x) AS more FROM a.s GROUP BY s.x"


@pytest.fixture(scope="module")
def world() -> World:
    return World(
        [
            relation("a", "r", x="int", y="int", z="int"),
            relation("a", "s", x="int", w="int"),
            relation("b", "t", y="int", w="int", k="int"),
            relation("b", "u", key=("id",), id="int!", x="int"),
        ]
    )


def named(**texts: str) -> dict[str, ViewText]:
    return {name: ViewText(name=name, sql=sql, path=f"views/{name}.sql") for name, sql in texts.items()}


def compiled(world: World, texts: Mapping[str, ViewText], name: str) -> SegmentedView:
    return world.compile(texts[name].sql, name=name, lower=views_below(name, texts))


def hidden(view: SegmentedView) -> set[str]:
    return {segment.name.name for segment in view.segments[:-1]}


@pytest.fixture
def in_views(world: World) -> Iterator[InViews]:
    """Let DuckDB itself find the lower views by their names."""
    made: list[str] = []

    def make(texts: Mapping[str, ViewText], name: str) -> None:
        for text in views_below(name, texts):
            world.connection.execute(f"CREATE VIEW {text.name} AS {in_duckdb(renamed_sql(text.sql, world.tables))}")
            made.append(text.name)

    yield make
    for name in reversed(made):
        world.connection.execute(f"DROP VIEW {name}")


@pytest.mark.parametrize("seed", range(VIEWS))
def test_oracle_random_views_over_random_views(seed: int, world: World, in_views: InViews) -> None:
    chance = Chance(random=random.Random(seed))
    texts: dict[str, ViewText] = {}
    for place in range(3):
        sql, columns = chance.query(1, ())
        name = f"view{place}"
        texts[name] = ViewText(name=name, sql=sql)
        chance.tables[name] = columns
        if place == 1:
            chance.tables = {name: columns for name, columns in chance.tables.items() if name not in RELATIONS}
    try:
        in_views(texts, name)
        view = compiled(world, texts, name)
        for _ in range(3):
            world.fill(chance.rows())
            assert world.evaluate(view) == world.original(texts[name].sql), texts
    except duckdb.Error as error:
        pytest.skip(f"DuckDB does not run it: {str(error)[:80]}")


def test_whole_text_gives_what_views_give(world: World, in_views: InViews) -> None:
    """Spark runs this one; here it is DuckDB, which can run less inside WITH."""
    texts = named(
        profits="WITH q AS (SELECT * FROM a.s) " + PROFITS.replace("a.s", "q AS s") + " -- all of them\n;",
        rich="SELECT p.x, p.profit FROM Profits p WHERE p.profit > 2",
        both="WITH q AS (SELECT x FROM rich) SELECT q.x, p.sold FROM q JOIN profits p ON p.x = q.x;",
    )
    in_views(texts, "both")
    view = compiled(world, texts, "both")
    chance = Chance(random=random.Random(5))
    for _ in range(6):
        world.fill(chance.rows())
        rows = world.connection.execute(in_duckdb(renamed_sql(view.whole, world.tables))).fetchall()
        assert Counter(rows) == world.original(texts["both"].sql) == world.evaluate(view)


def test_a_lower_view_of_any_guarantee_is_only_its_text(world: World) -> None:
    texts = named(profits=PROFITS, high="SELECT p.x FROM Profits AS p JOIN a.r ON r.x = p.x WHERE p.profit > r.y")
    view = compiled(world, texts, "high")
    assert {str(name) for name in view.relations} == {"a.r", "a.s"}
    assert [segment.origin for segment in view.segments] == ["profits", "profits", ""]


def test_what_is_made_of_a_lower_view_is_that_view_s_own_segment(world: World) -> None:
    """Though the upper view needs fewer columns of it, and names it several times."""
    texts = named(
        profits=PROFITS,
        high="SELECT p.x FROM profits AS p WHERE p.profit > 3",
        best="SELECT p.x FROM profits p WHERE p.profit = (SELECT MAX(q.profit) FROM profits q)",
        apart="SELECT q.x FROM (SELECT s.x, SUM(s.w) AS profit FROM a.s GROUP BY s.x) q WHERE q.profit > 3",
    )
    lower = hidden(compiled(world, texts, "profits"))
    assert hidden(compiled(world, texts, "high")) == lower
    assert hidden(compiled(world, texts, "best")) > lower
    assert not hidden(compiled(world, texts, "apart")) & lower, "it needs other columns"


def test_segments_that_mean_the_same_have_one_name_in_any_view(world: World) -> None:
    by_x = "SELECT s.x, COUNT(*) AS n FROM a.s GROUP BY s.x"
    one = world.compile(f"SELECT q.n, r.y FROM ({by_x}) AS q JOIN a.r ON q.x = r.x", name="one")
    other = world.compile(
        f"SELECT SUM(q.n * q.x) AS k FROM ({by_x.replace('s.', 'tt.').replace('a.s', 'a.s AS tt')}) q"
    )
    shared = hidden(one) & hidden(other)
    assert sorted(name.partition("_")[0] for name in shared) == ["group", "selection"]
    assert not hidden(one) & hidden(world.compile(by_x.replace("COUNT(*)", "SUM(s.w)")))


def test_a_segment_that_prunes_to_another_is_that_one(world: World) -> None:
    view = world.compile(
        "SELECT x FROM a.r WHERE y IN (SELECT w FROM a.s WHERE x > 1) AND z IN (SELECT w FROM a.s WHERE x > 1)"
    )
    names = [segment.name for segment in view.segments]
    assert len(set(names)) == len(names)


def test_with_comes_before_a_view_of_that_name(world: World) -> None:
    texts = named(profits=PROFITS, own="WITH profits AS (SELECT r.x FROM a.r) SELECT COUNT(p.x) AS n FROM profits p")
    assert views_below("own", texts) == ()
    assert {str(name) for name in compiled(world, texts, "own").relations} == {"a.r"}


def test_what_cannot_follow_changes_is_recomputed_from_relations(world: World) -> None:
    texts = named(
        profits=PROFITS + ";",
        later="SELECT p.x, (SELECT MAX(q.profit) FROM profits q WHERE q.x > p.x) AS most FROM profits p",
    )
    view = compiled(world, texts, "later")
    assert isinstance(view.output.step, RecomputeStep)
    assert all(isinstance(segment.step, JoinStep) for segment in view.segments[:-1])
    world.fill(Chance(random=random.Random(3)).rows())
    assert sum(world.evaluate(view).values()) == sum(world.original(PROFITS).values())


@pytest.mark.parametrize(
    ("texts", "name", "code", "marked"),
    [
        (named(a="SELECT x FROM a"), "a", "HW-235", "a"),
        (named(a="SELECT x FROM b", b="SELECT x FROM c", c="SELECT x FROM A"), "a", "HW-235", "A"),
        (named(a="SELECT COUNT(*) AS n FROM profit"), "a", "HW-204", "profit"),
        (named(a="SELECT COUNT(b.z) AS n FROM b", b="SELECT x FROM a.r"), "a", "HW-207", "b.z"),
    ],
)
def test_circles_and_unknown_names_are_refused(
    texts: dict[str, ViewText], name: str, code: str, marked: str, world: World
) -> None:
    with pytest.raises(HeadwaterError) as caught:
        compiled(world, texts, name)
    assert caught.value.code == code
    assert caught.value.hint
    line, marks = caught.value.detail.split("\n")[-2:]
    assert line[marks.index("^") : marks.rindex("^") + 1] == marked
