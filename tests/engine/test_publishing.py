"""A maintainer publishes views beside its batches, counts what happens, and `doctor` finds its project in order."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from prometheus_client import generate_latest
from pyspark.sql import SparkSession

import headwater
from headwater.api.metrics_endpoint import metrics_of
from headwater.observe.events import Event, ViewPublished, fan_out
from headwater.observe.findings import Fitness


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "cities.sql").write_text("SELECT city, COUNT(*) AS n FROM crm.clerks GROUP BY city")
    (tmp_path / "headwater.toml").write_text(
        f'[project]\nname = "shop"\n[sources.crm]\nurl = "sqlite:///{tmp_path}/crm.db"\n'
        "[views.cities]\npublish = true\n"
    )
    with sqlite3.connect(tmp_path / "crm.db") as database:
        database.execute("CREATE TABLE clerks (id INTEGER PRIMARY KEY, city TEXT)")
        database.executemany("INSERT INTO clerks VALUES (?, ?)", [(n, f"city {n % 5}") for n in range(50)])
    return tmp_path


def test_run_publishes_and_counts(shop: Path, spark: SparkSession) -> None:
    path, heard = shop / "warehouse" / "published" / "cities", list[Event]()
    measured = headwater.open(shop)
    metrics = metrics_of(measured)
    project = headwater.open(shop, spark=spark, listener=fan_out(heard.append, metrics))
    for number, statement in enumerate(("UPDATE clerks SET city = 'Oslo' WHERE id % 3 = 0", "DELETE FROM clerks")):
        project.run(until_idle=True)
        with sqlite3.connect(shop / "crm.db") as database:
            expected = Counter(database.execute("SELECT city, COUNT(*) FROM clerks GROUP BY city").fetchall())
            assert Counter(tuple(row.values()) for row in DeltaTable(path).to_pyarrow_table().to_pylist()) == expected
            database.execute(statement)
        said = json.loads(DeltaTable(path).history(1)[0]["headwater"])
        status = project.status()
        assert (DeltaTable(path).version(), said["tick"]) == (number, status.views[0].frontier)
        assert said["positions"].keys() <= {"crm"}
    assert [one.view for one in heard if isinstance(one, ViewPublished)] == ["cities"] * 2
    text = generate_latest(metrics.registry).decode()
    assert 'headwater_freshness_seconds_count{source="crm"} 1.0' in text
    assert 'headwater_publications_total{view="cities"} 2.0' in text
    assert f"headwater_log_last_tick {float(said['tick'])}" in text


def test_a_project_in_order(shop: Path, spark: SparkSession) -> None:
    project = headwater.open(shop, spark=spark)
    before = project.doctor()
    assert before.is_healthy, before
    project.run(until_idle=True)
    after = project.doctor()
    assert after.is_healthy, after
    assert [one.found for one in after.findings if one.subject == "tables" and one.health is Fitness.OK]
