"""Count the Spark jobs that a piece of work runs: the fixed cost of a batch, which no row count explains.

Jobs are counted by their group, so that what other threads run meanwhile (checkpoints, a bootstrap) does not count.
Spark Connect does not tell of jobs: there the count is not known.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headwater.deltas.on_spark import is_connect

_GROUP = "spark.jobGroup.id"

Given = TypeVar("Given")
Made = TypeVar("Made")


class SparkJobs:
    """Counts the jobs that its block starts on this thread, and on the threads it is `shared` with."""

    def __init__(self, spark: SparkSession) -> None:
        """Count nothing yet."""
        self._context = None if is_connect(spark) else spark.sparkContext
        self._group = f"headwater-{uuid.uuid4()}"

    def __enter__(self) -> Self:
        """Count what this thread runs from now on."""
        if self._context is not None:
            self._context.setLocalProperty(_GROUP, self._group)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Count no more."""
        if self._context is not None:
            self._context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]  # PySpark declares str; None removes the property

    def count(self) -> int | None:
        """Return how many jobs there were, None if Spark does not tell. It tells of one a moment after it began."""
        return None if self._context is None else len(self._context.statusTracker().getJobIdsForGroup(self._group))


def shared(work: Callable[[Given], Made]) -> Callable[[Given], Made]:
    """Return the work so that the jobs it runs on another thread count with those of this one."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - `getOrCreate` would start one beside Spark Connect
    if context is None:
        return work
    group = context.getLocalProperty(_GROUP)

    def counted(given: Given) -> Made:
        context.setLocalProperty(_GROUP, group)  # type: ignore[arg-type]  # as above
        return work(given)

    return counted
