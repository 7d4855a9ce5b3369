"""How batches go in a warehouse, by its own commits: how many there are, and what a Spark job takes in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from headwater.position import Tick
from headwater.warehouse.commit_record import BatchStatistics, Commit

_JOB_MILLISECONDS = 100.0
"""What a small Spark job takes, warm, where none was timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPace:
    """So many batches, and the milliseconds of one of their Spark jobs."""

    batch_count: int
    job_milliseconds: float


def batch_pace(commits: Sequence[Commit], after: Tick) -> BatchPace:
    """Return how the batches went that came beyond a tick."""
    known = [commit.record.statistics for commit in commits]
    batches = [one for one in known if one is not None and one.hi > after]
    timed = [_job_seconds(one) for one in batches if one.spark_job_count]
    return BatchPace(batch_count=len(batches), job_milliseconds=1000 * median(timed) if timed else _JOB_MILLISECONDS)


def _job_seconds(batch: BatchStatistics) -> float:
    """Return the time of asking and joining by the jobs it took; asking a source is little beside a job."""
    return (batch.seconds.get("probe", 0.0) + batch.seconds.get("spark", 0.0)) / batch.spark_job_count
