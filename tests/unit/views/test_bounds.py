"""No text is too much for the compiler: what is within the bounds is compiled, what is beyond is refused in words."""

from __future__ import annotations

import pytest
from in_duckdb import World, relation

from headwater.errors import HeadwaterError
from headwater.views.text import bounds
from headwater.views.text.upstream_views import ViewText, views_below

WORLD = World([relation("a", "r", x="int", y="int"), relation("a", "s", x="int")])


def chain(operator: str, term: str, length: int) -> str:
    return operator.join([term] * length)


def nested(opening: str, core: str, closing: str, depth: int) -> str:
    return opening * depth + core + closing * depth


def listed(size: int) -> str:
    return f"SELECT x, COUNT(*) AS n FROM a.r WHERE x IN ({', '.join(map(str, range(size)))}) GROUP BY x"


def any_of(length: int) -> str:
    return "SELECT y, COUNT(*) AS n FROM a.r WHERE " + " OR ".join(f"x = {n}" for n in range(length)) + " GROUP BY y"


TEXTS = {
    "values": (listed, bounds.VALUES, "put the values into a table"),
    "or": (any_of, bounds.DEPTH - 10, "IN \\(1, 2"),
    "and": (lambda n: f"SELECT x FROM a.r WHERE {chain(' AND ', 'x <> 1', n)}", bounds.DEPTH - 10, "IN \\(1, 2"),
    "sum": (lambda n: f"SELECT {chain(' + ', 'x', n)} AS y FROM a.r", bounds.DEPTH - 10, "IN \\(1, 2"),
    "union": (lambda n: chain(" UNION ALL ", "SELECT x FROM a.r", n), bounds.DEPTH - 10, "IN \\(1, 2"),
    "parentheses": (lambda n: f"SELECT {nested('(', 'x', ')', n)} AS y FROM a.r", bounds.NESTING, "WITH"),
    "calls": (lambda n: f"SELECT {nested('ABS(', 'x', ')', n)} AS y FROM a.r", bounds.NESTING, "WITH"),
    "case": (
        lambda n: f"SELECT {nested('CASE WHEN x = 1 THEN ', 'x', ' END', n)} AS y FROM a.r",
        bounds.NESTING,
        "WITH",
    ),
    "not": (lambda n: f"SELECT x FROM a.r WHERE {'NOT ' * n}(x = 1)", bounds.NESTING - 1, "WITH"),
    "types": (
        lambda n: f"SELECT x, CAST(NULL AS {nested('ARRAY<', 'INT', '>', n)}) AS y FROM a.r",
        bounds.NESTING - 1,
        "WITH",
    ),
    "queries in FROM": (
        lambda n: f"SELECT x FROM {nested('(SELECT x + 1 AS x FROM ', 'a.r', ')', n)}",
        bounds.NESTING - 2,
        "WITH",
    ),
    "queries in WHERE": (
        lambda n: f"SELECT x FROM a.r WHERE {nested('x IN (SELECT x FROM a.s WHERE ', 'x = 1', ')', n)}",
        bounds.NESTING,
        "WITH",
    ),
    "joins": (
        lambda n: "SELECT r.x FROM a.r" + "".join(f" JOIN a.s s{i} ON s{i}.x = r.x" for i in range(n)),
        bounds.JOINS,
        "several views",
    ),
    "doubled": (lambda n: f"SELECT x FROM {nested('(SELECT x + x AS x FROM ', 'a.r', ')', n)}", 8, "fewer times"),
}


@pytest.mark.parametrize(("text", "limit"), [found[:2] for found in TEXTS.values()], ids=TEXTS)
def test_what_is_within_the_bounds_is_compiled(text, limit: int) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    assert WORLD.compile(text(limit)).segments


@pytest.mark.parametrize(("text", "limit", "remedy"), TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("times", [2, 10])
def test_what_is_beyond_the_bounds_is_refused(text, limit: int, remedy: str, times: int) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    with pytest.raises(HeadwaterError, match=remedy) as caught:
        WORLD.compile(text(limit * times))
    assert caught.value.code == "HW-275"
    assert len(str(caught.value)) < 1_500, "the text itself is not printed"


def test_a_text_of_any_length_is_refused_before_it_is_read() -> None:
    with pytest.raises(HeadwaterError, match=r"2,000,0.. characters") as caught:
        WORLD.compile("SELECT x FROM a.r " + " " * 2_000_000)
    assert caught.value.code == "HW-275"


def test_many_views_upon_each_other() -> None:
    texts = {"v0": ViewText(name="v0", sql="SELECT x FROM a.r")}
    for number in range(1, 200):
        texts[f"v{number}"] = ViewText(name=f"v{number}", sql=f"SELECT x + 1 AS x FROM v{number - 1} GROUP BY x")
    below = views_below("v199", texts)
    assert len(below) == 199
    assert WORLD.compile("SELECT x FROM v50", lower=views_below("v51", texts)).segments
