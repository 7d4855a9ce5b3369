"""A kept plan gives what its text gives, over any rows: those of now, never those of a run before."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import group_cases
import pyarrow as pa
import pytest
import regroup_cases
from pyspark.sql import SparkSession
from stamped_history import Run

from headwater.deltas import on_spark
from headwater.deltas.prepared_query import PreparedQueries

COLUMNS = {
    "n": pa.int32(),
    "d": pa.decimal128(15, 2),
    "s": pa.string(),
    "t": pa.timestamp("us", tz="UTC"),
    "day": pa.date32(),
    "x": pa.float64(),
    "b": pa.bool_(),
    "many": pa.list_(pa.int64()),
    "raw": pa.binary(),
}
JOIN = """SELECT v0, v1, _tick, SUM(w) AS _count FROM (
  SELECT a.n AS v0, c.s AS v1, GREATEST(a._tick, b._tick, c._tick) AS _tick, a._count * b._count * c._count AS w
  FROM a JOIN b ON a.n = b.n JOIN c ON b.s = c.s WHERE GREATEST(a._tick, b._tick, c._tick) > 0
) AS combined GROUP BY v0, v1, _tick HAVING SUM(w) <> 0"""
QUERIES = {
    "every type": "SELECT n, d * 2 AS d, upper(s) AS s, t, day, x, b, many, raw FROM a",
    "join": JOIN,
    "union": "SELECT n, count(*) AS c FROM (SELECT n FROM a UNION ALL SELECT n FROM b UNION ALL SELECT 7) GROUP BY n",
    "window": "SELECT n, s, row_number() OVER (PARTITION BY n ORDER BY s, d, x, t) AS r FROM a",
    "anti": "SELECT a.n FROM a LEFT ANTI JOIN b ON a.n <=> b.n",
    "outer": "SELECT a.n, b.s FROM a FULL OUTER JOIN b ON a.n = b.n",
    "exists": "SELECT DISTINCT s FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.s = a.s)",
    "total": "SELECT count(*) AS c, sum(d) AS d, max(t) AS t, min(s) AS s FROM a",
    "text of time": "SELECT cast(t AS string) AS t, date_format(t, 'HH:mm') AS m FROM a",
    "scalar": "SELECT n FROM a WHERE n > (SELECT avg(n) FROM b)",
    "chance": "SELECT n, CASE WHEN rand() < 2 THEN s END AS s FROM a",
    "today": "SELECT n, date_diff(current_date(), current_date()) AS d FROM a",
    "written now": "SELECT n, CAST('now' AS TIMESTAMP) > TIMESTAMP '2026-01-01 00:00:00' AS r FROM a",
    "crossed": "SELECT a.n AS x, b.n AS y FROM a CROSS JOIN b WHERE a.n < b.n",
}
NEVER_KEPT = {"scalar", "chance", "today", "written now"}


def rows(rng: Random, count: int) -> pa.Table:
    def or_null(value: object) -> object:
        return None if rng.random() < 0.2 else value

    lines = [
        {
            "n": or_null(rng.randint(0, 5)),
            "d": or_null(Decimal(rng.randint(-999, 999)) / 100),
            "s": or_null(rng.choice("abc")),
            "t": or_null(datetime(2026, 1, rng.randint(1, 28), rng.randint(0, 23), tzinfo=UTC)),
            "day": or_null(date(1400 + rng.randint(0, 900), 2, 28)),
            "x": or_null(rng.choice([0.5, -1.25, float("inf")])),
            "b": or_null(rng.random() < 0.5),
            "many": or_null([rng.randint(0, 3) for _ in range(rng.randint(0, 2))]),
            "raw": or_null(bytes([rng.randint(0, 255)])),
            "_tick": rng.randint(0, 4),
            "_count": rng.choice([-1, 1, 2]),
        }
        for _ in range(count)
    ]
    schema = pa.schema([*COLUMNS.items(), ("_tick", pa.int64()), ("_count", pa.int64())])
    return pa.Table.from_pylist(lines, schema=schema)


def by_text(spark: SparkSession, sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    session = on_spark.small_session(spark)
    for name, table in tables.items():
        on_spark.to_dataframe(session, table).coalesce(1).hint("shuffle_hash").createOrReplaceTempView(name)
    return on_spark.to_arrow(session.sql(sql))


@pytest.fixture(scope="module")
def kept(spark: SparkSession) -> PreparedQueries:
    return PreparedQueries(on_spark.session_like(spark))


def as_bag(found: pa.Table) -> list[str]:
    return sorted(map(repr, found.to_pylist()))


@pytest.mark.parametrize("name", QUERIES)
def test_differential_a_kept_plan_and_its_text(spark: SparkSession, kept: PreparedQueries, name: str) -> None:
    rng, kept_runs = Random(name), 0
    for counts in ((1, 1, 1), (9, 0, 4), (0, 0, 0), (30, 40, 20), (2, 7, 0)):
        tables = {table: rows(rng, count) for table, count in zip("abc", counts, strict=True)}
        found = kept.run(QUERIES[name], tables)
        if found is not None:
            kept_runs += 1
            expected = by_text(spark, QUERIES[name], tables)
            assert found.schema.equals(expected.schema)
            assert as_bag(found) == as_bag(expected)
    assert kept_runs == (0 if name in NEVER_KEPT else 4), "the first time it is only noted"


@pytest.fixture
def run(spark: SparkSession, kept: PreparedQueries) -> Run:
    """Run every text by its kept plan, after a run over nothing."""

    def twice(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        nothing = {name: table.slice(0, 0) for name, table in tables.items()}
        kept.run(sql, nothing, will_come_again=True)
        found = kept.run(sql, tables)
        return by_text(spark, sql, tables) if found is None else found

    return twice


def test_oracle_groups_by_kept_plans(run: Run) -> None:
    group_cases.check_many(run, range(4))


@pytest.mark.parametrize("kind", ["regroup", "extremes"])
def test_oracle_regroups_by_kept_plans(run: Run, kind: str) -> None:
    regroup_cases.check_many(kind, run, range(2), tick_count=6)


def test_threads_do_not_see_the_rows_of_each_other(spark: SparkSession, kept: PreparedQueries) -> None:
    tables = [{name: rows(Random(f"{number}{name}"), 12 + number) for name in "abc"} for number in range(6)]
    expected = [as_bag(by_text(spark, JOIN, some)) for some in tables]
    kept.run(JOIN, tables[0], will_come_again=True)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda some: kept.run(JOIN, some), tables * 3))
    assert [as_bag(one) for one in found if one is not None] == expected * 3


def test_what_raises_is_left_to_the_text(kept: PreparedQueries) -> None:
    sql = "SELECT 1 / n AS r FROM a"
    good, bad = (pa.table({"n": pa.array([number], pa.int32())}) for number in (2, 0))
    assert kept.run(sql, {"a": good}) is None
    assert kept.run(sql, {"a": good}) is not None
    assert kept.run(sql, {"a": bad}) is None
    again = kept.run(sql, {"a": good})
    assert again is not None
    assert again.to_pylist() == [{"r": 0.5}]


def test_a_spark_that_does_something_else_runs_every_text(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = PreparedQueries(on_spark.session_like(spark))
    monkeypatch.setattr(PreparedQueries, "_place", lambda *_: None)  # rows do not come where they should
    one = {"a": pa.table({"n": pa.array([1], pa.int32())})}
    assert [kept.run("SELECT n FROM a", one) for _ in range(3)] == [None] * 3
