"""Executors on other machines: that they come, and that they see the warehouse.

A driver that no executor can reach waits for ever without a word, and so does one whose master has no free worker. A
folder that is not shared loses rows: an executor writes files where nobody finds them. An object store is shared by
itself, but executors need our code and the right to use it. So the first job is waited for, for a while, and a file is
read and written in the warehouse by tasks before anything else is.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.deltas.on_spark import is_connect
from headwater.errors import HeadwaterError, WarehouseRefused
from headwater.spark.view_errors import said_by_spark
from headwater.storage.object_store import is_remote, spark_address, store_at
from headwater.storage.spark_files import read_files, write_files
from headwater.storage.storage_errors import stored
from headwater.warehouse.folders import passing_name

_MOST_TASKS = 64
_TASKS_OVER_CONNECT = 8

Answer = TypeVar("Answer")


def within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """Return what work on another thread gives, or raise what it raises: `TimeoutError` if it takes longer."""
    answers: list[Answer] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again below, on the thread that waits
            errors.append(error)

    thread = threading.Thread(target=run, name="first answer of Spark", daemon=True)  # no exit of ours waits for it
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError
    return answers[0]


def has_executors(spark: SparkSession) -> bool:
    """Tell whether tasks run in other processes than the driver, or whether that is not known."""
    return is_connect(spark) or not _is_local(spark.sparkContext.master or "")


def require_executors(spark: SparkSession, wait_seconds: float) -> None:
    """Refuse a Spark none of whose executors takes a task within a time."""
    if not has_executors(spark):
        return
    tag = f"headwater-first-{uuid.uuid4()}"

    def first_job() -> None:
        spark.addTag(tag)
        spark.range(0, 1, 1, 1).count()

    try:
        within(wait_seconds, first_job)
    except TimeoutError:
        detail = f"the first task was not taken within {wait_seconds:g} s ([settings.service] executor_wait)"
    except (PySparkException, Py4JError) as error:
        detail = f"the first task failed; Spark says: {said_by_spark(error)}"
    else:
        return
    threading.Thread(target=spark.interruptTag, args=(tag,), daemon=True).start()  # a server may not answer that either
    raise HeadwaterError(
        "no executor of Spark runs a task", code="HW-609", detail=f"{detail}{_place(spark)}", hint=_LOOK
    )


_LOOK = (
    "does the master list a worker with free cores and enough memory (spark.executor.memory, spark.cores.max)? Can its "
    "host reach the driver? Set SPARK_LOCAL_IP or spark.driver.host to an address of this machine that it can reach, "
    "and let spark.driver.port and spark.blockManager.port through. The worker's own log says why an executor ended"
)


def _place(spark: SparkSession) -> str:
    if is_connect(spark):
        return ""
    context = spark.sparkContext
    host, port = (context.getConf().get(f"spark.driver.{key}", "?") for key in ("host", "port"))
    return f'; the master is "{context.master}", and executors look for the driver at {host}:{port}'


@cache
def require_shared(spark: SparkSession, warehouse: str) -> None:
    """Refuse a Spark whose executors do not read and write a warehouse, if tasks run elsewhere.

    As many tasks as there are cores try it, which need not be every executor. A warehouse that we may not write to is
    only read, and a file that a task does not find there is an error of its own.
    """
    if is_remote(warehouse):
        if has_executors(spark) or spark_address(warehouse) is not None:
            _require_reachable(spark, warehouse)
    elif has_executors(spark):
        _require_folder(spark, Path(warehouse))


def _require_reachable(spark: SparkSession, warehouse: str) -> None:
    """Let tasks write to an object store, and read what they wrote."""
    tasks = _task_count(spark)
    probe = f"{warehouse}/{passing_name(datetime.now(UTC))}"
    try:
        with stored(probe):
            store_at(probe).put("here", b"")
    except WarehouseRefused:
        return
    try:
        written = write_files(spark.range(0, tasks, 1, tasks), probe)
        files = [f"{probe}/{file.path}" for file in written]
        read = read_files(spark, files, pa.schema([("id", pa.int64())])).count()
    except (PySparkException, Py4JError, HeadwaterError) as error:
        said = (
            said_by_spark(error)
            if isinstance(error, PySparkException | Py4JError)
            else f"{error.summary}; {error.detail}"
        )
        raise _not_reachable(warehouse, f"Spark says: {said}") from None
    finally:
        store_at(probe).delete()
    if read != tasks:
        raise _not_reachable(warehouse, f"they read {read} of {tasks} rows that they wrote")


def _not_reachable(warehouse: str, detail: str) -> HeadwaterError:
    return HeadwaterError(
        "Spark's executors cannot use the warehouse's object store",
        code="HW-612",
        detail=f'tasks have to read and write "{warehouse}" as this process does; {detail}',
        hint="install this version of headwater where executors find it (PYSPARK_PYTHON), give them the store's "
        "credentials in their own environment or by the machine's role, and let them reach its endpoint; "
        "`spark_scheme` in [warehouse.storage] needs a Spark that knows this scheme",
    )


def _require_folder(spark: SparkSession, folder: Path) -> None:
    was_there = folder.exists()
    probe = folder / f"{passing_name(datetime.now(UTC))}"
    try:
        probe.mkdir(parents=True)
    except PermissionError:
        return
    try:
        _require_files(spark, probe, folder)
    finally:
        shutil.rmtree(probe, ignore_errors=True)
        if not was_there:
            folder.rmdir()


def _task_count(spark: SparkSession) -> int:
    return _TASKS_OVER_CONNECT if is_connect(spark) else min(spark.sparkContext.defaultParallelism, _MOST_TASKS)


def _require_files(spark: SparkSession, probe: Path, folder: Path) -> None:
    tasks = _task_count(spark)
    files = [str(probe / f"{number}.parquet") for number in range(tasks)]
    for number, file in enumerate(files):
        pq.write_table(pa.table({"id": [number]}), file)
    written = probe / "written"
    try:
        read = spark.read.schema("id long").parquet(*files).count()
        if read != tasks:
            raise _not_shared(folder, f"they read {read} of {tasks} rows that were written here")
        spark.range(0, tasks, 1, tasks).write.parquet(str(written))
    except (PySparkException, Py4JError) as error:
        raise _not_shared(folder, f"Spark says: {said_by_spark(error)}") from None
    found = ds.dataset(written, format="parquet").count_rows() if written.exists() else 0
    if found != tasks:
        raise _not_shared(folder, f"of {tasks} rows that they wrote there, {found} are here")


def _not_shared(folder: Path, detail: str) -> HeadwaterError:
    return HeadwaterError(
        "Spark's executors do not share the warehouse's folder",
        code="HW-610",
        detail=f'they run in other processes, and have to read and write "{folder}" as this one does; {detail}',
        hint="mount one folder (NFS, say) at this same path on every machine that runs tasks, writable by the account "
        'that they run as, and name it: [warehouse] path = "…"; spark.hadoop.fs.defaultFS has to be file:///',
    )


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")
