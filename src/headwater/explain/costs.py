"""What maintaining a view is expected to cost, for `explain`: from the rows that there are, and the last batch seen.

A batch's seconds are those that it really took. Nobody has recomputed the view meanwhile, so what that would take is
estimated: a job of Spark's, its joins, its rows and what is summed up of them, and for relations that have no replica
the way from their source. How selective a view is its replicas tell: they hold the rows that it selects, or some view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.project import Reading
from headwater.model.relation import RelationName, SegmentName
from headwater.project.resolve import ResolvedProject
from headwater.views.steps.keep_lineage import without_lineage
from headwater.views.steps.segment_costs import ViewCost, view_cost
from headwater.views.steps.segments import SegmentedView
from headwater.warehouse.folders import replica_folder
from headwater.warehouse.format import is_warehouse
from headwater.warehouse.query import Warehouse
from headwater.warehouse.replica import Replica

_RECENT_COMMITS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBatch:
    """The ticks (lo, hi] of a batch, how many rows of relations changed in them, and how long a view took to follow."""

    lo: Tick
    hi: Tick
    changed: Mapping[RelationName, int]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How many joins and how many aggregates a view computes."""

    join_count: int = 0
    aggregate_count: int = 0

    @classmethod
    def of(cls, view: SegmentedView) -> Self:
        """Count them in a view's segments."""
        steps = [segment.step for segment in view.segments]
        joins = sum(step.join_count for step in steps)
        return cls(join_count=joins, aggregate_count=sum(step.aggregate_count for step in steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedCost:
    """What a view is expected to cost, and the last batch that changed something it reads, if one is known.

    Of the rows that recomputing it reads, `selected` are joined and summed up, as `work` tells, and `fetched` have to
    be got from sources.
    """

    cost: ViewCost
    batch: SeenBatch | None
    selected: int = 0
    fetched: int = 0
    work: Work = Work()

    @property
    def reads(self) -> str:
        """The rows that are read for a changed row, in words."""
        whole = self.cost.per_commit
        read = {name: rows for name, rows in self.cost.relations.items() if rows or not whole}
        parts = [f"{_about(rows)} for a changed row of {name}" for name, rows in read.items()]
        parts += [f"{_about(whole)} at every commit in which something changed"] if whole else []
        return f"about {', '.join(parts)}" if parts else "nothing"

    @property
    def against_recomputing(self) -> str:
        """What the last batch cost, and what recomputing the view would cost, in words."""
        whole = f"{_about(self.cost.whole)}, about {self.recompute_seconds:.1f} s"
        if self.batch is None:
            return f"no batch is known yet; recomputing the view reads {whole}"
        count, ticks = sum(self.batch.changed.values()), f"ticks {self.batch.lo + 1} to {self.batch.hi}"
        faster = "; that would be faster for batches like this one: see `headwater analyze`"
        return (
            f"{count:,} changed rows, {ticks}: reads about {_about(self.expected)}, took {self.batch.seconds:.1f} s; "
            f"recomputing the view reads {whole}{faster if self.is_recomputing_faster else ''}"
        )

    @property
    def expected(self) -> float:
        """The rows that the last batch is expected to have read."""
        return 0.0 if self.batch is None else self.cost.batch(self.batch.changed)

    @property
    def recompute_seconds(self) -> float:
        """What recomputing the view is estimated to take."""
        job = costs.JOB + costs.STEP * (self.work.join_count + self.work.aggregate_count)
        row = costs.SELECTED_ROW + costs.AGGREGATED_ROW * self.work.aggregate_count
        rows = costs.SCANNED_ROW * self.cost.whole + row * self.selected + costs.FETCHED_ROW * self.fetched
        return (job + rows) / 1000

    @property
    def is_recomputing_faster(self) -> bool:
        """Whether recomputing the view would have been faster than the last batch."""
        return self.batch is not None and self.batch.seconds > self.recompute_seconds

    @property
    def data(self) -> dict[str, Any]:
        """The same as data."""
        return {
            "unit": "rows read per changed row",
            "relations": {str(name): round(read, 1) for name, read in self.cost.relations.items()},
            "recompute_rows": round(self.cost.whole),
            "recompute_seconds": round(self.recompute_seconds, 3),
            "last_batch": None
            if self.batch is None
            else {
                "lo": self.batch.lo,
                "hi": self.batch.hi,
                "changed_rows": sum(self.batch.changed.values()),
                "read_rows": round(self.expected),
                "seconds": round(self.batch.seconds, 3),
                "is_recomputing_faster": self.is_recomputing_faster,
            },
        }

    def of_segment(self, name: RelationName) -> str:
        """Return what a segment costs, in words."""
        return f"{_about(self.cost.segments[name])} read per changed row"


def explain_cost(resolved: ResolvedProject, name: str) -> ExplainedCost:
    """Return what a view is expected to cost."""
    view, readings = resolved.views[name].view, resolved.views[name].readings
    rows = {relation: resolved.relations[relation].row_estimate for relation in view.relations}
    probed = [relation for relation in view.relations if readings[relation] is Reading.PROBE]
    path, batch, selected = resolved.project.warehouse, None, dict(rows)
    if is_warehouse(path):
        warehouse = Warehouse.open(path)
        selected |= {relation: count for relation, count in _held(warehouse).items() if relation in rows}
        selected |= {relation: rows[relation] for relation in probed}
        if name in warehouse.catalog().views:
            frontier = warehouse.frontier(name)
            for segment, table in warehouse.kept_segments(name).items():
                rows[SegmentName(name=segment)] = table.row_count(frontier)
        batch = _last_batch(warehouse, name, view.relations)
    return ExplainedCost(
        cost=view_cost(view, rows),
        batch=batch,
        selected=sum(selected.values()),
        fetched=sum(rows[relation] for relation in probed),
        work=Work.of(without_lineage(view)),
    )


def _held(warehouse: Warehouse) -> dict[RelationName, int]:
    """Return how many rows replicas have."""
    return {
        relation: Replica.open(replica_folder(warehouse.path, relation, entry.generation)).checkpoint.row_count()
        for relation, entry in warehouse.catalog().replicas.items()
    }


def _last_batch(warehouse: Warehouse, view: str, relations: Mapping[RelationName, tuple[str, ...]]) -> SeenBatch | None:
    """Return the newest batch of a view in which one of its relations changed, if it is recent."""
    head = warehouse.head().sequence
    for commit in reversed(warehouse.commits.read(after=max(0, head - _RECENT_COMMITS))):
        statistics = commit.record.statistics
        if statistics is None or view not in statistics.rows or statistics.lo < warehouse.log.horizon():
            continue
        lo, hi = statistics.lo, statistics.hi
        rows = {name: warehouse.log.row_count(name, lo, hi) for name in relations}
        if changed := {name: count for name, count in rows.items() if count}:
            return SeenBatch(lo=lo, hi=hi, changed=changed, seconds=statistics.rows[view].seconds)
    return None


def _about(rows: float) -> str:
    """Return a number of rows as an estimate in words.

    >>> [_about(rows) for rows in (0, 1, 3.4, 12345.6)]
    ['0 rows', '1 row', '3.4 rows', '12,346 rows']
    """
    if rows >= 10 or rows == round(rows):  # noqa: PLR2004 - beyond that fractions tell nothing
        return f"{rows:,.0f} row{'' if round(rows) == 1 else 's'}"
    return f"{rows:.1f} rows"
