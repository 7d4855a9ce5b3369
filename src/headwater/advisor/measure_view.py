"""Measure what advice on a view rests on: sizes at the sources, rows of what is kept, rates of updates and traces."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from statistics import median

import pyarrow.compute as pc
import pyarrow.dataset as ds

from headwater.advisor.estimate_rows import RowEstimates
from headwater.advisor.from_segments import Measured
from headwater.advisor.statistics import RelationStatistics, SystemStatistics, UsageStatistics
from headwater.changelog.change_log import ChangeLog
from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.relation import TICK, RelationName, SegmentName
from headwater.project.resolve import ResolvedProject
from headwater.sources.measure import SourceMeasure
from headwater.storage.data_file import place
from headwater.views.steps.segments import SegmentedView
from headwater.warehouse.commit_record import BatchStatistics, Commit
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse
from headwater.warehouse.traces import traces_per_hour


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPace:
    """The number of batches, and the milliseconds of one of their Spark jobs."""

    batch_count: int
    job_milliseconds: float


def batch_pace(commits: Sequence[Commit], after: Tick) -> BatchPace:
    """Return how the batches went that came beyond a tick."""
    statistics = [commit.record.statistics for commit in commits]
    batches = [one for one in statistics if one is not None and one.hi > after]
    timed = [_asked_and_joined(one) / one.spark_job_count for one in batches if one.spark_job_count]
    return BatchPace(batch_count=len(batches), job_milliseconds=1000 * median(timed) if timed else costs.JOB)


def _asked_and_joined(batch: BatchStatistics) -> float:
    """Return the seconds of asking and joining. Asking a source is little beside a job."""
    return batch.seconds.get("probe", 0.0) + batch.seconds.get("spark", 0.0)


_BLOCK_BYTES = 8192
_TIMED_BYTES = 1_000_000
_RECENT_TICKS = 5_000
_RECENT_COMMITS = 1_000
_LEAST_HOURS = 1 / 60
"""What happened within a minute is no reason to expect as much of every other."""
_ASSUMED_TRACES = 1.0
"""Traces per hour where none was counted: with none at all, no lineage would ever be worth keeping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRate:
    """How often a view is traced per hour, and whether that was counted."""

    per_hour: float
    is_counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentTicks:
    """The ticks (after, upto], and the hours since the first of them."""

    after: Tick
    upto: Tick
    hours: float

    @property
    def per_hour(self) -> float:
        """How many ticks came in an hour."""
        return (self.upto - self.after) / self.hours


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rate:
    per_hour: float
    rows: float


def measure_sources(resolved: ResolvedProject) -> dict[str, SourceMeasure]:
    """Ask every source for its sizes and its pace."""
    return {name: source.measure(resolved.followed(name)) for name, source in resolved.sources.items()}


def tracing_rate(warehouse: Warehouse, view: str, said: float | None) -> TraceRate:
    """Return how often a view is traced: as given, else as was counted, else a guess."""
    counted = traces_per_hour(warehouse.path, view, datetime.now(UTC)) if said is None else said
    return TraceRate(per_hour=_ASSUMED_TRACES if counted is None else counted, is_counted=counted is not None)


def measure_view(
    warehouse: Warehouse,
    view: SegmentedView,
    sources: Mapping[str, SourceMeasure],
    traced: TraceRate,
    memory_bytes: int,
) -> Measured:
    """Return the statistics of a view, which keeps no lineage. A replica of up to `memory_bytes` is in memory."""
    sizes = {name: sources[name.source].relations[name] for name in view.relations}
    kept = warehouse.kept_segments(view.name)
    frontier = warehouse.frontier(view.name)
    counted: dict[RelationName, float] = {
        SegmentName(name=name): float(kept[name].row_count(frontier)) for name in kept
    }
    counted[view.output.name] = float(warehouse.kept_table(view.name).row_count(frontier))
    estimates = RowEstimates(view=view, relations=sizes, counted=counted)
    recent = recent_ticks(warehouse.log)
    rates = _update_rates(warehouse.log, view.relations, recent)
    pace = batch_pace(warehouse.commits.read(max(0, warehouse.head().sequence - _RECENT_COMMITS)), recent.after)
    return Measured(
        relations={
            name: RelationStatistics(
                tuple_num=size.rows,
                tuple_size=size.row_size(view.relations[name]),
                update_rate=rates[name].per_hour,
                update_size=rates[name].rows,
                source=_system(sources[name.source]),
            )
            for name, size in sizes.items()
        },
        segment_rows=estimates.segment_rows(),
        segment_row_sizes=estimates.segment_row_sizes(),
        usage=UsageStatistics(
            query_rate=traced.per_hour, batch_rate=pace.batch_count / recent.hours if pace.batch_count else inf
        ),
        warehouse=SystemStatistics(
            block_size=_BLOCK_BYTES,
            disk_cost=_block_milliseconds([warehouse.kept_table(view.name), *kept.values()]),
            trip_cost=pace.job_milliseconds,
            memory_size=memory_bytes,
            read_cost=costs.LOCAL_LOOKUP,
            write_cost=pace.job_milliseconds,
            compute_cost=pace.job_milliseconds,
        ),
    )


def _system(source: SourceMeasure) -> SystemStatistics:
    return SystemStatistics(
        block_size=source.block_bytes,
        disk_cost=1000 * source.block_seconds,
        net_cost=1000 * source.byte_seconds,
        trip_cost=1000 * source.trip_seconds + costs.ANSWER,
        wait_cost=costs.QUESTION,
    )


def recent_ticks(log: ChangeLog) -> RecentTicks:
    """Return what rates are taken from: the newest ticks of the log, with the quiet time since the last of them."""
    last = log.last_tick
    after = Tick(max(log.horizon(), last - _RECENT_TICKS))
    times = [one.committed_at for _, one in log.transactions(None, after, last)]
    hours = max((datetime.now(UTC) - min(times)) / timedelta(hours=1), _LEAST_HOURS) if times else 1.0
    return RecentTicks(after=after, upto=last, hours=hours)


def _update_rates(
    log: ChangeLog, relations: Mapping[RelationName, tuple[str, ...]], recent: RecentTicks
) -> dict[RelationName, _Rate]:
    """Return how many transactions per hour change each relation, and how many rows each of them, lately."""
    found = {}
    for name in relations:
        parts = log.parts(name, (), recent.after, recent.upto) if name in log.relations() else ()
        ticks, rows, last = 0, 0, None
        for part in parts:  # in tick order: a tick may go on in the next part
            ticks += pc.count_distinct(part[TICK]).as_py() - (part[TICK][0].as_py() == last)
            rows, last = rows + part.num_rows, part[TICK][-1].as_py()
        found[name] = _Rate(per_hour=ticks / recent.hours, rows=rows / ticks if ticks else 0.0)
    return found


def _block_milliseconds(tables: list[KeptTable]) -> float:
    """Return how long it takes to scan a block of what is kept, if there is enough to time it."""
    largest = max(tables, key=lambda table: table.checkpoint.row_count())
    files = largest.checkpoint.snapshot().files
    if not files:
        return costs.BLOCK
    system, _ = place(largest.folder)
    began = time.perf_counter()
    scanned = ds.dataset([place(file)[1] for file in files], format="parquet", filesystem=system).to_table().nbytes
    seconds = time.perf_counter() - began
    return 1000 * seconds * _BLOCK_BYTES / scanned if scanned > _TIMED_BYTES else costs.BLOCK
