"""The only place that builds a Spark session.

Pinned for every warehouse: UTC, ANSI mode, microsecond timestamps in Parquet (Spark's default INT96 turned 9999-12-31
into 1816). Chosen for small batches: few shuffle partitions, no user interface, only small tables turned into rows by
the driver (`deltas.on_spark`), no adaptive execution, which takes a third of a small query's time, and room to keep the
code of all queries: they are the same in every batch, and Spark compiles again what it has dropped (by default it
keeps a hundred pieces; a view of five segments has more). `SPARK_MASTER` and the usual `spark-defaults.conf` still
decide where it runs.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from pathlib import Path

from pyspark import SparkConf
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headwater.errors import HeadwaterError
from headwater.observe.events import Listener, SparkStarted, SparkStarting, ignore_event
from headwater.spark.gateway import start_gateway

_OLDEST_JAVA = 17


def check_java() -> None:
    """Refuse to start without a Java that Spark 4 can run on."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise HeadwaterError(
            "Spark needs Java, and there is none",
            code="HW-601",
            detail=f"JAVA_HOME is {home or 'not set'} and no `java` is on the PATH",
            hint="install Java 17 or newer (on Debian: apt-get install openjdk-17-jre-headless)",
        )
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603 - the java found above
    version = re.search(r'version "(\d+)', printed)
    if version is None or int(version[1]) < _OLDEST_JAVA:
        raise HeadwaterError(
            f"Spark 4 needs Java {_OLDEST_JAVA} or newer",
            code="HW-603",
            detail=printed.splitlines()[0] if printed else f"{java} printed no version",
            hint="install a newer Java, and point JAVA_HOME at it",
        )


def spark_session(listener: Listener = ignore_event, *, secret: Collection[str] = ()) -> SparkSession:
    """Return the session of this process, building it the first time.

    `secret` are the environment's variables that Spark must not see; others that may hold a password are hidden too.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    check_java()
    listener(SparkStarting())
    began = time.monotonic()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    master = os.environ.get("SPARK_MASTER", "local[*]")
    interrupted = signal.getsignal(signal.SIGINT)
    start_gateway(SparkConf().setAppName("headwater").setMaster(master).setAll([*_SETTINGS.items()]), secret)
    builder = SparkSession.Builder().appName("headwater").master(master)
    for key, value in _SETTINGS.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if threading.current_thread() is threading.main_thread():
        # PySpark's own handler asks the JVM to cancel jobs, and hangs if the interrupted call was to the JVM too.
        signal.signal(signal.SIGINT, interrupted)
    session.sparkContext.setLogLevel("ERROR")
    # PySpark also writes every refused query to standard error as JSON; we say what was wrong in our own words.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    listener(SparkStarted(seconds=time.monotonic() - began))
    return session


_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": os.environ.get("SPARK_DRIVER_MEMORY", "3g"),
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.localRelationThreshold": "256KB",
    "spark.sql.codegen.cache.maxEntries": "5000",
    # Spark 4.3 moves a projection with a linked sub-query below LIMIT, and then drops the ORDER BY that it stood on.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughLimitAndOffset",
}
