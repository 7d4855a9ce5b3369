"""Every way a view is refused: its code, the place it marks, and what it says to do."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from headwater.errors import HeadwaterError, InvalidView, UnsupportedView
from headwater.model.relation import Column, Relation, RelationName
from headwater.views.compile.compile_view import compile_view
from headwater.views.steps.segments import SegmentedView
from headwater.views.text import support
from headwater.views.text.declaration import relations_named
from headwater.views.text.support import REASONS

Catalog = Mapping[RelationName, Relation]

# (code, SQL, what is underlined; empty where the text has no one place to blame)
REFUSED = (
    ("HW-201", "SELECT id FROM crm.customers WHERE", "WHERE"),
    ("HW-201", "SELECT id name extra FROM crm.customers", "extra"),
    ("HW-201", "SELECT 'open FROM crm.customers", "'open FROM crm.customers"),
    ("HW-201", "SELECT /* open FROM crm.customers", ""),
    ("HW-201", "-- nothing here", ""),
    ("HW-202", "SELECT id FROM crm.customers; SELECT no FROM shop.sales", "no FROM shop.sales"),
    ("HW-203", "INSERT INTO crm.customers VALUES (1)", "crm.customers VALUES (1)"),
    ("HW-203", "CREATE VIEW v AS SELECT id FROM crm.customers", "v AS SELECT id FROM crm.customers"),
    ("HW-203", "SELEC id", "SELEC id"),
    ("HW-204", "SELECT id FROM customers", "customers"),
    ("HW-205", "SELECT id FROM crn.customers", "crn.customers"),
    ("HW-206", "SELECT id FROM crm.customer", "crm.customer"),
    ("HW-206", "SELECT id FROM crm.places", "crm.places"),
    ("HW-207", "SELECT idd FROM crm.customers", "idd"),
    ("HW-207", "SELECT c.idd FROM crm.customers c", "c.idd"),
    ("HW-207", "SELECT x.id FROM crm.customers c", "x.id"),
    ("HW-207", "SELECT customers.id FROM crm.customers c", "customers.id"),
    ("HW-207", "SELECT id AS a, a AS b FROM crm.customers", "a"),
    ("HW-207", "SELECT c.id FROM crm.customers c JOIN shop.sales s ON p.id = s.no JOIN crm.geo.places p", "p.id"),
    ("HW-207", "SELECT c.id FROM crm.customers c JOIN shop.sales s USING (no)", "no"),
    ("HW-208", "SELECT id FROM crm.customers, crm.geo.places", "id"),
    ("HW-208", "SELECT label FROM crm.customers c JOIN crm.geo.places p ON id = 1", "id"),
    ("HW-209", "SELECT 1 AS one FROM crm.customers, shop.sales Customers", "shop.sales Customers"),
    ("HW-210", "SELECT id, Name AS ID FROM crm.customers", "Name AS ID"),
    ("HW-210", "SELECT * FROM crm.customers c JOIN crm.geo.places p ON c.id = p.id", "*"),
    ("HW-211", "SELECT id + 1 FROM crm.customers", "id + 1"),
    ("HW-212", "SELECT id AS _TICK FROM crm.customers", "id AS _TICK"),
    ("HW-212", "SELECT id AS _ordinal FROM crm.customers", "id AS _ordinal"),
    ("HW-213", "SELECT 1 AS one", "SELECT"),
    ("HW-214", "SELECT * FROM shop.sales", "*"),
    ("HW-214", "SELECT s.* FROM shop.sales s", "s.*"),
    ("HW-214", "SELECT shape FROM shop.sales", "shape"),
    ("HW-215", r"SELECT id FROM crm.customers WHERE Name = '\u0041'", r"'\u0041'"),
    ("HW-215", "SELECT id FROM crm.customers WHERE Name = 'it''s'", "'it''s'"),
    ("HW-216", "SELECT a._tick AS at FROM crm.audit a", "a._tick"),
    ("HW-217", "SELECT NULL AS nothing FROM crm.customers", "nothing"),
    ("HW-213", "SELECT id FROM range(3)", "SELECT"),
    ("HW-241", "SELECT c.id FROM crm.customers c, range(3)", "range(3)"),
    ("HW-233", "SELECT c.id FROM crm.customers c NATURAL JOIN shop.sales s", "shop.sales s"),
    ("HW-240", "SELECT id FROM crm.customers TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    ("HW-234", "SELECT id FROM crm.customers VERSION AS OF 3", "3"),
    ("HW-234", "SELECT p FROM crm.customers AS c(p, q, r, s, t)", "c(p, q, r, s, t)"),
    ("HW-240", "SELECT now() AS t FROM crm.customers", "now"),
    ("HW-240", "SELECT id FROM crm.customers WHERE since = current_date", "current_date"),
    ("HW-240", "SELECT id FROM crm.customers WHERE since = current_date()", "current_date"),
    ("HW-240", "SELECT id FROM crm.customers WHERE since >= 'today'", "'today'"),
    ("HW-240", "SELECT DATE 'Yesterday' AS t FROM crm.customers", "'Yesterday'"),
    ("HW-240", "SELECT CAST(' now UTC' AS TIMESTAMP) AS t FROM crm.customers", "' now UTC'"),
    ("HW-240", "SELECT to_date('tomorrow') AS t FROM crm.customers", "'tomorrow'"),
    ("HW-240", "SELECT TIMESTAMP '12:30:00' AS t FROM crm.customers", "'12:30:00'"),
    ("HW-240", "SELECT current_timestamp AS t FROM crm.customers", "current_timestamp"),
    ("HW-240", "SELECT rand() AS t FROM crm.customers", "rand"),
    ("HW-240", "SELECT uuid() AS t FROM crm.customers", "uuid"),
    ("HW-240", "SELECT monotonically_increasing_id() AS t FROM crm.customers", "monotonically_increasing_id"),
    ("HW-240", "SELECT input_file_name() AS t FROM crm.customers", "input_file_name"),
    ("HW-240", "SELECT unix_timestamp() AS t FROM crm.customers", "unix_timestamp"),
    ("HW-240", "SELECT current_user() AS t FROM crm.customers", "current_user"),
    ("HW-241", "SELECT my_function(id) AS t FROM crm.customers", "my_function(id)"),
    ("HW-241", "SELECT shop.my_function(id) AS t FROM crm.customers", "my_function(id)"),
    ("HW-243", "SELECT shop.upper(Name) AS t FROM crm.customers", "shop.upper(Name)"),
    ("HW-293", "SELECT first_value(Name) AS n FROM crm.customers GROUP BY id", "first_value(Name)"),
    (
        "HW-294",
        "SELECT COUNT(Name) FILTER (WHERE id > 1) OVER (PARTITION BY id) AS n FROM crm.customers",
        "COUNT(Name) FILTER (WHERE id > 1) OVER (PARTITION BY id)",
    ),
    (
        "HW-296",
        "SELECT id, RANK() OVER (ORDER BY COUNT(*)) AS n FROM crm.customers GROUP BY id, CUBE(Name) HAVING Name = 'x'",
        "RANK() OVER (ORDER BY COUNT(*))",
    ),
    (
        "HW-296",
        "SELECT id FROM crm.customers GROUP BY ROLLUP(id, Name) HAVING id > 1 QUALIFY RANK() OVER (ORDER BY id) = 1",
        "RANK() OVER (ORDER BY id)",
    ),
    ("HW-293", "SELECT id, max(last_value(Name)) OVER () AS n FROM crm.customers GROUP BY id", "last_value(Name)"),
    ("HW-242", "SELECT id FROM crm.customers WHERE id = :wanted", ":"),
    ("HW-242", "SELECT id FROM crm.customers WHERE id = ?", "?"),
    ("HW-243", "SELECT Name COLLATE UTF8_LCASE AS t FROM crm.customers", "Name"),
    ("HW-243", "SELECT since AT TIME ZONE 'UTC' AS t FROM crm.customers", "since AT TIME ZONE 'UTC'"),
    ("HW-243", "SELECT * EXCEPT (id) FROM crm.customers", "* EXCEPT (id)"),
    ("HW-276", "SELECT id::text AS t FROM crm.customers", "::"),
    ("HW-276", 'SELECT c."id" FROM crm.customers c', "."),
    ("HW-276", 'SELECT id AS "Number" FROM crm.customers', "AS"),
    ("HW-276", 'SELECT id FROM "crm"."customers"', "FROM"),
    ("HW-276", "SELECT DISTINCT ON (city) city, id FROM crm.customers", "DISTINCT"),
    ("HW-276", "SELECT id FROM crm.customers LIMIT ALL", "LIMIT"),
    ("HW-276", "SELECT id FROM crm.customers FETCH FIRST 5 ROWS ONLY", "FETCH"),
    ("HW-276", "SELECT TOP 5 id FROM crm.customers", "SELECT"),
    ("HW-276", "SELECT id FROM crm.customers WHERE Name ~ 'a'", "Name"),
    ("HW-276", "SELECT Name->>'a' AS t FROM crm.customers", "Name"),
    ("HW-276", "SELECT id FROM crm.customers WHERE id = ANY(ARRAY[1, 2])", "="),
    ("HW-276", "SELECT [id] FROM crm.customers", "SELECT"),
    ("HW-241", "SELECT string_agg(Name, ',') AS t FROM crm.customers", "string_agg(Name, ',')"),
    ("HW-241", "SELECT max_by(Name, id) AS t FROM crm.customers", "max_by(Name, id)"),
    ("HW-241", "SELECT decode(id, 1, 'a', 'b') AS t FROM crm.customers", "decode(id, 1, 'a', 'b')"),
    ("HW-241", "SELECT unix_timestamp(since) AS t FROM crm.customers", "unix_timestamp(since)"),
    ("HW-243", "SELECT id << 2 AS t FROM crm.customers", "id << 2"),
    ("HW-204", "SELECT id FROM crm.a.b.customers", "crm.a.b.customers"),
    ("HW-201", "SELECT id FROM crm.customers WHERE note = X'zz'", "X'zz'"),
    ("HW-275", f"SELECT {'(' * 200}id{')' * 200} AS t FROM crm.customers", "("),
)


def untyped(_sql: str, _relations: Catalog) -> tuple[Column, ...]:
    """Say that every text has one column, which is NULL: all other refusals come before Spark is asked."""
    return (Column(name="nothing", type="void", native="void"),)


def compiled(sql: str, catalog: Catalog, *, name: str = "v", path: str = "") -> SegmentedView:
    return compile_view(name, sql, catalog, untyped, path=path)


def underlined(detail: str) -> str:
    lines = detail.split("\n")
    marks = next((line for line in lines if line.strip() and not line.strip(" \t^")), None)
    if marks is None:
        return ""
    text = lines[lines.index(marks) - 1]
    return text[marks.index("^") : marks.rindex("^") + 1]


@pytest.mark.parametrize(("code", "sql", "marked"), REFUSED, ids=[f"{code} {sql[:60]}" for code, sql, _ in REFUSED])
def test_a_refused_view_says_why_and_where(code: str, sql: str, marked: str, catalog: Catalog) -> None:
    with pytest.raises(HeadwaterError) as caught:
        compiled(sql, catalog, path="views/v.sql")
    error = caught.value
    assert error.code == code
    assert isinstance(error, (InvalidView, UnsupportedView))
    assert error.summary.startswith('view "v" ')
    assert error.hint
    assert "views/v.sql" in error.detail
    assert underlined(error.detail) == marked


def test_every_reason_has_its_own_code_and_a_case_above() -> None:
    codes = [reason.code for reason in REASONS]
    assert len(set(codes)) == len(codes)
    of_the_compiler = {
        one.code
        for one in (
            support.NOT_GROUPED,
            support.STRICT,
            support.VIEW_CIRCLE,
            support.OPEN_ORDER,
            support.FRAME_OF_DISTANCE,
            support.SEVERAL_ORDERS,
        )
    }
    assert set(codes) == {code for code, _, _ in REFUSED} | of_the_compiler


@pytest.mark.parametrize(
    ("sql", "why", "do"),
    [
        ("SELECT max_by(Name, id) AS t FROM crm.customers", "max_by()", "row_number()"),
        ("SELECT MEAN(id) AS t FROM crm.customers", "mean()", "avg(x)"),
        ("SELECT string_agg(Name, ',') AS t FROM crm.customers", "string_agg()", "when reading the view"),
        ("SELECT id << 2 AS t FROM crm.customers", "the operator <<", "x * 4"),
        ("SELECT * EXCEPT (id) FROM crm.customers", "EXCEPT", "name the columns"),
        ("SELECT * FROM crm.customers PIVOT (SUM(id) FOR Name IN ('a'))", "PIVOT", "CASE WHEN"),
        ("SELECT id FROM crm.customers WHERE Name LIKE ANY ('a%', 'b%')", "LIKE ANY", "OR x LIKE"),
        ("SELECT id FROM crm.customers WHERE id > ALL (SELECT no FROM shop.sales)", "ALL before a query", "MAX(x)"),
        ("SELECT ucase(Name, 2) AS t FROM crm.customers", "2 arguments are given, 1 are taken", "correct"),
        ("SELECT customers.id FROM crm.customers c", 'the name "customers"', "write c.id"),
        ("SELECT id AS a, a + 1 AS b FROM crm.customers", '"a"', "write its expression out again"),
        ("SELECT id AS a, COUNT(*) + a AS b FROM crm.customers GROUP BY id", '"a"', "write its expression out again"),
        ("SELECT c.since.y AS t FROM crm.customers c", 'the name "c.since"', "out of the column since"),
        ("SELECT id FROM crm.customers WHERE id = $1", "a view has no parameters", "write the value itself"),
        ("SELECT CAST(id AS money) AS t FROM crm.customers", "a type of Spark's is expected", "correct"),
        ("SELECT CASE WHEN id = 1 THEN 2 AS t FROM crm.customers", "END is expected after CASE", "correct"),
    ],
)
def test_a_refusal_names_what_was_written_and_what_to_write(sql: str, why: str, do: str, catalog: Catalog) -> None:
    with pytest.raises(HeadwaterError) as caught:
        compiled(sql, catalog)
    assert why in caught.value.detail
    assert do in caught.value.hint


def test_an_error_reads_well(catalog: Catalog) -> None:
    with pytest.raises(InvalidView) as caught:
        compiled("SELECT s.no,\n  s.prize\nFROM shop.sales s", catalog, name="big_sales", path="views/big_sales.sql")
    assert str(caught.value) == (
        'view "big_sales" is wrong [HW-207]\n'
        '  why: no relation of the view has such a column: "s.prize"; did you mean "price"?\n'
        "       in views/big_sales.sql\n"
        "       line 2:   s.prize\n"
        "                 ^^^^^^^\n"
        "  do:  correct the name, or add the relation that has it before this place"
    )


def test_relations_are_known_before_any_catalog() -> None:
    names = relations_named("SELECT * FROM shop.sales a JOIN crm.geo.places b ON a.x = b.y, shop.sales")
    assert [str(name) for name in names] == ["shop.sales", "crm.geo.places"]
    names = relations_named(
        "WITH c AS (SELECT 1 FROM a.r) SELECT * FROM c, (SELECT 1 FROM b.s WHERE x IN (SELECT y FROM c.t))"
    )
    assert [str(name) for name in names] == ["a.r", "b.s", "c.t"]
    with pytest.raises(InvalidView, match="is wrong"):
        relations_named("WITH c AS (SELECT 1) SELECT * FROM c")


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT id::text AS t FROM crm.customers", "CAST(x AS STRING)"),
        ('SELECT c."id" FROM crm.customers c', "`name`"),
        ("SELECT DISTINCT ON (city) city, id FROM crm.customers", "ROW_NUMBER()"),
        ("SELECT id FROM crm.customers FETCH FIRST 5 ROWS ONLY", "LIMIT 5"),
        ("SELECT id FROM crm.customers WHERE Name ~* 'a'", "RLIKE"),
        ("SELECT string_agg(Name, ',') AS t FROM crm.customers", "string_agg()"),
    ],
)
def test_what_other_databases_write_is_told_in_sparks_words(sql: str, says: str, catalog: Catalog) -> None:
    with pytest.raises(HeadwaterError) as caught:
        compiled(sql, catalog)
    assert says in str(caught.value)
    assert "group_concat" not in str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM crm.customers WHERE Name ILIKE 'a%'",
        'SELECT id FROM crm.customers WHERE Name = "Ada" AND city IN (1, -2)',
        "SELECT id AS top, city AS rownumber, CAST(id AS VARCHAR(9)) AS e FROM crm.customers WHERE ~id <> 1",
        "SELECT id::STRING AS text FROM crm.customers",
    ],
)
def test_what_only_looks_foreign_is_taken(sql: str, catalog: Catalog) -> None:
    with pytest.raises(InvalidView) as caught:
        compiled(sql, catalog)
    assert caught.value.code == support.UNTYPED_OUTPUT.code, "nothing is refused before Spark is asked"
