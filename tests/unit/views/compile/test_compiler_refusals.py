"""What the compiler refuses: with a code, the place in the author's text, and what to do."""

from __future__ import annotations

import pytest
from in_duckdb import World, relation

from headwater.errors import HeadwaterError
from headwater.views.steps.recompute_step import RecomputeStep

REFUSED = (
    ("HW-207", "SELECT COUNT(*) AS n FROM (SELECT x AS p FROM a.r) q WHERE q.y = 1", "q.y"),
    ("HW-207", "SELECT x FROM a.r WHERE EXISTS (SELECT 1 FROM a.s WHERE s.x = r.nothing)", "r.nothing"),
    ("HW-207", "WITH q AS (SELECT x FROM a.r) SELECT COUNT(q.z) AS n FROM q", "q.z"),
    ("HW-208", "SELECT COUNT(x) AS n FROM a.r, a.s", "x"),
    ("HW-209", "SELECT COUNT(*) AS n FROM a.r AS q, (SELECT w FROM a.s) AS q", None),
    ("HW-204", "SELECT COUNT(*) AS n FROM q", "q"),
    ("HW-205", "SELECT COUNT(*) AS n FROM c.r", "c.r"),
    ("HW-206", "SELECT x FROM a.r UNION SELECT x FROM a.nothing", "a.nothing"),
    ("HW-210", "SELECT x, COUNT(*) AS x FROM a.r GROUP BY x", "COUNT(*) AS x"),
    ("HW-211", "SELECT x, COUNT(*) FROM a.r GROUP BY x", "COUNT(*)"),
    ("HW-212", "SELECT COUNT(*) AS _count FROM a.r", "COUNT(*) AS _count"),
    ("HW-218", "SELECT x, y FROM a.r GROUP BY x", "y"),
    ("HW-218", "SELECT x, COUNT(*) AS n FROM a.r", "x"),
    ("HW-233", "SELECT COUNT(*) AS n FROM a.r NATURAL JOIN a.s", None),
    ("HW-240", "SELECT COUNT(*) AS n FROM a.r WHERE x IN (SELECT CAST(rand() AS INT) FROM a.s)", "rand"),
    ("HW-241", "SELECT x, COLLECT_LIST(y) AS n FROM a.r GROUP BY x", "COLLECT_LIST(y)"),
    ("HW-241", "SELECT x, MEAN(y) AS n FROM a.r GROUP BY x", "MEAN(y)"),
    ("HW-241", "SELECT x, ANY_VALUE(y) AS n FROM a.r GROUP BY x", "ANY_VALUE(y)"),
    ("HW-241", "SELECT x, MAX_BY(y, z) AS n FROM a.r GROUP BY x", None),
    ("HW-243", "SELECT x, COUNT(r.*) AS n FROM a.r GROUP BY x", "r.*"),
    ("HW-244", "SELECT x FROM a.r UNION SELECT x, w FROM a.s", None),
    ("HW-290", "SELECT x FROM (SELECT x, y + 1 FROM a.r) AS q QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1", None),
    ("HW-290", "SELECT x, LAG(x) OVER (ORDER BY x) AS b FROM a.r, EXPLODE(ARRAY(1))", "LAG(x) OVER (ORDER BY x)"),
    (
        "HW-291",
        "SELECT x, LAST_VALUE(y) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS l FROM a.r",
        "LAST_VALUE(y) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
    ),
    (
        "HW-292",
        "SELECT x, LAG(y) OVER (ORDER BY x) AS b, SUM(y) OVER (ORDER BY y ROWS 1 PRECEDING) AS s FROM a.r",
        None,
    ),
)


@pytest.fixture(scope="module")
def world() -> World:
    return World([relation("a", "r", x="int", y="int", z="double"), relation("a", "s", x="int", w="int")])


@pytest.mark.parametrize(("code", "sql", "marked"), REFUSED, ids=[sql for _, sql, _ in REFUSED])
def test_a_refused_view_says_why_and_where(code: str, sql: str, marked: str | None, world: World) -> None:
    with pytest.raises(HeadwaterError) as caught:
        world.compile(sql)
    assert caught.value.code == code
    if marked is not None:
        line, marks = caught.value.detail.split("\n")[-2:]
        assert line[marks.index("^") : marks.rindex("^") + 1] == marked


@pytest.mark.parametrize(
    ("code", "sql"),
    [
        ("HW-274", "SELECT x, ARRAY(x, y) AS both FROM a.r ORDER BY x LIMIT 3"),
        ("HW-274", "SELECT x FROM a.r ORDER BY x OFFSET 3"),
        ("HW-264", "SELECT x, RANK() OVER (ORDER BY x) AS k FROM a.r"),
        ("HW-269", "SELECT x FROM a.r UNION BY NAME SELECT x FROM a.s"),
        ("HW-268", "SELECT x FROM a.r WHERE y > (SELECT SUM(w) FROM a.s WHERE s.x < r.x)"),
    ],
)
def test_a_strict_view_has_no_part_that_reads_all_rows(code: str, sql: str, world: World) -> None:
    assert code in {reason.code for reason in world.compile(sql).reasons}
    with pytest.raises(HeadwaterError, match="cannot be maintained") as caught:
        world.compile(sql, strict=True)
    assert caught.value.code == "HW-219"
    assert code in caught.value.detail


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x, MAX(z) AS n, COUNT(z) AS k FROM a.r GROUP BY x",
        "SELECT x, SUM(y) AS n, AVG(y) AS k, SUM(CAST(z AS DECIMAL(38, 6))) AS m FROM a.r GROUP BY x",
        "SELECT x, MEDIAN(y) AS n FROM a.r GROUP BY x",
        "SELECT x FROM a.r ORDER BY x LIMIT 3",
        "SELECT x, STDDEV(y) AS n FROM a.r GROUP BY x",
        "SELECT x, VAR_POP(z) OVER (PARTITION BY x) AS n FROM a.r",
        "SELECT x FROM a.s WHERE w > (SELECT CORR(z, y) FROM a.r WHERE r.x = s.x)",
    ],
)
def test_what_does_not_round_in_the_order_of_rows_is_not_recomputed(sql: str, world: World) -> None:
    assert not any(isinstance(segment.step, RecomputeStep) for segment in world.compile(sql).segments)


@pytest.mark.parametrize(
    ("sql", "why", "do"),
    [
        ("SELECT r.x, s.w FROM a.r LEFT SEMI JOIN a.s ON r.x = s.x", 'the name "s"', "SEMI or ANTI JOIN gives columns"),
        ("SELECT x, COUNT(*) AS n FROM a.r GROUP BY 5", "GROUP BY 5", "from 1 to 2"),
        ("WITH sums AS (SELECT x FROM a.r) SELECT x FROM sms", 'did you mean "sums"?', "source.table"),
        ("SELECT r.x FROM a.r ASOF JOIN a.s ON r.x = s.x", "ASOF JOIN", "QUALIFY"),
    ],
)
def test_a_refusal_says_what_to_write(sql: str, why: str, do: str, world: World) -> None:
    with pytest.raises(HeadwaterError) as caught:
        world.compile(sql)
    assert why in caught.value.detail
    assert do in caught.value.hint


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT x FROM a.r WHERE y > (SELECT SUM(w) FROM a.s WHERE s.x < r.x)", "r.x"),
        ("SELECT x FROM (SELECT x, y FROM a.r) WHERE y > (SELECT SUM(w) FROM a.s WHERE s.x < y)", "y"),
    ],
)
def test_a_reason_names_what_the_author_wrote(sql: str, named: str, world: World) -> None:
    [reason] = world.compile(sql).reasons
    assert reason.what.endswith(f"({named})")


@pytest.mark.parametrize(
    "sql", ['SELECT x FROM a.r WHERE "X" = 1', 'SELECT "x" FROM a.r', 'SELECT COUNT("x") AS n FROM a.r']
)
def test_a_column_in_double_quotes_would_be_a_text(sql: str, world: World) -> None:
    with pytest.raises(HeadwaterError, match="also the name of a column") as caught:
        world.compile(sql)
    assert caught.value.code == "HW-276"
