"""Spark, started while something else starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

from pyspark.sql import SparkSession

from headwater.spark.session import spark_session

_OPTIONS = "SPARK_SUBMIT_OPTS"
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""For a virtual machine that lives a minute, the best code is compiled too late: half of the time would go there."""


@contextmanager
def spark_started_aside(java_options: str = SHORT_LIVED) -> Iterator[Future[SparkSession]]:
    """Start Spark in a thread of its own. Stop it in the end, unless it was there before."""
    if SparkSession.getActiveSession() is not None:
        there: Future[SparkSession] = Future()
        there.set_result(spark_session())
        yield there
        return
    with ThreadPoolExecutor(1, thread_name_prefix="spark") as aside:
        starting = aside.submit(_start, java_options)
        try:
            yield starting
        finally:
            starting.result().stop()


def _start(java_options: str) -> SparkSession:
    before = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = f"{before or ''} {java_options}".strip()
    try:
        return spark_session()
    finally:
        if before is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = before
