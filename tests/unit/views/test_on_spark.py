"""What only Spark can tell: rewriting keeps meanings, names resolve as Spark resolves them, phantoms do not raise."""

from __future__ import annotations

from collections import Counter

import pytest
import sqlglot
from pyspark.sql import DataFrame, SparkSession

from headwater.model.relation import Column, Relation, RelationName
from headwater.views.laws.join import law_sql, renamed_sql
from headwater.views.text.fallibility import is_fallible
from headwater.views.text.functions import NOT_REPEATABLE_FUNCTIONS, READER_FUNCTIONS, SCALAR_FUNCTIONS
from headwater.views.text.reader_query import read_query
from headwater.views.text.spark_text import spark_text
from headwater_lab.one_join import declare

EVERYTHING = RelationName(source="one", name="everything")
A, B, C = (RelationName(source="one", name=name) for name in "abc")


def relation(name: RelationName, schema: str) -> Relation:
    fields = (field.split(" ") for field in schema.split(", "))
    return Relation(name=name, columns=tuple(Column(name=n, type=kind, native=kind) for n, kind in fields))


CATALOG = {
    EVERYTHING: relation(EVERYTHING, "n int, m decimal(12,3), x double, t string, d date, s timestamp, b boolean"),
    A: relation(A, "x int, k int, y int"),
    B: relation(B, "k int, z int, w int"),
    C: relation(C, "w int, k int, v int"),
}

OPERATORS = (
    "n + 1 - 2 * 3 / 4",
    "n - (1 - 2)",
    "- - n",
    "n - -1",
    "-(n + 1)",
    "n % 2",
    "n div 2",
    "n & 1 | 2 ^ 4",
    "~n",
    "n <=> 3 = true",
    "(n <=> NULL) <=> false",
    "n == 3",
    "n != 3",
    "NOT n = 3 AND b",
    "NOT (n = 3 AND b)",
    "b OR n = 1 AND n = 2",
    "(b OR n = 1) AND n = 2",
    "n IS DISTINCT FROM 3",
    "n IS NOT DISTINCT FROM 3",
    "n IS NOT NULL",
    "b IS TRUE",
    "b IS NOT FALSE",
    "n IN (1, 3)",
    "n NOT IN (1, NULL)",
    "n BETWEEN 1 AND 3 AND b",
    "n NOT BETWEEN 1 AND 3",
    "t LIKE 'a%'",
    r"t LIKE 'a\_%'",
    r"t NOT LIKE '%\%'",
    "t LIKE 'a!_%' ESCAPE '!'",
    "t ILIKE 'A%'",
    r"t RLIKE 'a\\w+'",
    r"t RLIKE r'a\w+'",
    "t || 'x' || n",
    r"'it\'s' || 'a\\b' || 'a\nb\tc'",
    '"double" || "it\'s"',
    "'one' 'two'",
    "'naïve ☃'",
    "X'1F'",
    "1L",
    "1S",
    "1.5BD",
    "1.50",
    ".5",
    "1e3",
    "1.5D",
    "0.1F",
    "99999999999",
    "CAST(t || '1' AS STRING)",
    "CAST(n AS DECIMAL(10,2))",
    "TRY_CAST(t AS INT)",
    "n::string",
    "DATE '2024-02-29'",
    "TIMESTAMP '2024-02-29 10:00:00'",
    "TIMESTAMP_NTZ '2024-02-29 10:00:00'",
    "d + INTERVAL 1 DAY",
    "d - INTERVAL '2' MONTH",
    "s + INTERVAL '1 02:03:04' DAY TO SECOND",
    "d + 1",
    "d - DATE '2024-01-01'",
    "CASE n WHEN 3 THEN 'three' ELSE 'other' END",
    "CASE WHEN n > 3 THEN 1 WHEN b THEN 2 END",
    "trim(BOTH 'a' FROM t)",
    "trim(LEADING FROM t)",
    "substring(t FROM 2 FOR 1)",
    "extract(MONTH FROM s)",
    "array(1, n)[1]",
    "d > '2024-01-01'",
    "n = '3'",
    "CAST(NULL AS STRING)",
)


@pytest.fixture(scope="module")
def world(spark: SparkSession) -> SparkSession:
    spark.sql(
        "SELECT 3 AS n, CAST(12.345 AS DECIMAL(12,3)) AS m, 2.5D AS x, 'abc' AS t, DATE '2024-03-15' AS d, "
        "TIMESTAMP '2024-03-15 10:11:12.5' AS s, true AS b"
    ).createOrReplaceTempView("everything")
    spark.sql("SELECT 1 AS x, 2 AS k, 3 AS y").createOrReplaceTempView("a")
    spark.sql("SELECT 2 AS k, 5 AS z, 7 AS w").createOrReplaceTempView("b")
    spark.sql("SELECT 7 AS w, 2 AS k, 9 AS v").createOrReplaceTempView("c")
    return spark


def values_of(frame: DataFrame) -> list[tuple[str, object]]:
    """The Spark type and the value of every column of a frame of one row."""
    (row,) = frame.collect()
    return [(field.dataType.simpleString(), value) for field, value in zip(frame.schema, row, strict=True)]


def test_every_function_and_operator_means_the_same_after_rewriting(world: SparkSession) -> None:
    texts = [*SCALAR_FUNCTIONS.values(), *OPERATORS]
    listed = ", ".join(f"{text} AS c{place}" for place, text in enumerate(texts))
    sql = f"SELECT {listed} FROM one.everything"
    view = declare("v", sql, CATALOG)
    written = values_of(world.sql(renamed_sql(sql, {EVERYTHING: "everything"})))
    listed = ", ".join(f"{spark_text(output.expression)} AS `{output.name}`" for output in view.outputs)
    rewritten = values_of(world.sql(f"SELECT {listed} FROM everything"))
    assert dict(zip(texts, rewritten, strict=True)) == dict(zip(texts, written, strict=True))


def test_what_readers_may_call_means_the_same_after_rewriting(world: SparkSession) -> None:
    """Written as the reader did and anew; what depends on the time or on chance only has to be of the same type."""
    for name, text in READER_FUNCTIONS.items():
        sql = f"SELECT {text} AS c FROM everything"
        [(kind, value)] = values_of(world.sql(sql))
        [(kind_anew, value_anew)] = values_of(world.sql(read_query(sql).sql))
        assert kind_anew == kind, name
        assert value_anew == value or name in NOT_REPEATABLE_FUNCTIONS, name


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM one.a JOIN one.b USING (k)",
        "SELECT * FROM one.a JOIN one.b USING (K) JOIN one.c USING (w, k)",
        "SELECT a.*, z FROM one.a JOIN one.b USING (k)",
        "SELECT b.*, a.x FROM one.a JOIN one.b USING (k)",
        "SELECT b.* FROM one.a JOIN one.b USING (k) JOIN one.c USING (w)",
        "SELECT c.* FROM one.a JOIN one.b USING (k) JOIN one.c USING (w, k)",
        "SELECT a.* FROM one.a JOIN one.b USING (k) JOIN one.c USING (w, k)",
        "SELECT b.* FROM one.a JOIN one.b USING (k) JOIN one.c USING (w, k)",
        "SELECT K, one.b.k AS bk, B.Z FROM one.a JOIN one.b USING (k)",
        "SELECT x, z, v FROM one.a, one.b JOIN one.c ON a.k = c.k WHERE b.k = c.k",
        "FROM one.a SELECT x AS X2",
        "SELECT /*+ BROADCAST(a) */ x FROM one.a CROSS JOIN one.b ON a.k = b.k;",
    ],
)
def test_names_resolve_as_spark_resolves_them(sql: str, world: SparkSession) -> None:
    view = declare("v", sql, CATALOG)
    expected = world.sql(renamed_sql(sql, {A: "a", B: "b", C: "c"}))
    assert list(view.output_names) == expected.columns
    for name in (A, B, C):
        world.sql(f"SELECT *, 1L AS _tick, 1L AS _count FROM {name.name}").createOrReplaceTempView(f"new_{name.name}")
    changes = world.sql(law_sql(view, {A: "new_a", B: "new_b", C: "new_c"}, 0))
    assert [tuple(row) for row in changes.collect()] == [(*row, 1, 1) for row in expected.collect()]


PHANTOMS = (
    "SELECT a.x / b.z AS q FROM one.a JOIN one.b ON a.k = b.k",
    "SELECT a.x FROM one.a JOIN one.b ON a.k = b.k WHERE a.x / b.z > 1",
    "SELECT 1 AS one FROM one.a JOIN one.b ON a.k = b.k AND 10 / b.z > 1",
)


@pytest.mark.parametrize("sql", PHANTOMS)
def test_rows_that_never_met_do_not_divide_by_zero(sql: str, spark: SparkSession) -> None:
    # a's row leaves at 5; b's (1, 0) arrives at 7; a new pair arrives at 8
    spark.sql(
        "SELECT * FROM VALUES (10, 1, 0, 4L, 1L), (10, 1, 0, 5L, -1L), (9, 2, 0, 8L, 1L) AS t(x, k, y, _tick, _count)"
    ).createOrReplaceTempView("stamped_a")
    spark.sql(
        "SELECT * FROM VALUES (1, 0, 0, 7L, 1L), (2, 3, 0, 4L, 1L) AS t(k, z, w, _tick, _count)"
    ).createOrReplaceTempView("stamped_b")
    changes = spark.sql(law_sql(declare("v", sql, CATALOG), {A: "stamped_a", B: "stamped_b"}, 4)).collect()
    assert [(row["_tick"], row["_count"]) for row in changes] == [(8, 1)]


def test_a_real_division_by_zero_raises(spark: SparkSession) -> None:
    spark.sql("SELECT 1 AS x, 1 AS k, 0 AS y, 5L AS _tick, 1L AS _count").createOrReplaceTempView("stamped_a")
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        spark.sql(law_sql(declare("v", "SELECT x / y AS q FROM one.a", CATALOG), {A: "stamped_a"}, 4)).collect()


LARGEST = {
    "decimal(15,2)": "9999999999999.99",
    "decimal(18,0)": "999999999999999999",
    "decimal(18,18)": "0.999999999999999999",
    "decimal(38,0)": "9" * 38,
    "int": "2147483647",
    "bigint": "9223372036854775807",
    "double": "1.7976931348623157E308",
}


def test_what_cannot_raise_holds_the_largest_numbers(spark: SparkSession) -> None:
    columns = ", ".join(f"CAST('{value}' AS {kind}) AS c{n}" for n, (kind, value) in enumerate(LARGEST.items()))
    types = {("r", f"c{n}"): kind for n, kind in enumerate(LARGEST)}
    sums = [f"r.{left} {sign} r.{right}" for _, left in types for _, right in types for sign in "+-*"]
    sums += [f"({left}) * (1 - {right})" for left in sums[:30] for right in ("r.c0", "r.c2", "r.c6")]
    safe = [text for text in sums if not is_fallible(sqlglot.parse_one(text, read="spark"), types)]
    assert 60 < len(safe) < len(sums) - 60
    assert "(r.c0 + r.c0) * (1 - r.c0)" in safe
    [row] = spark.sql(f"SELECT {', '.join(safe)} FROM (SELECT {columns}) AS r").collect()
    assert None not in row


def test_spark_gives_the_change_of_every_tick(spark: SparkSession) -> None:
    sql = "SELECT p.x + q.y AS s, r.z FROM one.a p, one.a q, one.b r WHERE p.k = q.k AND q.x < r.z AND p.x + 1 <> r.w"
    view = declare("v", sql, CATALOG)
    stamped = {
        A: [
            ((x, k, 1), tick, count)
            for x, k, tick, count in [
                (1, 1, 0, 1),
                (1, 1, 0, 1),
                (2, 1, 0, 1),
                (2, None, 0, 1),
                (1, 1, 1, -1),
                (4, 1, 2, 1),
                (2, 1, 2, -1),
                (0, 2, 3, 1),
            ]
        ],
        B: [((1, 3, 0), 0, 1), ((1, 5, None), 0, 1), ((1, 9, 2), 2, 1), ((1, 3, 0), 3, -1)],
    }
    columns = {A: "x int, k int, y int", B: "k int, z int, w int"}
    for name, entries in stamped.items():
        spark.createDataFrame(
            [(*row, tick, count) for row, tick, count in entries], f"{columns[name]}, _tick bigint, _count bigint"
        ).createOrReplaceTempView(f"stamped_{name.name}")
    changes = spark.sql(law_sql(view, {A: "stamped_a", B: "stamped_b"}, 0)).collect()

    def state(tick: int) -> Counter[tuple[object, ...]]:
        for name, entries in stamped.items():
            held: Counter[tuple[object, ...]] = Counter()
            for row, at, count in entries:
                held[row] += count if at <= tick else 0
            spark.createDataFrame(list(held.elements()), columns[name]).createOrReplaceTempView(f"at_{name.name}")
        return Counter(tuple(row) for row in spark.sql(renamed_sql(sql, {A: "at_a", B: "at_b"})).collect())

    for tick in (1, 2, 3):
        before, after = state(tick - 1), state(tick)
        expected = {row: after[row] - before[row] for row in after | before if after[row] != before[row]}
        assert expected
        assert {tuple(row)[:-2]: row["_count"] for row in changes if row["_tick"] == tick} == expected
