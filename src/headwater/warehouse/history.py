"""What happened to a view: the commits that changed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from headwater.model.position import Tick
from headwater.observe.probe_stats import AskedCount
from headwater.warehouse.commit_record import Commit


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCommit:
    """What one commit did to a view: its ticks (lo, hi], the rows that came and went, seconds by part.

    `asked` is what sources were asked for this view.
    """

    sequence: int
    lo: Tick
    hi: Tick
    committed_at: datetime
    rows_added: int
    rows_removed: int
    asked: Mapping[str, AskedCount]
    spark_job_count: int
    seconds: Mapping[str, float]


def view_history(commits: Sequence[Commit], view: str) -> list[ViewCommit]:
    """Return what commits did to a view, leaving out those that did not change it."""
    return [
        ViewCommit(
            sequence=commit.sequence,
            lo=statistics.lo,
            hi=statistics.hi,
            committed_at=commit.committed_at,
            rows_added=delta.rows_added,
            rows_removed=delta.rows_removed,
            asked=delta.asked,
            spark_job_count=statistics.spark_job_count,
            seconds=statistics.seconds,
        )
        for commit in commits
        if (statistics := commit.record.statistics) is not None
        and (delta := statistics.rows.get(view)) is not None
        and delta.rows_added + delta.rows_removed > 0
    ]
