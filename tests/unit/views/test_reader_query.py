"""What a reader may say, and what is refused before Spark hears of it."""

from __future__ import annotations

import pytest

from headwater.errors import HeadwaterError
from headwater.views.text.reader_query import read_condition, read_query
from headwater.views.text.row_text import read_row


@pytest.mark.parametrize(
    ("sql", "views"),
    [
        ("SELECT * FROM sold", ("sold",)),
        ("FROM Sold SELECT no", ("sold",)),
        ("SELECT 1", ()),
        ("SELECT a.no FROM sold AS a LEFT JOIN bought b ON a.no = b.no ORDER BY 1 LIMIT 3", ("sold", "bought")),
        ("WITH x AS (SELECT no FROM sold) SELECT count(*), now() FROM x", ("sold",)),
        ("SELECT no FROM sold WHERE no IN (SELECT no FROM bought) UNION SELECT 2", ("sold", "bought")),
        ("SELECT collect_list(no), max(no) OVER (PARTITION BY city) FROM sold GROUP BY ALL", ("sold",)),
        ("SELECT x FROM sold LATERAL VIEW explode(array(1, 2)) t AS x;", ("sold",)),
    ],
)
def test_one_select_over_views_is_read(sql: str, views: tuple[str, ...]) -> None:
    assert read_query(sql).views == views


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SET spark.sql.ansi.enabled = false", "HW-144"),
        ("RESET", "HW-144"),
        ("CREATE TABLE t AS SELECT 1", "HW-144"),
        ("CREATE TEMPORARY FUNCTION f AS 'com.example.F'", "HW-144"),
        ("DROP VIEW sold", "HW-144"),
        ("ADD JAR '/tmp/x.jar'", "HW-144"),
        ("LIST JARS", "HW-144"),
        ("SHOW TABLES", "HW-144"),
        ("DESCRIBE sold", "HW-144"),
        ("EXPLAIN EXTENDED SELECT 1", "HW-144"),
        ("USE default", "HW-144"),
        ("CACHE TABLE sold", "HW-144"),
        ("REFRESH TABLE sold", "HW-144"),
        ("INSERT OVERWRITE DIRECTORY '/tmp/x' USING parquet SELECT 1", "HW-201"),
        ("INSERT INTO sold SELECT 1", "HW-144"),
        ("EXECUTE IMMEDIATE 'SELECT 1'", "HW-144"),
        ("CALL system.f()", "HW-144"),
        ("SELECT 1; SELECT 2", "HW-144"),
        ("SELECT", "HW-144"),
        ("", "HW-201"),
        ("SELECT 'abc", "HW-201"),
        ("SELECT (1", "HW-201"),
        ("SELECT * FROM text.`/etc/passwd`", "HW-145"),
        ("SELECT * FROM `parquet`.`s3://bucket/x`", "HW-145"),
        ("WITH x AS (SELECT * FROM csv.`/etc/passwd`) SELECT * FROM x", "HW-145"),
        ("SELECT (SELECT max(value) FROM text.`/etc/passwd`) FROM sold", "HW-145"),
        ("SELECT no FROM sold WHERE no IN (SELECT value FROM json.`/x`)", "HW-145"),
        ("SELECT 1 UNION ALL SELECT * FROM binaryFile.`/x`", "HW-145"),
        ("SELECT * FROM spark_catalog.default.t", "HW-145"),
        ("SELECT * FROM global_temp.t", "HW-145"),
        ("SELECT * FROM range(10)", "HW-241"),
        ("SELECT * FROM read_files('/etc/passwd')", "HW-241"),
        ("SELECT * FROM IDENTIFIER('text.`/etc/passwd`')", "HW-241"),
        ("SELECT reflect('java.lang.System', 'getenv', 'SHOP_URL')", "HW-241"),
        ("SELECT `reflect`('java.lang.System', 'getenv', 'SHOP_URL')", "HW-241"),
        ("SELECT java_method('java.lang.System', 'getenv', 'SHOP_URL')", "HW-241"),
        ("SELECT try_reflect('java.lang.System', 'getenv', 'SHOP_URL')", "HW-241"),
        ("SELECT no FROM sold ORDER BY reflect('java.lang.System', 'exit', 1)", "HW-241"),
        ("SELECT no FROM sold LIMIT length(reflect('a', 'b'))", "HW-241"),
        ("SELECT transform(array(1), x -> reflect('a', 'b'))", "HW-241"),
        ("SELECT sum(no) FILTER (WHERE reflect('a', 'b') = '') FROM sold", "HW-241"),
        ("SELECT no FROM sold LATERAL VIEW explode(split(reflect('a', 'b'), '')) t AS x", "HW-241"),
        ("SELECT input_file_name() FROM sold", "HW-240"),
        ("SELECT current_user()", "HW-240"),
        ("SELECT my_function(no) FROM sold", "HW-241"),
        ("SELECT TRANSFORM(no) USING 'cat /etc/passwd' AS (x) FROM sold", "HW-243"),
        ("SELECT :x FROM sold", "HW-242"),
        ("SELECT ${env:SHOP_URL}", "HW-242"),
        (r"SELECT 'a\u0041' FROM sold", "HW-215"),
    ],
)
def test_everything_else_is_refused(sql: str, code: str) -> None:
    with pytest.raises(HeadwaterError) as refused:
        read_query(sql)
    assert refused.value.code == code
    assert "the view" not in refused.value.summary


def test_what_runs_is_written_anew() -> None:
    """A comment that goes on after a backslash hides less from Spark than from us; neither reaches Spark."""
    assert read_query("SELECT no -- x \\\n FROM sold /* text.`/etc/passwd` */").sql == "SELECT no FROM sold"


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.System', 'getenv', 'SHOP_URL') = 'x'",
        "city IN (SELECT value FROM text.`/etc/passwd`)",
        "EXISTS (SELECT 1 FROM sold)",
        "(SELECT max(value) FROM text.`/etc/passwd`) = city",
        "city = 'x'; SET a = b",
        "input_file_name() = 'x'",
        "SELECT 1",
        "DROP TABLE sold",
    ],
)
def test_conditions_ask_nobody(text: str) -> None:
    with pytest.raises(HeadwaterError):
        read_condition(text)


@pytest.mark.parametrize(
    "text",
    [
        "city = reflect('java.lang.System', 'getenv', 'SHOP_URL')",
        "city = (SELECT max(value) FROM text.`/etc/passwd`)",
        "city = (SELECT 'x' FROM text.`/etc/passwd`)",
        "city = input_file_name()",
    ],
)
def test_rows_ask_nobody(text: str) -> None:
    with pytest.raises(HeadwaterError) as refused:
        read_row(text, ("city",))
    assert refused.value.code in {"HW-134", "HW-146", "HW-240", "HW-241"}
