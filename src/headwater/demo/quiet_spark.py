"""Spark, started while something else starts, and without the lines that its launcher writes on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.runtime.spark import spark_session

_OPTIONS = "SPARK_SUBMIT_OPTS"
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a virtual machine that lives a minute, the best code is compiled too late: half of the time would go there."""


@contextmanager
def spark_started_aside(log: Path) -> Iterator[Future[SparkSession]]:
    """Start Spark in a thread of its own; stop it in the end, unless it was there before."""
    if (session := SparkSession.getActiveSession()) is not None:
        there: Future[SparkSession] = Future()
        there.set_result(session)
        yield there
        return
    with ThreadPoolExecutor(1, thread_name_prefix="spark") as aside:
        starting = aside.submit(_start, log)
        try:
            yield starting
        finally:
            starting.result().stop()


def _start(log: Path) -> SparkSession:
    before = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = f"{before or ''} {_SHORT_LIVED}".strip()
    try:
        with _errors_into(log):
            return spark_session()
    finally:
        if before is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = before


@contextmanager
def _errors_into(log: Path) -> Iterator[None]:
    """Let what this process and its new children write on standard error go to a file, for a block.

    PySpark has no other way to say where the virtual machine's warnings should go; it inherits ours when it is started.
    """
    sys.stderr.flush()
    terminal = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(terminal, 2)
            os.close(terminal)
