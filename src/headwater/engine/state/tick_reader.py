"""Read rows as of one tick, wherever they are: in auxiliary tables, in replicas, or at the sources, rebased.

A source is asked now, and the change log brings its answer to the tick, exactly as a maintainer's answers are: the
sources may go on, and so may a maintainer. One snapshot of each source serves it all the while; it is opened when the
source is first asked, and the log is followed past what it saw before its answers are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pyspark.sql import SparkSession

from headwater.deltas.extent import Content
from headwater.deltas.lookup import look_up
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.stored_bag import ALL_ROWS, BagLookup, BagRequest, BagResult
from headwater.engine.service.wait_until_followed import MaintainersLog
from headwater.engine.state.accepted_log import AcceptedLog, held_changes
from headwater.engine.state.relation_lookup import Snapshots
from headwater.engine.state.replica_reader import StoredReplica, stored_replica
from headwater.engine.state.stored_segment import StoredSegment
from headwater.engine.state.tick_lookup import RebasedLookup
from headwater.engine.state.truncation import truncated_at
from headwater.errors import NotReadable, SourceUnavailable
from headwater.model import costs
from headwater.model.position import Tick
from headwater.model.relation import Relation, RelationName, SegmentName
from headwater.project.resolve import ResolvedProject
from headwater.storage.spark_files import ROWS_PER_GROUP
from headwater.views.steps.segments import SegmentedView
from headwater.warehouse.folders import replica_folder
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse
from headwater.warehouse.replica import Replica


@dataclass(slots=True, kw_only=True)
class TickReader:
    """The rows of a view's relations and segments as of `tick`. A context manager."""

    spark: SparkSession
    resolved: ResolvedProject
    warehouse: Warehouse
    view: SegmentedView
    tick: Tick
    _kept: Mapping[str, KeptTable] = field(init=False)
    _replicas: Mapping[RelationName, StoredReplica] = field(init=False)
    _snapshots: Snapshots = field(init=False)
    _log: AcceptedLog[ArrowBag] = field(init=False)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        """Open what the warehouse has. No source is asked yet."""
        self._kept = self.warehouse.kept_segments(self.view.name)
        self._replicas = {
            name: stored_replica(
                self.spark, self._relation(name), entry, Replica.open(self._folder(name, entry.generation))
            )
            for name, entry in self.warehouse.catalog().replicas.items()
            if name in self.view.relations
        }
        self.warehouse.log.refresh()  # a replica may have been refreshed since the log was opened
        following = MaintainersLog(resolved=self.resolved, warehouse=self.warehouse)
        self._snapshots = self._stack.enter_context(
            Snapshots(self.resolved.sources, self.resolved.relations, following)
        )
        self._log = AcceptedLog(self.warehouse.log, {}, held_changes(self.warehouse.log))

    def __enter__(self) -> Self:
        """Keep what is open for a block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the snapshots. Answers of a server that has restarted meanwhile are worth nothing."""
        valid = error is not None or self._snapshots.are_valid()
        self._stack.close()
        if not valid:
            raise SourceUnavailable(
                "a source restarted, or rewrote a table, while it was asked", code="HW-533", hint="try again"
            )

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request at the tick."""
        return [look_up(self._at_tick(request), request) for request in requests]

    def holds(self, name: RelationName) -> bool:
        """Tell whether it is a relation, or a segment that has an auxiliary table with its rows at the tick."""
        if not isinstance(name, SegmentName):
            return True
        table = self._kept.get(name.name)
        return table is not None and self.tick >= table.horizon()

    def _at_tick(self, request: BagRequest) -> BagLookup:
        """Return where rows are looked up: an auxiliary table, a replica, or the source."""
        name = request.relation
        if isinstance(name, SegmentName):
            segment = next(one for one in self.view.segments if one.name == name)
            table = self._kept[name.name]
            return StoredSegment(
                relation=segment.relation,
                tick=self.tick,
                table=table,
                spark=self.spark,
                few_rows=self._few_rows,
                held_rows=ALL_ROWS,
            )
        replica = self._replicas.get(name)
        if replica is not None and replica.entry.content.covers(_needed(request)):
            return RebasedLookup(others=replica, log=self._log, tick=self.tick)
        self._open(name)
        return RebasedLookup(others=self._snapshots.source(self._relation(name)), log=self._log, tick=self.tick)

    def cost(self, name: RelationName, key_count: int) -> float | None:
        """Return about how long it takes to look rows up, in milliseconds. None: a segment that is not held then."""
        if not isinstance(name, SegmentName):
            rows = self._relation(name).row_estimate
            return costs.JOB + rows * costs.SCANNED_ROW if name in self._replicas else costs.QUESTION
        if not self.holds(name):
            return None
        table = self._kept[name.name]
        rows = table.row_count(self.tick)
        if table.checkpoint.order():
            rows = min(rows, key_count * ROWS_PER_GROUP)
        if rows <= self._few_rows:
            return costs.LOCAL_LOOKUP + rows * costs.LOCAL_ROW
        return costs.JOB + rows * costs.SCANNED_ROW

    @property
    def _few_rows(self) -> int:
        return self.resolved.project.settings.batch.lookup_rows

    def _relation(self, name: RelationName) -> Relation:
        return self.resolved.relations[name]

    def _folder(self, name: RelationName, generation: int) -> str:
        return replica_folder(self.warehouse.path, name, generation)

    def _open(self, name: RelationName) -> None:
        """Open the snapshot of a relation's source, if it is not, and see to it that the log can bring it back."""
        if name.source not in self._snapshots:
            if self._snapshots.open([name.source]):
                raise SourceUnavailable(
                    f'source "{name.source}" does not answer',
                    code="HW-540",
                    detail=f"{name} has no replica with the rows and columns that are needed, so its source is asked",
                    hint="try again when it is back, or read the relation as a replica",
                )
            self.warehouse.log.refresh()
            self._log.settle(name.source, self._snapshots.sight(name.source))
        at = truncated_at(self.warehouse.log, name, self.tick, self.warehouse.log.last_tick)
        if at is not None:
            raise NotReadable(
                f"the rows of {name} at tick {self.tick} are gone",
                code="HW-418",
                detail=f"it was truncated at tick {at}, and no replica of it is kept",
                hint=f"ask for a tick from {at} on, or read {name} as a replica from now on",
            )


def _needed(request: BagRequest) -> Content:
    return Content(columns=tuple(dict.fromkeys((*request.wanted, *request.columns))), rows=request.extent)
