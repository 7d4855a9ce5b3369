"""The only place that builds a Spark session, or takes one.

Where Spark runs is the user's choice, in this order: a session that the caller gives (`headwater.open(spark=…)`), one
that this process has, a server of Spark Connect (`SPARK_REMOTE`), a cluster's master (`SPARK_MASTER`, or `spark.master`
in `spark-defaults.conf` and `PYSPARK_SUBMIT_ARGS`), and otherwise this machine. Settings of `spark-defaults.conf` hold,
but for those that results depend on (`spark.settings`).

A session of somebody else keeps its settings: ours is a new one beside it, with what was set there, and pinned.

Spark listens at 127.0.0.1 where it runs on this machine only. Elsewhere executors have to reach the driver: its address
is what Spark finds, or what `SPARK_LOCAL_IP`, `spark.driver.host` and `spark.driver.bindAddress` say.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headwater.deltas.on_spark import is_connect
from headwater.errors import HeadwaterError
from headwater.model.settings import DEFAULTS
from headwater.observe.events import Listener, SparkStarted, SparkStarting, ignore_event
from headwater.spark.executors import require_executors, within
from headwater.spark.gateway import said_master, start_gateway
from headwater.spark.settings import FAST, apply_setting, pin, pinned
from headwater.spark.view_errors import said_by_spark

_OLDEST_JAVA = 17
_HERE = "127.0.0.1"
_CONNECT_PORT = 15002
_LOOK_SECONDS = 0.5
_PARTITIONS = "spark.sql.shuffle.partitions"
_REMOTE_PARTITIONS = "8"
"""Shuffle partitions at a server of Spark Connect that says nothing: nobody tells us how many cores it has."""

_lock = threading.RLock()
_sessions: list[SparkSession] = []
"""The session that was built here, or connected to, while it runs."""


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


def spark_session(
    listener: Listener = ignore_event,
    *,
    secret: Collection[str] = (),
    given: SparkSession | None = None,
    wait_seconds: float = DEFAULTS.service.executor_wait_seconds,
    memory_bytes: int | None = None,
) -> SparkSession:
    """Return the session of this process, building it the first time. With one that is given, ours beside it.

    `secret` are the environment's variables that Spark must not see; others that may hold a password are hidden too.
    `memory_bytes` is what a virtual machine may use that is started here, where the user's own files say nothing.
    A Spark whose executors take no task within a time is refused.
    """
    with _lock:
        if given is not None:
            return _beside(given, wait_seconds)
        _sessions[:] = [session for session in _sessions if _is_running(session)]
        if _sessions:
            return _sessions[0]
        if (theirs := _of_this_process()) is not None:
            return _beside(theirs, wait_seconds)
        remote = os.environ.get("SPARK_REMOTE")
        listener(SparkStarting())
        began = time.monotonic()
        session = _connect(remote, wait_seconds) if remote else _build(secret, memory_bytes)
        try:
            require_executors(session, wait_seconds)
        except HeadwaterError:
            session.stop()
            raise
        # PySpark also writes every refused query to standard error as JSON; we say what was wrong in our own words.
        PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
        _sessions.append(session)
        listener(SparkStarted(seconds=time.monotonic() - began))
        return session


def _is_running(session: SparkSession) -> bool:
    if is_connect(session):
        return not session.is_stopped  # type: ignore[attr-defined]  # the class of Spark Connect has it
    return SparkContext._active_spark_context is session.sparkContext  # noqa: SLF001 - PySpark has no other way to say it


def _of_this_process() -> SparkSession | None:
    """Return the session that the program around us made, if it did."""
    if (active := SparkSession.getActiveSession()) is not None:
        return active
    if SparkContext._active_spark_context is None:  # noqa: SLF001 - as above
        return None
    return SparkSession.Builder().getOrCreate()


@cache
def _beside(given: SparkSession, wait_seconds: float) -> SparkSession:
    """Return a new session with the settings of the given one, pinned. The given one stays as it is."""
    made = given.newSession()
    fresh = made.conf.getAll
    for key, value in given.conf.getAll.items():
        if fresh.get(key) != value:
            apply_setting(made, key, value)
    pin(made)
    _close_at_exit(made)
    require_executors(made, wait_seconds)
    return made


def _close_at_exit(session: SparkSession) -> None:
    """Close the channel of Spark Connect while its threads run. PySpark closes it after they are gone, and may hang."""
    if is_connect(session):
        atexit.register(session.client.close)


def _connect(remote: str, wait_seconds: float) -> SparkSession:
    """Return a session at a server of Spark Connect. Its address may hold a token, and is never shown whole."""
    parts = urlsplit(remote)
    address = f"{parts.hostname}:{parts.port or _CONNECT_PORT}"
    if not remote.startswith("sc://"):
        raise HeadwaterError(
            "SPARK_REMOTE does not name a server of Spark Connect",
            code="HW-605",
            detail="the address of one begins with sc://",
            hint="export SPARK_REMOTE=sc://HOST:15002, or unset it; SPARK_MASTER names a master",
        )
    if os.environ.get("SPARK_MASTER"):
        raise HeadwaterError(
            "SPARK_REMOTE and SPARK_MASTER are both set",
            code="HW-611",
            detail="one names a server of Spark Connect, the other a master that a driver here would use",
            hint="unset one of them",
        )

    _wait_for_server(parts.hostname or "", parts.port or _CONNECT_PORT, wait_seconds)

    def connect() -> SparkSession:
        session = SparkSession.Builder().remote(remote).getOrCreate()
        if _PARTITIONS not in session.conf.getAll:
            apply_setting(session, _PARTITIONS, _REMOTE_PARTITIONS)
        pin(session)
        _close_at_exit(session)
        return session

    try:
        return within(wait_seconds, connect)
    except ImportError as error:
        why = HeadwaterError(
            "Spark Connect needs packages that are not installed",
            code="HW-606",
            detail=str(error).splitlines()[0],
            hint="pip install 'headwater[connect]'",
        )
    except TimeoutError:
        why = _no_server(address, f"it did not answer within {wait_seconds:g} s")
    except PySparkException as error:
        why = _no_server(address, f"Spark says: {said_by_spark(error)}".replace(remote, address))
    raise why


def memory_limit(session: SparkSession) -> int | None:
    """Return how much memory Spark's driver may use for objects. None over Spark Connect, where nobody tells."""
    if is_connect(session):
        return None
    return int(session.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory())  # type: ignore[union-attr]  # noqa: SLF001 - PySpark has no other way to ask


def _wait_for_server(host: str, port: int, wait_seconds: float) -> None:
    """Wait until a server listens: PySpark would try for ten minutes, also after this process wants to end."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            socket.create_connection((host, port), timeout=max(wait_seconds, 1.0)).close()
        except OSError as error:
            if time.monotonic() >= deadline:
                raise _no_server(f"{host}:{port}", str(error)) from None
            time.sleep(_LOOK_SECONDS)
        else:
            return


def _no_server(address: str, detail: str) -> HeadwaterError:
    return HeadwaterError(
        f"the server of Spark Connect at {address} cannot be used",
        code="HW-607",
        detail=detail,
        hint="is it running, of the same version of Spark, and can this machine reach it? SPARK_REMOTE names it",
    )


def _build(secret: Collection[str], memory_bytes: int | None) -> SparkSession:
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = os.environ.get("SPARK_MASTER") or said_master(os.environ) or "local[*]"
    interrupted = signal.getsignal(signal.SIGINT)
    conf = SparkConf().setAppName("headwater").setMaster(master)
    wanted = {"SPARK_LOCAL_IP": _HERE} if master.startswith("local") else {}
    if memory_bytes is not None:
        wanted["SPARK_DRIVER_MEMORY"] = f"{memory_bytes // 2**20}m"
    start_gateway(conf, secret, wanted)
    said = dict(SparkConf(_jvm=SparkContext._jvm).getAll())  # noqa: SLF001 - what the user's files and options say
    builder = SparkSession.Builder().appName("headwater").master(master)
    for key, value in _settings(master, said).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise HeadwaterError(
            f'Spark cannot be started with the master "{master}"',
            code="HW-608",
            detail=f"Spark says: {said_by_spark(error)}",
            hint="is the master running, and can this machine reach it? SPARK_MASTER or spark.master names it",
        ) from None
    if threading.current_thread() is threading.main_thread():
        # PySpark's own handler asks the JVM to cancel jobs, and hangs if the interrupted call was to the JVM too.
        signal.signal(signal.SIGINT, interrupted)
    session.sparkContext.setLogLevel("ERROR")
    if not master.startswith("local") and _PARTITIONS not in said:
        session.conf.set(_PARTITIONS, max(int(FAST[_PARTITIONS]), session.sparkContext.defaultParallelism))
    pin(session)
    return session


def _settings(master: str, said: dict[str, str]) -> dict[str, str]:
    """Return what a session is built with, besides what was said: what speed depends on gives way to that."""
    settings = {key: value for key, value in FAST.items() if key not in said}
    if master.startswith("local"):
        settings |= {} if "spark.driver.bindAddress" in said else {"spark.driver.bindAddress": _HERE}
    return settings | pinned(said) | {"spark.ui.showConsoleProgress": "false"}
