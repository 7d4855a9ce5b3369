"""What happened to a view: the commits that changed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise

from headwater.observe.status import HistoryEntry, MessageCount
from headwater.warehouse.commit_record import Commit


def view_history(commits: Sequence[Commit], view: str) -> list[HistoryEntry]:
    """Return what commits did to a view, leaving out those that did not change it."""
    batches = [commit for commit in commits if commit.record.statistics is not None]
    took = {
        before.sequence: said.commit_before_seconds
        for before, after in pairwise(batches)
        if (said := after.record.statistics) is not None and before.epoch == after.epoch
    }
    return [
        HistoryEntry(
            lo=statistics.lo,
            hi=statistics.hi,
            committed_at=commit.committed_at,
            rows_added=delta.rows_added,
            rows_removed=delta.rows_removed,
            asked=tuple(MessageCount(source=name, view=view, **asdict(count)) for name, count in delta.asked.items()),
            spark_job_count=statistics.spark_job_count,
            seconds=statistics.seconds,
            view_seconds=delta.seconds,
            commit_seconds=took.get(commit.sequence),
        )
        for commit in commits
        if (statistics := commit.record.statistics) is not None
        and (delta := statistics.rows.get(view)) is not None
        and delta.rows_added + delta.rows_removed > 0
    ]
