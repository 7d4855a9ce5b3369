"""Executors on other machines: that they come, and that they see the warehouse's folder.

A driver that no executor can reach waits for ever without a word, and so does one whose master has no free worker. A
folder that is not shared loses rows: an executor writes files where nobody finds them. So the first job is waited for,
for a while, and a file is read and written in the warehouse's folder by tasks before anything else is.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable
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
from headwater.errors import HeadwaterError
from headwater.spark.view_errors import said_by_spark

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
def require_shared(spark: SparkSession, folder: Path) -> None:
    """Refuse a Spark whose executors do not read and write this folder, if tasks run elsewhere.

    As many tasks as there are cores try it, which need not be every executor. A folder that we may not write to is
    only read, and a file that a task does not find there is an error of its own.
    """
    if not has_executors(spark):
        return
    was_there = folder.exists()
    probe = folder / f"spark-check-{uuid.uuid4()}"
    try:
        probe.mkdir(parents=True)
    except PermissionError:
        return
    try:
        _require_shared(spark, probe, folder)
    finally:
        shutil.rmtree(probe, ignore_errors=True)
        if not was_there:
            folder.rmdir()


def _require_shared(spark: SparkSession, probe: Path, folder: Path) -> None:
    tasks = _TASKS_OVER_CONNECT if is_connect(spark) else min(spark.sparkContext.defaultParallelism, _MOST_TASKS)
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
