"""Views whose answer depends on an order that they do not give in full, each with the order completed by hand.

The right-hand texts are DuckDB's, over the same tables: what Headwater says that the left-hand ones mean.
NULLs come first in them, unless they say otherwise.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from in_duckdb import relation

from headwater.model.relation import RelationName

E = relation("a", "e", id="int", day="int", val="string")
K = relation("a", "k", key=("id",), id="int!", day="int", val="string")
RELATIONS = (E, K)


class Tied(NamedTuple):
    """A view's text, and what it means, in DuckDB's SQL."""

    sql: str
    by_hand: str


TIED: dict[str, Tied] = {
    "newest row": Tied(
        "SELECT id, day, val FROM (SELECT e.id, e.day, e.val, "
        "row_number() OVER (PARTITION BY e.id ORDER BY e.day DESC) AS rn FROM a.e) AS q WHERE rn = 1",
        "SELECT id, day, val FROM (SELECT *, row_number() OVER "
        "(PARTITION BY id ORDER BY day DESC NULLS LAST, val) AS rn FROM a_e) q WHERE rn = 1",
    ),
    "order by and limit": Tied(
        "SELECT day, val FROM a.e ORDER BY id LIMIT 1",
        "SELECT day, val FROM a_e ORDER BY id, day, val LIMIT 1",
    ),
    "limit without order": Tied(
        "SELECT val, day FROM a.e LIMIT 2", "SELECT val, day FROM a_e ORDER BY val, day LIMIT 2"
    ),
    "offset in a query inside": Tied(
        "SELECT q.val, COUNT(*) AS n FROM (SELECT * FROM a.e ORDER BY day DESC LIMIT 3 OFFSET 1) AS q GROUP BY q.val",
        "SELECT val, COUNT(*) FROM (SELECT * FROM a_e ORDER BY day DESC NULLS LAST, id, val LIMIT 3 OFFSET 1) q "
        "GROUP BY val",
    ),
    "first rows under a linked value": Tied(
        "SELECT q.id, q.val, (SELECT COUNT(*) FROM a.k WHERE k.id = q.id) AS n "
        "FROM (SELECT * FROM a.e ORDER BY day DESC LIMIT 2) AS q",
        "SELECT id, val, (SELECT COUNT(*) FROM a_k k WHERE k.id = q.id) "
        "FROM (SELECT * FROM a_e ORDER BY day DESC NULLS LAST, id, val LIMIT 2) q",
    ),
    "limit of a union": Tied(
        "SELECT id, val FROM a.e UNION ALL SELECT id, val FROM a.k ORDER BY id LIMIT 2",
        "SELECT id, val FROM a_e UNION ALL SELECT id, val FROM a_k ORDER BY id, val LIMIT 2",
    ),
    "lag": Tied(
        "SELECT e.id, e.val, lag(e.val) OVER (PARTITION BY e.id ORDER BY e.day) AS before FROM a.e",
        "SELECT id, val, lag(val) OVER (PARTITION BY id ORDER BY day, val) FROM a_e",
    ),
    "lag of a column that orders nothing": Tied(
        "SELECT id, lag(day) OVER (PARTITION BY id ORDER BY id) AS before FROM a.e",
        "SELECT id, lag(day) OVER (PARTITION BY id ORDER BY day, val) FROM a_e",
    ),
    "rows": Tied(
        "SELECT id, SUM(day) OVER (PARTITION BY id ORDER BY val ROWS 1 PRECEDING) AS s FROM a.e",
        "SELECT id, SUM(day) OVER (PARTITION BY id ORDER BY val, day ROWS 1 PRECEDING) FROM a_e",
    ),
    "rows without an order": Tied(
        "SELECT id, COUNT(day) OVER (PARTITION BY id ROWS UNBOUNDED PRECEDING) AS n FROM a.e",
        "SELECT id, COUNT(day) OVER (PARTITION BY id ORDER BY day, val ROWS UNBOUNDED PRECEDING) FROM a_e",
    ),
    "no order at all": Tied(
        "SELECT id, val, row_number() OVER (PARTITION BY id) AS n FROM a.e",
        "SELECT id, val, row_number() OVER (PARTITION BY id ORDER BY day, val) FROM a_e",
    ),
    "first value": Tied(
        "SELECT id, day, first_value(val) OVER (PARTITION BY id ORDER BY day) AS f FROM a.e",
        "SELECT id, day, first_value(val) OVER (PARTITION BY id ORDER BY day, val) FROM a_e",
    ),
    "first value of all": Tied(
        "SELECT id, first_value(val) OVER (PARTITION BY id) AS f FROM a.e",
        "SELECT id, first_value(val) OVER (PARTITION BY id ORDER BY day, val) FROM a_e",
    ),
    "first value from here on": Tied(
        "SELECT id, day, first_value(val) OVER "
        "(PARTITION BY id ORDER BY day RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS f FROM a.e",
        "SELECT id, day, min(val) OVER (PARTITION BY id, day) FROM (SELECT id, day, val, bool_or(val IS NULL) OVER "
        "(PARTITION BY id, day) AS gap FROM a_e) q WHERE NOT gap UNION ALL SELECT id, day, NULL FROM (SELECT id, day, "
        "bool_or(val IS NULL) OVER (PARTITION BY id, day) AS gap FROM a_e) q WHERE gap",
    ),
    "last value so far": Tied(
        "SELECT id, day, last_value(val) OVER (PARTITION BY id ORDER BY day) AS l FROM a.e",
        "SELECT id, day, max(val) OVER (PARTITION BY id, day) FROM a_e",
    ),
    "last value of all": Tied(
        "SELECT id, last_value(val) OVER "
        "(PARTITION BY id ORDER BY day DESC RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM a.e",
        "SELECT id, first_value(val) OVER (PARTITION BY id ORDER BY day NULLS FIRST, val DESC NULLS LAST) FROM a_e",
    ),
    "second value so far": Tied(
        "SELECT id, day, nth_value(val, 2) OVER (PARTITION BY id ORDER BY day) AS s FROM a.e",
        "SELECT e.id, e.day, CASE WHEN (SELECT COUNT(*) FROM a_e o WHERE o.id IS NOT DISTINCT FROM e.id AND "
        "(o.day IS NULL OR o.day <= e.day)) > 1 THEN (SELECT val FROM a_e o WHERE o.id IS NOT DISTINCT FROM e.id "
        "ORDER BY day, val LIMIT 1 OFFSET 1) END FROM a_e e",
    ),
    "quarters": Tied(
        "SELECT id, val, ntile(2) OVER (ORDER BY val) AS q FROM a.e",
        "SELECT id, val, ntile(2) OVER (ORDER BY val, id, day) FROM a_e",
    ),
    "a named window": Tied(
        "SELECT id, lag(val) OVER w AS b, lead(val) OVER w AS a, rank() OVER w AS r FROM a.e "
        "WINDOW w AS (PARTITION BY id ORDER BY day)",
        "SELECT id, lag(val) OVER w, lead(val) OVER w, rank() OVER (PARTITION BY id ORDER BY day) FROM a_e "
        "WINDOW w AS (PARTITION BY id ORDER BY day, val)",
    ),
    "qualify over a join": Tied(
        "SELECT k.val, e.val AS other FROM a.k JOIN a.e ON e.id = k.id "
        "QUALIFY row_number() OVER (PARTITION BY k.day ORDER BY k.val DESC) = 1",
        "SELECT v, o FROM (SELECT k.val AS v, e.val AS o, row_number() OVER "
        "(PARTITION BY k.day ORDER BY k.val DESC NULLS LAST, k.id, k.day, e.id, e.day, e.val) AS rn "
        "FROM a_k k JOIN a_e e ON e.id = k.id) q WHERE rn = 1",
    ),
    "columns that nothing shows": Tied(
        "SELECT q.n FROM (SELECT x.day AS n, row_number() OVER (ORDER BY x.day) AS rn FROM "
        "(SELECT day % 2 AS day, val, id FROM a.e) AS x) AS q WHERE q.rn <= 2",
        "SELECT n FROM (SELECT day % 2 AS n, row_number() OVER (ORDER BY day % 2, val, id) AS rn FROM a_e) q "
        "WHERE rn <= 2",
    ),
    "an unshown column decides": Tied(
        "SELECT q.val FROM (SELECT val, row_number() OVER (PARTITION BY id) AS rn FROM a.e) AS q WHERE q.rn = 1",
        "SELECT val FROM (SELECT val, row_number() OVER (PARTITION BY id ORDER BY day, val) AS rn FROM a_e) q "
        "WHERE rn = 1",
    ),
    "rows in small letters": Tied(
        "select id, sum(day) over (partition by id order by val rows 1 preceding) as s from a.e",
        "SELECT id, SUM(day) OVER (PARTITION BY id ORDER BY val, day ROWS 1 PRECEDING) FROM a_e",
    ),
    "groups": Tied(
        "SELECT val, COUNT(*) AS n, row_number() OVER (ORDER BY COUNT(*) DESC) AS rn FROM a.e GROUP BY val",
        "SELECT val, n, row_number() OVER (ORDER BY n DESC, val) FROM (SELECT val, COUNT(*) AS n FROM a_e GROUP BY 1)",
    ),
    "groups that show no key": Tied(
        "SELECT n FROM (SELECT COUNT(*) AS n, SUM(day) AS s, row_number() OVER (ORDER BY SUM(day)) AS rn FROM a.e "
        "GROUP BY id, val) AS q WHERE rn <= 2",
        "SELECT n FROM (SELECT n, row_number() OVER (ORDER BY s, id, val) AS rn FROM "
        "(SELECT id, val, COUNT(*) AS n, SUM(day) AS s FROM a_e GROUP BY id, val)) WHERE rn <= 2",
    ),
    "totals": Tied(
        "SELECT val, COUNT(*) AS n, row_number() OVER (ORDER BY COUNT(*)) AS rn FROM a.e GROUP BY ROLLUP (val)",
        "SELECT val, n, row_number() OVER (ORDER BY n, val, g) FROM "
        "(SELECT val, GROUPING(val) AS g, COUNT(*) AS n FROM a_e GROUP BY ROLLUP (val))",
    ),
    "a key": Tied(
        "SELECT id, row_number() OVER (ORDER BY day DESC) AS rn, lag(val) OVER (PARTITION BY day) AS b FROM a.k",
        "SELECT id, row_number() OVER (ORDER BY day DESC NULLS LAST, id), lag(val) OVER (PARTITION BY day ORDER BY id) "
        "FROM a_k",
    ),
    "a query that is read twice": Tied(
        "WITH c AS (SELECT id, val FROM a.e ORDER BY day LIMIT 3) SELECT x.id, y.val FROM c AS x JOIN c AS y "
        "ON x.id = y.id",
        "WITH c AS MATERIALIZED (SELECT id, val FROM a_e ORDER BY day, id, val LIMIT 3) SELECT x.id, y.val "
        "FROM c AS x JOIN c AS y ON x.id = y.id",
    ),
    "distinct": Tied(
        "SELECT DISTINCT day, val FROM a.e ORDER BY val LIMIT 2",
        "SELECT DISTINCT day, val FROM a_e ORDER BY val, day LIMIT 2",
    ),
    "a limit in parentheses": Tied(
        "SELECT q.* FROM ((SELECT val, id FROM a.e) ORDER BY id DESC LIMIT 2) AS q",
        "SELECT val, id FROM a_e ORDER BY id DESC NULLS LAST, val LIMIT 2",
    ),
    "a value of the first row": Tied(
        "SELECT k.id, (SELECT e.val FROM a.e ORDER BY e.day LIMIT 1) AS v FROM a.k",
        "SELECT k.id, (SELECT e.val FROM a_e e ORDER BY e.day, e.val LIMIT 1) FROM a_k k",
    ),
    "groups by number and by name": Tied(
        "SELECT id AS i, day + 1 AS d, COUNT(*) AS n, row_number() OVER (ORDER BY COUNT(*)) AS r "
        "FROM a.e GROUP BY 1, d",
        "SELECT *, row_number() OVER (ORDER BY n, i, d) FROM "
        "(SELECT id AS i, day + 1 AS d, COUNT(*) AS n FROM a_e GROUP BY 1, 2)",
    ),
    "one group": Tied(
        "SELECT COUNT(*) AS n, row_number() OVER (ORDER BY COUNT(*)) AS rn FROM a.e", "SELECT COUNT(*), 1 FROM a_e"
    ),
    "rows that may be missing": Tied(
        "SELECT k.id, e.val, lead(e.day) OVER (PARTITION BY k.val ORDER BY e.val) AS d "
        "FROM a.k LEFT JOIN a.e ON e.id = k.id AND e.day > 1",
        "SELECT k.id, e.val, lead(e.day) OVER (PARTITION BY k.val ORDER BY e.val, k.id, k.day, e.id, e.day) "
        "FROM a_k k LEFT JOIN a_e e ON e.id = k.id AND e.day > 1",
    ),
    "a named list": Tied(
        "WITH c(p, q) AS (SELECT val, id FROM a.e) SELECT p, row_number() OVER (PARTITION BY q) AS rn FROM c",
        "SELECT val, row_number() OVER (PARTITION BY id ORDER BY val) FROM a_e",
    ),
    "a query without a name": Tied(
        "SELECT val, first_value(id) OVER (PARTITION BY val) AS f FROM (SELECT id, val FROM a.e WHERE day > 0)",
        "SELECT val, first_value(id) OVER (PARTITION BY val ORDER BY id) FROM a_e WHERE day > 0",
    ),
    "using": Tied(
        "SELECT id, row_number() OVER (ORDER BY k.day) AS rn FROM a.k JOIN a.e USING (id)",
        "SELECT k.id, row_number() OVER (ORDER BY k.day, k.id, e.day, e.val) FROM a_k k JOIN a_e e ON k.id = e.id",
    ),
}


def tied_rows(seed: int) -> dict[RelationName, list[tuple[object, ...]]]:
    """Return rows with many ties, NULLs and copies; some, as of none DuckDB gives a total and Spark does not."""
    chance = random.Random(seed)
    rows = [tied_row(chance, None) for _ in range(chance.randrange(1, 9))]
    rows += chance.sample(rows, len(rows) // 3)
    chance.shuffle(rows)
    return {E.name: rows, K.name: [tied_row(chance, number) for number in chance.sample(range(5), 4)]}


def tied_row(chance: random.Random, number: int | None) -> tuple[object, ...]:
    """Return a row; with its key, if it has one."""
    key = chance.choice((None, 1, 2)) if number is None else number
    return key, chance.choice((None, 1, 2)), chance.choice((None, "amy", "bob", "zed"))
