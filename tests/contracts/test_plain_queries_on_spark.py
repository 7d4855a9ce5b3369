"""What is answered without Spark is what Spark answers: names, types, rows, how often each, and their order."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest
from journaled import fold, tell
from pyspark.sql import SparkSession

from headwater.engine.service.answer_query import ResolvedQuery, answer, answer_dataframe, ask
from headwater.errors import InvalidView
from headwater.model.moment import AtTick
from headwater.model.position import Tick
from headwater.views.text.plain_query import plain_query
from headwater.views.text.reader_query import read_query
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.folders import view_folder
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

SCHEMA = pa.schema(
    [
        ("no", pa.int32()),
        ("tiny", pa.int8()),
        ("big", pa.int64()),
        ("price", pa.decimal128(12, 2)),
        ("x", pa.float64()),
        ("f", pa.float32()),
        ("City", pa.string()),
        ("open", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.field("element", pa.string()))),
    ]
)
CITIES = ["Oslo", "oslo", "Žilina", "", "a'b", "Ö", "Z", None, "\U0001f600", "￿"]
FLOATS = [0.1, float("nan"), None, float("inf"), float("-inf"), 1.5, 0.3, 2.5]


def row(number: int) -> dict[str, object]:
    if number % 11 == 0:
        return dict.fromkeys(SCHEMA.names) | {"no": number}
    return {
        "no": number,
        "tiny": number % 7 - 3,
        "big": number * 10**15 if number % 5 else -(2**63),
        "price": Decimal(number * 25) / 100 if number % 6 else None,
        "x": FLOATS[number % len(FLOATS)],
        "f": FLOATS[(number + 3) % len(FLOATS)],
        "City": CITIES[number % len(CITIES)],
        "open": [True, False, None][number % 3],
        "day": date(2024, 1, 1 + number % 28) if number % 9 else date(1, 1, 1),
        "at": datetime(2024, 1, 1 + number % 28, 12, 0, 0, number, tzinfo=UTC),
        "local": datetime(2024, 1, 1 + number % 28, 12, tzinfo=UTC).replace(tzinfo=None),
        "raw": bytes([number % 256, 255]),
        "tags": ["a", None, str(number % 4)] if number % 2 else [],
    }


def rows(numbers: list[int]) -> pa.Table:
    return pa.Table.from_pylist([row(number) for number in numbers], schema=SCHEMA)


def change(tick: int, numbers: list[int], count: int) -> pa.Table:
    table = rows(numbers)
    for name, value in (("_tick", tick), ("_count", count)):
        table = table.append_column(name, pa.array([value] * len(numbers), pa.int64()))
    return table


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A view with a checkpoint at tick 3, readable at ticks 1 to 5: rows come, go, and stand several times."""
    path: Path = tmp_path_factory.mktemp("plain") / "warehouse"
    made = Warehouse.create(str(path))
    epoch = made.commits.take_lease("here:1")
    table = KeptTable.create(view_folder(made.path, "v", 1), made.commits.journal, SCHEMA, Tick(1))
    table.checkpoint.write(rows([*range(60), *range(20), *range(5)]), Tick(1))
    tell(table, change(2, [3, 4, 61], 2), 2)
    tell(table, change(3, [0, 1, 2], -1), 3)
    fold(table)  # the rest stays in the journal
    tell(table, change(4, [3, 61], -2), 4)
    tell(table, pa.concat_tables([change(5, [4], -4), change(5, [62, 62], 1)]), 5)
    made.commits.head()
    entry = ViewEntry(name="v", generation=1, sql="…", birth=Tick(1), guarantee="complete", schema=())
    made.commits.commit(
        CommitKind.CATALOG,
        Tick(5),
        CommitRecord(frontiers={"v": Tick(5)}),
        epoch=epoch,
        catalog=Catalog(views={"v": entry}),
    )
    return made


@pytest.fixture(scope="module")
def sessions(
    warehouse: Warehouse, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, SparkSession]:
    """A Spark session for each tick, in which the view is what it is then, computed once."""
    folder = tmp_path_factory.mktemp("states")
    made = {tick: spark.newSession() for tick in range(1, 6)}
    for tick, session in made.items():
        warehouse.view_dataframe(session, "v", Tick(tick)).coalesce(1).write.parquet(f"{folder}/{tick}")
        session.read.parquet(f"{folder}/{tick}").createOrReplaceTempView("v")
    return made


def without_spark() -> NoReturn:
    raise AssertionError("Spark is not needed for this")


def asked(warehouse: Warehouse, sql: str, tick: int = 5) -> ResolvedQuery:
    return ask(warehouse, read_query(sql), AtTick(tick=Tick(tick)))


PLAIN = (
    "SELECT * FROM v",
    "SELECT no FROM v",
    "SELECT v.NO, v.city AS c, no FROM V",
    "SELECT t.* FROM v AS t WHERE t.no >= 59",
    "SELECT *, no AS again FROM v WHERE no <> 5",
    "SELECT COUNT(*) FROM v",
    "SELECT count(*) AS n FROM v WHERE open",
    "SELECT tags, raw FROM v WHERE NOT open",
    "SELECT no FROM v WHERE no < 3.5 OR no IN (10, 12, 12)",
    "SELECT no FROM v WHERE 10 > no AND NOT no = 3",
    "SELECT no FROM v WHERE tiny = -3 OR tiny > 2",
    "SELECT no FROM v WHERE big < -9223372036854775807 OR big = 7000000000000000",
    "SELECT no FROM v WHERE price > 5 AND price <= 10.75",
    "SELECT no FROM v WHERE price = 1.250 OR price = 2.505",
    "SELECT no FROM v WHERE price BETWEEN 1 AND 2.5",
    "SELECT no FROM v WHERE price NOT IN (1.25, 2)",
    "SELECT no, x FROM v WHERE x > 1",
    "SELECT no, x FROM v WHERE x >= 1.5",
    "SELECT no, x FROM v WHERE x <> 0.1",
    "SELECT no, x FROM v WHERE NOT x < 1",
    "SELECT no, x FROM v WHERE x IN (0.1, 1.5, 7)",
    "SELECT no, f FROM v WHERE f = 0.1 OR f = 1.5",
    "SELECT no, f FROM v WHERE f > 0.3",
    "SELECT no FROM v WHERE city > 'Z'",
    "SELECT no FROM v WHERE city = '' OR city = 'oslo'",
    "SELECT no FROM v WHERE city <= 'Ö' AND city IS NOT NULL",
    "SELECT no FROM v WHERE city IN ('Oslo', 'a\\'b')",
    "SELECT no FROM v WHERE city NOT IN ('Oslo', 'Z')",
    "SELECT no FROM v WHERE open = true OR open IS NULL",
    "SELECT no FROM v WHERE (open OR city IS NULL) AND NOT (open AND no > 20)",
    "SELECT no FROM v WHERE day = '2024-01-05' OR day < DATE '2024-01-03'",
    "SELECT no FROM v WHERE day BETWEEN '2024-01-05' AND '2024-01-09'",
    "SELECT no FROM v WHERE at >= '2024-01-05' AND at < TIMESTAMP '2024-01-20 12:00:00.000019'",
    "SELECT no FROM v WHERE local = '2024-01-05 12:00:00'",
    "SELECT no FROM v WHERE local > '2024-01-25T12:00:00.5'",
    "SELECT no, price FROM v ORDER BY price DESC, no LIMIT 7",
    "SELECT no, x FROM v ORDER BY x, no",
    "SELECT no, x FROM v ORDER BY x DESC NULLS FIRST, no DESC LIMIT 12 OFFSET 3",
    "SELECT city AS no, no AS n FROM v ORDER BY no DESC, n",
    "SELECT City, no FROM v ORDER BY 1 NULLS LAST, 2 DESC",
    "SELECT no FROM v WHERE no > 3 ORDER BY raw, v.no LIMIT 4",
    "SELECT at, no FROM v ORDER BY at DESC, no LIMIT 5",
    "SELECT no FROM v ORDER BY open, day, no",
    "SELECT no FROM v WHERE no > 1000",
    "SELECT no FROM v LIMIT 0",
    "SELECT no FROM v WHERE no = 4",
)


@pytest.mark.parametrize("sql", PLAIN)
def test_differential_plain_queries(warehouse: Warehouse, sessions: dict[int, SparkSession], sql: str) -> None:
    """Spark and we answer the same, at a tick after the checkpoint's."""
    same(warehouse, sessions, sql, 5)


@pytest.mark.parametrize("tick", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "sql", ["SELECT * FROM v", "SELECT count(*) FROM v", "SELECT no, x FROM v WHERE no < 5 ORDER BY no"]
)
def test_differential_earlier_ticks(
    warehouse: Warehouse, sessions: dict[int, SparkSession], sql: str, tick: int
) -> None:
    same(warehouse, sessions, sql, tick)


def same(warehouse: Warehouse, sessions: dict[int, SparkSession], sql: str, tick: int) -> None:
    ours, theirs = answer(asked(warehouse, sql, tick), without_spark), sessions[tick].sql(sql).toArrow()
    assert [(field.name, field.type) for field in ours.schema] == [(field.name, field.type) for field in theirs.schema]
    mine, wanted = texts(ours), texts(theirs)
    assert (mine if "ORDER BY" in sql else Counter(mine)) == (wanted if "ORDER BY" in sql else Counter(wanted))


def texts(table: pa.Table) -> list[str]:
    return [repr(one) for one in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def test_what_spark_runs_is_what_was_asked(warehouse: Warehouse, spark: SparkSession) -> None:
    """Not plain: Spark runs it, written anew, over the views at the tick; what fails on a value is refused."""
    question = asked(warehouse, "WITH v AS (SELECT no FROM v WHERE no < 5) SELECT sum(no) AS s FROM v", 4)
    numbers = [
        one["no"] for one in answer(asked(warehouse, "SELECT no FROM v WHERE no < 5", 4), without_spark).to_pylist()
    ]
    assert answer(question, lambda: spark).to_pylist() == [{"s": sum(numbers)}]
    with pytest.raises(InvalidView) as failed:
        answer(asked(warehouse, "SELECT 1 / (no - no) FROM v"), lambda: spark)
    assert failed.value.code == "HW-148"
    with pytest.raises(InvalidView) as unknown:
        answer_dataframe(asked(warehouse, "SELECT nr + 1 FROM v"), spark)
    assert unknown.value.code == "HW-126"
    assert "`nr` cannot be resolved" in unknown.value.detail
    assert "Project" not in unknown.value.detail, "Spark's plan is nothing to a reader"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT no + 1 FROM v",
        "SELECT DISTINCT no FROM v",
        "SELECT no FROM v WHERE upper(city) = 'OSLO'",
        "SELECT no FROM v WHERE no = '5'",
        "SELECT no FROM v WHERE no = NULL",
        "SELECT no FROM v WHERE no = big",
        "SELECT no FROM v WHERE x > 1e3",
        "SELECT no FROM v WHERE price > 99999999999999999999999999999999999999",
        "SELECT no FROM v WHERE day > TIMESTAMP '2024-01-01 00:00:00'",
        "SELECT no FROM v WHERE local > TIMESTAMP '2024-01-01 00:00:00'",
        "SELECT no FROM v WHERE day > '2024-1-1'",
        "SELECT no FROM v WHERE day > '2024-02-30'",
        "SELECT no FROM v WHERE at > '2024-01-01 00:00:00Z'",
        "SELECT no FROM v WHERE raw = 'a'",
        "SELECT no FROM v WHERE city LIKE 'O%'",
        "SELECT no FROM v ORDER BY tags",
        "SELECT no FROM v ORDER BY no + 1",
        "SELECT count(*), max(no) FROM v",
        "SELECT count(no) FROM v",
        "SELECT no FROM v GROUP BY no",
        "SELECT no FROM (SELECT no FROM v)",
        "SELECT a.no FROM v AS a, v AS b",
        "SELECT no FROM v AS t (a, b)",
        "SELECT no FROM v UNION ALL SELECT no FROM v",
        "WITH v AS (SELECT 1 AS no) SELECT no FROM v",
    ],
)
def test_everything_else_is_left_to_spark(sql: str) -> None:
    assert plain_query(read_query(sql), SCHEMA) is None


def test_negative_zero_is_left_to_spark() -> None:
    """Spark makes 0.0 of it where it has to sum rows up, and leaves it as it is elsewhere."""
    query = plain_query(read_query("SELECT x FROM v"), SCHEMA)
    assert query is not None
    assert query.rows(pa.table({"x": [1.0, -0.0], "_count": [1, 1]})) is None
    assert query.rows(pa.table({"x": [1.0, 0.0], "_count": [1, 1]})) is not None
