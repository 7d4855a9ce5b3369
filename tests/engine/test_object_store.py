"""A whole project whose warehouse is on an object store: born, maintained, read, checked, taken over, tidied up."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from s3_server import S3Server
from scripted_world import SOLD, TOTALS, FailPoints, ScriptedWorld, wait_until
from spark_clusters import options, play_aside
from test_stopped import stopped

import headwater
from headwater.deltas.on_spark import to_dataframe
from headwater.engine.service.maintainer import Maintainer
from headwater.errors import HeadwaterError, LeaseLost
from headwater.model.position import Tick
from headwater.storage import spark_files
from headwater.storage.data_file import describe, write_rows
from headwater.storage.data_file import place as arrow_place
from headwater.storage.object_store import options_of, reach, store_at
from headwater.storage.spark_files import read_files, spark_schema, write_files
from headwater.storage.task_files import FilesToRead, FilesToWrite
from headwater.warehouse.chores import Policy
from headwater.warehouse.housekeeping import Housekeeper

pytestmark = pytest.mark.filterwarnings("ignore:Exception in thread upkeep")  # it died, as it was told

SETTINGS = """
[maintenance]
memory = "1 MB"
[settings.bootstrap]
small_rows = 1
[settings.batch]
held_rows = 1
lookup_rows = 1
[settings.reading]
local_rows = 1
handed_rows = 1
[settings.service]
remote_look_interval = "100 ms"
[views.sold]
maintenance = "probe"
[views.totals_again]
maintenance = "recompute-self"
guarantee = "complete"
"""
"""The smallest settings: what would be read, held and written in this process goes through tasks and mapped files."""
JOINED = "SELECT t.store, t.paid, SUM(s.price) AS again FROM totals t JOIN sold s ON s.store = t.store GROUP BY ALL"
VIEWS = ("sold", "totals", "totals_again")


@pytest.fixture
def remote(spark: SparkSession, s3: S3Server, tmp_path: Path) -> ScriptedWorld:
    """Return a world with rows, and without a warehouse yet at the address that its project names."""
    world = ScriptedWorld(spark, tmp_path / "scripted", address=s3.address(), options=s3.options)
    reach(world.address, world.options)
    world.write_project({"sold": SOLD, "totals": TOTALS, "totals_again": TOTALS}, SETTINGS)
    for product in range(4):
        world.price(product, 10 * product)
    world.sell(*range(1, 10))
    return world


def test_a_project_on_an_object_store(
    remote: ScriptedWorld, points: FailPoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = remote
    monkeypatch.setenv("XDG_CACHE_HOME", str(world.folder.parent))
    with headwater.open(world.folder, spark=world.spark) as project:
        assert project.plan().steps
        project.run(until_idle=True)
        world.sell(*range(10, 16))
        world.price(1, 11)
        project.run(until_idle=True)
        assert world.assert_exact(*VIEWS) == 7
        for tick in (None, 3):
            rows = project.query(JOINED, at=tick).table
            assert rows.num_rows == 3
            assert all(row["paid"] == row["again"] for row in rows.to_pylist())
        assert [one.kept for one in project.check("totals", ticks=1).views] == [True]
        assert project.trace("totals", where="store = 1").relations
        assert project.history("sold").commits
        status = project.status()
        assert (status.warehouse, status.log_last) == (world.address, 7)
    took_over(world)
    world.price(2, 22)
    stopped(world, points, "before commit")
    world.run()
    tidied(world)
    assert world.assert_exact(*VIEWS) == 10
    assert not list(world.folder.parent.rglob("s3:*")), "nothing of it is put in a folder"


CANARY, MARK = "kanarienvogel7", "in_plans_and_logs"


def test_what_tasks_get_has_no_secret_in_it(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_STORE_SECRET", CANARY)
    address = s3.address()
    reach(address, {**s3.options, "secret_access_key": "${HEADWATER_STORE_SECRET}"})
    store_at(address).put("a", b"")
    options = options_of(address)
    reading = FilesToRead(files=(f"{address}/a",), schema=pa.schema([("id", pa.int64())]), options=options)
    writing = FilesToWrite(root=address, folder="f", bounded=(), rows_per_file=1, rows_per_group=1, options=options)
    sent = b"".join(map(cloudpickle.dumps, (reading.rows, writing.written)))
    assert (b"HEADWATER_STORE_SECRET" in sent, CANARY.encode() in sent) == (True, False)


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "local[2]"])
@pytest.mark.thorough
@pytest.mark.live
def test_a_store_s_secret_is_nowhere_but_in_the_environment(s3: S3Server, tmp_path: Path, master: str) -> None:
    """Executors are processes of their own, and find the secret in their environment: nothing of Spark shows it."""
    logs = tmp_path / "events"
    logs.mkdir()
    events = ("spark.eventLog.enabled=true", "spark.eventLog.compress=false", f"spark.eventLog.dir={logs.as_uri()}")
    said = {
        "SPARK_MASTER": master,
        "HEADWATER_STORE_SECRET": CANARY,
        "PYSPARK_SUBMIT_ARGS": options(*events),
    }
    store = {**s3.options, "secret_access_key": "${HEADWATER_STORE_SECRET}"}
    found = play_aside(tmp_path / "project", said, "stored_story.py", s3.address(), json.dumps(store), str(logs))
    assert (found["master"], found["last"], found["rows"], found["kept"]) == (master, 4, 3, [True])
    assert found["standard error"] == ""
    assert MARK in found["shown"]["plan"]
    assert MARK in found["logs"], "the log of events is looked at"
    assert CANARY not in json.dumps(found)
    assert "check" not in "".join(found["left"]), "what was tried is deleted"


def took_over(world: ScriptedWorld) -> None:
    started: list[Maintainer] = []

    def overtaken() -> None:
        with world.running() as first:
            world.sell(16)
            wait_until(lambda: first.frontier() == 8)
            started.append(world.start())
            world.sell(17)
            wait_until(lambda: first.acceptor.threads()["shop"].has_ended)

    with pytest.raises(LeaseLost):
        overtaken()
    [second] = started
    try:
        second.run(until_idle=True, ticks=None)
    finally:
        second.release()
    assert world.assert_exact(*VIEWS) == 9


def tidied(world: ScriptedWorld) -> None:
    """Every chore is done, and files that no table has any more are gone."""
    before, now = store_at(world.address).sizes(), datetime.now(UTC)
    policy = Policy(
        fold_commits=1,
        journal_files=2,
        files_per_tier=2,
        entries_per_clean=1,
        grace_hours=0,
        stray_hours=0,
        vacuum_every=timedelta(),
    )
    keeper = Housekeeper(world.warehouse, policy, started_at=now)
    done = {type(one.chore).__name__ for _ in range(2) for one in keeper.run(now + timedelta(days=2), Tick(0))}
    assert done >= {"Fold", "Vacuum", "CleanLog"}
    assert before.keys() - store_at(world.address).sizes().keys()


def test_a_bucket_that_is_not_there_is_refused_by_name(remote: ScriptedWorld) -> None:
    remote.address = "s3://no-such-bucket/warehouse"
    remote.write_project({"sold": SOLD})
    with headwater.open(remote.folder, spark=remote.spark) as project:
        for verb in (lambda: project.run(until_idle=True), project.status, lambda: project.query("SELECT 1")):
            with pytest.raises(HeadwaterError) as refused:
                verb()
            assert refused.value.code == "HW-440"
            assert "s3://no-such-bucket/warehouse" in refused.value.summary


def test_a_spark_that_knows_the_store_reads_it_by_itself(spark: SparkSession, s3: S3Server, tmp_path: Path) -> None:
    """Hadoop shows a copy of the store's objects under the scheme: no connector of a real store is here."""
    address = s3.address()
    _, _, bucket, prefix, _ = address.split("/")
    reach(address, {**s3.options, "spark_scheme": "s3a"})
    rows = pa.table({"_tick": range(10), "name": [f"name {number}" for number in range(10)]})
    files = [f"{address}/{write_rows(address, rows.slice(start, 5)).path}" for start in (0, 5)]
    for name in store_at(address).names():
        (tmp_path / name).write_bytes(store_at(address).get(name) or b"")
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # type: ignore[union-attr]  # classic Spark has it
    hadoop.set("fs.s3a.impl", "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme")
    hadoop.set(f"fs.viewfs.mounttable.{bucket}.link./{prefix}/warehouse", tmp_path.as_uri())
    wider = pa.schema([*rows.schema, ("missing", pa.string())])
    itself = read_files(spark, files, wider)
    assert "s3a://" in itself._jdf.queryExecution().toString()
    reach(address, s3.options)
    by_tasks = read_files(spark, files, wider)
    assert "s3a://" not in by_tasks._jdf.queryExecution().toString()
    expected = rows.append_column("missing", pa.nulls(10, pa.string()))
    assert itself.toArrow().sort_by("_tick").equals(expected)
    assert by_tasks.toArrow().sort_by("_tick").equals(expected)


TYPES = {
    "small": pa.array([1, None, -3], pa.int16()),
    "price": pa.array([Decimal("1.50"), None, Decimal("-9.99")], pa.decimal128(10, 2)),
    "day": pa.array([date(1500, 1, 1), None, date(9999, 12, 31)]),
    "at": pa.array(
        [datetime(1500, 1, 1, tzinfo=UTC), None, datetime(9999, 12, 31, tzinfo=UTC)], pa.timestamp("us", "UTC")
    ),
    "local": pa.array([datetime(1, 1, 1), None, datetime(2026, 1, 1)], pa.timestamp("us")),  # noqa: DTZ001 - without zone
    "bytes": pa.array([b"", None, b"\x00\xff"]),
    "text": pa.array(["", None, "Straße"]),
    "real": pa.array([-0.0, None, float("inf")]),
    "flag": pa.array([True, None, False]),
    "list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
    "pair": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}]),
}


def test_tasks_write_and_read_every_type(spark: SparkSession, s3: S3Server) -> None:
    address = s3.address()
    reach(address, s3.options)
    rows = pa.table({"_tick": [1, 2, 3], **TYPES})
    [file] = write_files(to_dataframe(spark, rows).coalesce(1).to(spark_schema(rows.schema)), address)
    assert (file.row_count, file.byte_count) == (3, store_at(address).size(file.path))
    found = read_files(spark, [f"{address}/{file.path}"], rows.schema).toArrow()
    assert found.cast(rows.schema).equals(rows)


def test_tasks_write_in_order_in_files_that_are_told_apart(
    spark: SparkSession, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_files, "ROWS_PER_FILE", 30)
    monkeypatch.setattr(spark_files, "ROWS_PER_GROUP", 7)
    address = s3.address()
    reach(address, s3.options)
    frame = spark.range(0, 200, 1, 3).selectExpr("id * 7919 % 200 AS id", "id AS n")
    files = write_files(frame, address, ("id",))
    assert sum(file.row_count for file in files) == 200
    assert max(file.row_count for file in files) <= 35
    bounds = sorted((file.lowest["id"], file.highest["id"]) for file in files)
    assert all(high < low for (_, high), (low, _) in pairwise(bounds))
    assert {file.path for file in files} == store_at(address).sizes().keys()
    for one in files:
        system, path = arrow_place(f"{address}/{one.path}")
        ids = pq.read_table(path, filesystem=system)["id"].to_pylist()
        assert ids == sorted(ids)
        assert describe(address, one.path, ("id",)) == one
    assert write_files(frame.where("id < 0"), address) == []
