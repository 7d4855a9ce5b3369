"""A view goes on, with its whole history, when what it reads of its tables is as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

TABLES = """
    CREATE TYPE state AS ENUM ('new', 'sent');
    CREATE TABLE customers (id int PRIMARY KEY, name text, fax text);
    CREATE TABLE orders (no int PRIMARY KEY, customer int, state state, amount int);
    CREATE INDEX ON orders (customer);
    INSERT INTO customers VALUES (1, 'Ada', '17'), (2, 'Bo', NULL);
    INSERT INTO orders VALUES (1, 1, 'new', 5), (2, NULL, 'sent', 7);
"""
CHANGED = """
    ALTER TABLE customers ADD COLUMN added text DEFAULT 'x';
    ALTER TABLE customers DROP COLUMN fax;
    ALTER TABLE orders ADD COLUMN added int;
    ALTER TYPE state ADD VALUE 'back' BEFORE 'sent';
    ANALYZE;
"""
VIEW = """
    SELECT o.state, c.name, SUM(o.amount) AS amount
    FROM shop.orders o LEFT JOIN shop.customers c ON c.id = o.customer GROUP BY o.state, c.name
"""


def test_history_stays_when_a_table_changes_that_the_view_reads(
    postgres_server: EmbeddedServer,
    postgres_database: Callable[[], str],
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del spark
    database = postgres_database()
    postgres_server.execute(TABLES, database=database)
    monkeypatch.setenv("HW_SAME", postgres_server.url(database))
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "paid.sql").write_text(VIEW)
    (tmp_path / "headwater.toml").write_text('[project]\nname = "same_view"\n[sources.shop]\nurl = "${HW_SAME}"\n')
    project = headwater.open(tmp_path)
    try:
        project.run(until_idle=True)
        postgres_server.execute("INSERT INTO orders VALUES (3, 2, 'sent', 9)", database=database)
        project.run(until_idle=True)
        path = str(project.project.warehouse)
        before = Warehouse.open(path).view("paid")

        for statement in CHANGED.split(";")[:-1]:
            postgres_server.execute(statement, database=database)
        assert not project.plan().changes, "nothing that it reads has changed"
        postgres_server.execute("INSERT INTO orders VALUES (4, 1, 'back', 1, 3)", database=database)
        project.run(until_idle=True)

        after = Warehouse.open(path).view("paid")
        assert (after.generation, after.birth) == (before.generation, before.birth)
        rows = [
            {tuple(row.values()) for row in project.view("paid").at(tick).arrow().to_pylist()} for tick in (0, 1, 2)
        ]
        first = {("new", "Ada", 5), ("sent", None, 7)}
        second = first | {("sent", "Bo", 9)}
        assert rows == [first, second, second | {("back", "Ada", 1)}]
    finally:
        project.teardown()
