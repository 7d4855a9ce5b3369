"""Maintainers to be killed: a process that has everything imported, and forks one maintainer per line it reads.

    python maintainer_child.py PROJECT   reads lines "FAIL_POINT" (or an empty one), prints "pid N", then what it hears

A maintainer that is forked here is a whole one — it follows, accepts, asks, appends, commits — in a process of its own,
and `kill -9` ends it like any other. Only Spark's JVM is not started for each: it is the one that the environment names
(as a cluster would be), and what a killed maintainer asked of it may well finish after its death.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from headwater.engine.service.start import start_maintainer
from headwater.fail_points import VARIABLE
from headwater.observe.events import Event
from headwater.project.file import load
from headwater.project.resolve import resolve_project


def attach() -> SparkSession:
    """Return a session of the Spark that PYSPARK_GATEWAY_PORT names."""
    gateway = launch_gateway()
    jvm = gateway.jvm
    running = jvm.org.apache.spark.api.java.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate())
    conf = SparkConf(_jvm=jvm, _jconf=running.getConf())
    return SparkSession(SparkContext(gateway=gateway, jsc=running, conf=conf)).newSession()


def maintain(folder: Path, fail_point: str) -> None:
    """Maintain until killed, saying the name of everything that happens."""
    os.environ[VARIABLE] = fail_point

    def say(event: Event) -> None:
        os.write(1, f"{type(event).__name__}\n".encode())

    spark = attach()
    start_maintainer(spark, resolve_project(load(folder), spark), say).run(until_idle=False, ticks=None)


def main(folder: Path) -> None:
    """Fork one maintainer after the other."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            maintain(folder, line.strip())
            os._exit(0)
        os.write(1, f"pid {child}\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(1, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
