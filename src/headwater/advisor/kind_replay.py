"""Replay recent batches of a view by each kind of maintenance, beside the warehouse: nothing of it is changed.

    the change log (lo, hi]  ──►  the kind  ──►  changes, which have to be those that the view's table holds
                                   ▲ old rows at lo: of copies, of auxiliary tables, or of sources that were asked now

An answer that is read now is brought back to lo by the change log, as a maintainer's answers are. Copies of relations
are replicas in memory, made for the purpose where the warehouse keeps none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.advisor.analysis import MeasuredCost
from headwater.deltas.extent import all_rows
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import large_session, quoted
from headwater.deltas.stored_bag import UNKNOWN, Bag, StoredBag
from headwater.engine.batch.join_batch import ViewChange, base_changes
from headwater.engine.batch.segment_batch import compute_view_delta
from headwater.engine.bootstrap.kept_segments import kept_segments, with_own_rows
from headwater.engine.state.accepted_log import AcceptedLog
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.engine.state.relation_lookup import CountedLookup, RelationLookup, Snapshots
from headwater.engine.state.replica_reader import ReplicaReader
from headwater.engine.state.runner import Runner
from headwater.engine.state.segment_reader import SegmentReader
from headwater.engine.state.self_lookup import SelfLookup
from headwater.engine.state.view_lookup import view_lookups
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import Maintenance
from headwater.model.memory_budget import DEFAULT_BUDGET, MemoryBudget
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Relation, RelationName, SegmentName
from headwater.model.settings import BatchSettings
from headwater.storage.layered_rows import LayeredRows
from headwater.storage.mapped_rows import MappedFolder
from headwater.storage.stored_rows import parts
from headwater.views.steps.segments import SegmentedView
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.checkpoint import CheckpointSnapshot
from headwater.warehouse.kept_table import KeptTable

Batch = tuple[Tick, Tick]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Played:
    """What one batch took."""

    rows_in_warehouse: int
    rows_in_source: int
    probe_count: int
    seconds: float
    agrees: bool


@dataclass(slots=True, kw_only=True)
class KindReplay:
    """One view and its recent batches, to be computed by any kind."""

    spark: SparkSession
    relations: Mapping[RelationName, Relation]
    table: KeptTable
    auxiliary: Mapping[str, KeptTable]
    guarantee: Guarantee
    batches: Sequence[Batch]
    log: AcceptedLog[Bag]
    runner: Runner
    snapshots: Snapshots
    copies: Mapping[RelationName, ReplicaReader]
    view_bytes: int
    copy_bytes: int
    settings: BatchSettings
    budget: MemoryBudget
    _expected: dict[Batch, Bag] = field(default_factory=dict)

    def measure(self, kind: Maintenance, form: SegmentedView) -> MeasuredCost | None:
        """Return what a kind took for all batches, after a first run to warm up. None if it lacks what it needs."""
        missing = [segment for segment in kept_segments(form) if segment.name.name not in self.auxiliary]
        if missing:
            return None
        self._play(kind, form, self.batches[0])
        played = [self._play(kind, form, batch) for batch in self.batches]
        auxiliary = [segment.name for segment in kept_segments(form)]
        readers = self._readers(form, self.batches[-1][0])
        kept = sum(part.nbytes for name in auxiliary for part in readers[name].rows.parts())
        _release(readers)
        return MeasuredCost(
            space=self.view_bytes + kept + (self.copy_bytes if kind.reads_replicas else 0),
            rows_in_warehouse=sum(one.rows_in_warehouse for one in played),
            rows_in_source=sum(one.rows_in_source for one in played),
            probe_count=sum(one.probe_count for one in played),
            unasked_count=sum(not one.probe_count for one in played),
            seconds=sum(one.seconds for one in played),
            agrees=all(one.agrees for one in played),
        )

    def _play(self, kind: Maintenance, form: SegmentedView, batch: Batch) -> _Played:
        readers = self._readers(form, batch[0])
        lookup = self._lookup(kind, form, batch, readers)
        guarantee = Guarantee.STRONG if kind.recomputes else self.guarantee
        started = time.perf_counter()
        schema = self.table.changes.schema()
        change = compute_view_delta(self.runner, form, schema, guarantee, batch, self.log, lookup, readers, {}, {})
        seconds = time.perf_counter() - started
        asked = lookup.asked.total()
        read = {} if change is None else change.read_rows
        copied = kind.reads_replicas
        own = sum(reader.rows.row_count for reader in readers.values()) if kind.recomputes else 0
        _release(readers)
        return _Played(
            rows_in_warehouse=own
            + sum(count for name, count in read.items() if copied or isinstance(name, SegmentName)),
            rows_in_source=asked.row_count,
            probe_count=asked.probe_count,
            seconds=seconds,
            agrees=self._agrees(change, batch),
        )

    def _readers(self, form: SegmentedView, lo: Tick) -> dict[RelationName, SegmentReader]:
        auxiliary = {
            segment.name: AuxiliaryTable(
                name=segment.name.name,
                relation=segment.relation,
                table=self.auxiliary[segment.name.name],
                spark=self.spark,
                settings=self.settings,
                budget=self.budget,
            )
            for segment in kept_segments(form)
        }
        tables = with_own_rows(self.spark, form, self.table, auxiliary, self.settings, self.budget)
        return {name: one.at(lo) for name, one in tables.items()}

    def _lookup(
        self, kind: Maintenance, form: SegmentedView, batch: Batch, readers: Mapping[RelationName, SegmentReader]
    ) -> CountedLookup:
        copies = self.copies if kind.reads_replicas else {}
        others = RelationLookup(relations=self.relations, replicas=copies, snapshots=self.snapshots)
        if kind is not Maintenance.RUNTIME:
            return others
        return SelfLookup(
            relations=self.relations,
            columns=form.relations,
            net=base_changes(all_rows(form.relations), Guarantee.STRONG, batch, self.log),
            lo=batch[0],
            log=self.log,
            shown=view_lookups(self.spark, form, self.table, batch[0], readers, self.settings.lookup_rows),
            others=others,
        )

    def _agrees(self, change: ViewChange | None, batch: Batch) -> bool:
        """Tell whether a kind's changes are, all ticks together, those of the view's table."""
        schema = pa.schema([*self.table.schema, pa.field(TICK, pa.int64()), pa.field(COUNT, pa.int64())])
        if batch not in self._expected:
            frame = self.table.changes_dataframe(large_session(self.spark), *batch)
            changes = StoredBag(frame=frame.select(*quoted(schema.names)), schema=schema, most=UNKNOWN)
            self._expected[batch] = self.runner.collected(changes.restamped(Tick(0)).net())
        found: Bag = ArrowBag(schema.empty_table()) if change is None else change.rows.typed(schema)
        return not len(found.restamped(Tick(0)).plus(self._expected[batch].negated()).net())


def _release(readers: Mapping[RelationName, SegmentReader]) -> None:
    for reader in readers.values():
        reader.release()


def copy_of(runner: Runner, relation: Relation, rows: Bag, tick: Tick) -> ReplicaReader:
    """Return a replica of a relation's rows at a tick that is kept nowhere: in memory, and mapped if they are many."""
    columns = tuple(rows.columns)
    schema = pa.schema([rows.schema.field(name) for name in (*columns, COUNT)])
    files = None if rows.stored is None else rows.stored.files or ()
    folder = None if files is None else MappedFolder.below(runner.scratch, DEFAULT_BUDGET.rows)
    held = LayeredRows(schema=schema, folder=folder)
    held.fill(part.select(schema.names) for part in parts(rows))
    return ReplicaReader(
        spark=runner.spark,
        relation=relation,
        entry=ReplicaEntry(relation=relation.name, generation=0, columns=columns, key=()),
        rows=held,
        tick=tick,
        stored=None if files is None else CheckpointSnapshot(tick=tick, files=files, version=0),
        held_rows=runner.held_rows,
    )


def byte_count(rows: Bag) -> int:
    """Return about how many bytes the rows' values have. Of many the first of them tell."""
    sample = next(part for part in parts(rows))
    values = sample.drop_columns([TICK, COUNT]).nbytes
    return round(len(rows) * values / sample.num_rows) if sample.num_rows else 0
