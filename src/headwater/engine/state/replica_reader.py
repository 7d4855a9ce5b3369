"""Look rows up in a replica: a relation's rows at one tick, and the changes since, in layers in memory or mapped.

A replica is an answer read at the tick it was refreshed to, and is rebased like any other. The base is never rewritten
in place: changes are laid on top until they are many, then a new checkpoint is made. A lookup costs as much as what it
finds. Of the change log only those rows count that the replica holds (`ReplicaEntry.rows`): an update may bring a row
in, or take it out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.extent import Content
from headwater.deltas.first_rows import limited
from headwater.deltas.lookup import Origin, RowResult, SawTicks
from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.on_spark import collect_few, large_session, passing, quoted, to_dataframe, under_keys, unfold
from headwater.deltas.stored_bag import ALL_ROWS, UNKNOWN, Bag, BagRequest, BagResult, StoredBag
from headwater.model.memory_budget import DEFAULT_BUDGET, MemoryBudget
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation, RelationName
from headwater.model.settings import DEFAULTS, BatchSettings
from headwater.storage.layered_rows import LayeredRows
from headwater.storage.mapped_rows import MappedFolder
from headwater.storage.spark_files import read_files
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.checkpoint import CheckpointSnapshot
from headwater.warehouse.log_rows import spark_rows
from headwater.warehouse.replica import Replica, ReplicaState
from headwater.warehouse.state import net


@dataclass(slots=True, kw_only=True)
class ReplicaReader:
    """Rows of a relation as of `tick`. `stored` is the checkpoint that the rows' base was read from, if from one."""

    spark: SparkSession
    relation: Relation
    entry: ReplicaEntry
    rows: LayeredRows
    tick: Tick
    stored: CheckpointSnapshot | None = None
    held_rows: int = DEFAULTS.batch.held_rows
    """Up to this many rows are looked up here and handed to Spark from here. More it reads from files."""
    log: ChangeLog | None = None
    """Where Spark reads the changes since the checkpoint, if they are many."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Guards what is laid on top and `tick`, which change together while a bootstrap or a TRUNCATE reads them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The copied columns."""
        return self.entry.columns

    def change_parts(self, log: ChangeLog, after: Tick, upto: Tick) -> Iterator[pa.Table]:
        """Yield by what the ticks (after, upto] change what it holds, in tables of bounded size."""
        for part in log.parts(self.relation.name, self.columns, after, upto):
            if len(bag := ArrowBag(part).selected(self.entry.rows)):
                yield bag.table

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request, in entries that are not netted. Many are not held."""
        return [limited(self._found(request), request) for request in requests]

    def _found(self, request: BagRequest) -> BagResult:
        if self._most(request) > self.held_rows:
            return self._stored(request)
        keys = None if request.keys is None else request.keys.held
        columns = request.columns
        found = self.rows.entries() if keys is None else self.rows.matching(columns, keys.named(columns))
        return replace(_result(found, request, self.relation, self.tick), has_all_rows=keys is None)

    def _most(self, request: BagRequest) -> int:
        """Return how many entries a request finds at most."""
        if request.keys is None or (keys := request.keys.held) is None:
            return self.rows.row_count
        return self.rows.count_matching(request.columns, keys.named(request.columns))

    def _stored(self, request: BagRequest) -> BagResult:
        """Return rows on Spark. If there are as many keys as rows, all rows."""
        with self._lock:
            frame, tick, most = self._netted(), self.tick, self.rows.row_count
        schema = self.relation.arrow_schema(self.columns)
        rows = StoredBag.of_counted(frame, schema, tick, most, is_net=True)
        is_narrow = request.keys is not None and request.keys.most < most
        found = rows.matching(request.columns, request.keys) if request.keys is not None and is_narrow else rows
        picked = found if request.wanted == self.columns else found.picked(request.wanted)
        return RowResult(
            rows=picked,
            sight=SawTicks(upto=tick),
            origin=Origin.REPLICA,
            has_all_rows=request.keys is not None and not is_narrow,
        )

    def entry_parts(self, log: ChangeLog, tick: Tick) -> Iterator[pa.Table]:
        """Yield what sums up to the rows at a later tick, with `_count`, in tables of bounded size."""
        with self._lock:
            parts, at = [*self.rows.parts()], self.tick
        assert at <= tick, "it is not taken back here"
        yield from parts
        for part in self.change_parts(log, at, tick):
            yield part.select([*self.columns, COUNT])

    def _dataframe(self, log: ChangeLog) -> DataFrame:
        """Return every entry, signed. What is not few Spark reads from files."""
        names = [*self.columns, COUNT]
        if self.stored is None or (self.rows.is_held and self.rows.row_count <= self.held_rows):
            return to_dataframe(self.spark, self.rows.entries())
        base = read_files(self.spark, self.stored.files, self.rows.schema)
        if self.rows.change_count > self.held_rows and log.horizon() <= self.stored.tick:
            changes = self._changes_on_spark(log, self.stored.tick, self.tick)
        else:
            changes = to_dataframe(self.spark, pa.concat_tables([self._nothing(), *self.rows.changes()]))
        return base.select(*quoted(names)).unionByName(changes)

    def _changes_on_spark(self, log: ChangeLog, after: Tick, upto: Tick) -> DataFrame:
        """Return by what the ticks (after, upto] change what it holds, with `_count`."""
        if log.row_count(self.relation.name, after, upto) > self.held_rows:
            rows = spark_rows(self.spark, log, self.relation.name, self.columns, after=after, upto=upto)
            return rows.where(passing(self.entry.rows)).select(*quoted([*self.columns, COUNT]))
        parts = (part.select([*self.columns, COUNT]) for part in self.change_parts(log, after, upto))
        return to_dataframe(self.spark, pa.concat_tables([self._nothing(), *parts]))

    def _nothing(self) -> pa.Table:
        return self.rows.schema.empty_table()

    def _netted(self) -> DataFrame:
        """Return the rows at `tick`, netted, from where most are stored. Rows that no change touches are only read."""
        session, names = large_session(self.spark), [*self.columns, COUNT]
        if self.stored is None:
            base = to_dataframe(session, self.rows.base())
        else:
            base = read_files(session, self.stored.files, self.rows.schema)
        schema = self.relation.arrow_schema(self.columns)
        rows = StoredBag.of_counted(base.select(*quoted(names)), schema, self.tick, self.rows.base_count, is_net=True)
        return rows.changed_by(self._laid_on(), self.tick).counted

    def _laid_on(self) -> Bag:
        """Return what is laid over the base."""
        is_held = self.rows.change_count <= self.held_rows
        if is_held or self.stored is None or self.log is None or self.log.horizon() > self.stored.tick:
            return ArrowBag.of_counted(pa.concat_tables([self._nothing(), *self.rows.changes()]), self.tick)
        schema, since = self.relation.arrow_schema(self.columns), self.stored.tick
        session = large_session(self.spark)
        frame = spark_rows(session, self.log, self.relation.name, self.columns, after=since, upto=self.tick)
        changes = frame.where(passing(self.entry.rows))
        return StoredBag.of_counted(changes, schema, self.tick, self.rows.change_count)

    def dataframe_at(self, log: ChangeLog, tick: Tick) -> DataFrame:
        """Return the rows at a tick, before or after that of this reader, netted, with `_count`."""
        with self._lock:
            rows, at, is_netted = self._dataframe(log), self.tick, not self.rows.change_count
        if at == tick:
            return rows if is_netted else net(rows, list(self.columns))
        between = self._changes_on_spark(log, min(at, tick), max(at, tick))
        signed = between if at < tick else between.withColumn(COUNT, -F.col(COUNT))
        return net(rows.unionByName(signed), list(self.columns))

    def plain_at(self, log: ChangeLog, tick: Tick) -> DataFrame:
        """Return the rows at a tick as they stand: one that counts k stands k times."""
        return unfold(self.dataframe_at(log, tick), list(self.columns))

    def absorb(self, parts: Iterable[pa.Table], upto: Tick) -> None:
        """Lay the changes of the ticks (tick, upto] on top, part by part. If that fails the reader is of no use."""
        with self._lock:
            for part in parts:
                self.rows.add(part)
            self.tick = upto

    def release(self) -> None:
        """Give its memory back, and delete what is mapped for it."""
        self.rows.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReplica:
    """A replica where it is stored, for a few lookups by Spark."""

    spark: SparkSession
    relation: Relation
    entry: ReplicaEntry
    state: ReplicaState
    held_rows: int = ALL_ROWS
    """Up to this many rows are held. More stay on Spark."""

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request."""
        return [limited(self._found(request), request) for request in requests]

    def _found(self, request: BagRequest) -> BagResult:
        rows, keys = self.state.dataframe, request.keys
        if keys is not None and keys.held is not None:
            rows = under_keys(self.spark, rows, keys.held.named(request.columns))
        columns = tuple(dict.fromkeys((*request.wanted, *request.columns)))
        schema = self.relation.arrow_schema(columns)
        found = StoredBag.of_counted(rows.select(*quoted((*columns, COUNT))), schema, self.state.tick, UNKNOWN)
        if keys is not None and keys.stored is not None:
            found = found.matching(request.columns, keys)
        picked = found.picked(request.wanted)
        few = collect_few(picked.counted, self.held_rows)
        if few is not None:
            return _result(few, request, self.relation, self.state.tick)
        return RowResult(rows=picked, sight=SawTicks(upto=self.state.tick), origin=Origin.REPLICA)


def _result(found: pa.Table, request: BagRequest, relation: Relation, tick: Tick) -> BagResult:
    schema = pa.schema([*relation.arrow_schema(request.wanted), pa.field(COUNT, pa.int64())])
    bag = ArrowBag.of_counted(found.select(schema.names).cast(schema), tick)
    return RowResult(rows=bag, sight=SawTicks(upto=tick), origin=Origin.REPLICA)


def contents(replicas: Mapping[RelationName, ReplicaReader]) -> dict[RelationName, Content]:
    """Return what replicas hold."""
    return {name: reader.entry.content for name, reader in replicas.items()}


def load_replica(
    spark: SparkSession,
    relation: Relation,
    entry: ReplicaEntry,
    replica: Replica,
    budget: MemoryBudget = DEFAULT_BUDGET,
    settings: BatchSettings = DEFAULTS.batch,
) -> ReplicaReader:
    """Read a stored replica part by part: into memory as far as its share has room, and map the rest."""
    state = replica.newest(spark)
    schema = pa.schema([*relation.arrow_schema(entry.columns), pa.field(COUNT, pa.int64())])
    rows = LayeredRows(schema=schema, folder=MappedFolder.below(replica.folder, budget.rows))
    rows.fill(part.select(schema.names).cast(schema) for part in state.parts())
    return ReplicaReader(
        spark=spark,
        relation=relation,
        entry=entry,
        rows=rows,
        tick=state.tick,
        stored=state.snapshot,
        held_rows=budget.batch_rows(settings.held_rows),
    )


def refresh_replica(
    reader: ReplicaReader,
    replica: Replica,
    log: ChangeLog,
    budget: MemoryBudget = DEFAULT_BUDGET,
    settings: BatchSettings = DEFAULTS.batch,
) -> ReplicaReader:
    """Bring a stored replica to the tick that its reader has come to, and return another reader, of that tick.

    Spark computes the rows. Both readers are there for a while: where memory has no room for the new one it is mapped.
    """
    spark, upto = reader.spark, reader.tick  # the reader goes on meanwhile
    at = replica.newest(spark).tick
    changes = spark_rows(spark, log, reader.relation.name, reader.columns, after=at, upto=upto)
    replica.roll_forward(spark, changes.where(passing(reader.entry.rows)), upto, reader.entry.key)
    fresh = load_replica(spark, reader.relation, reader.entry, replica, budget, settings)
    fresh.rows.make_indexes(reader.rows.indexed())
    return fresh


def stored_replica(
    spark: SparkSession, relation: Relation, entry: ReplicaEntry, replica: Replica, held_rows: int = ALL_ROWS
) -> StoredReplica:
    """Return a replica where it is stored: for a few lookups."""
    state = replica.newest(spark)
    return StoredReplica(spark=spark, relation=relation, entry=entry, state=state, held_rows=held_rows)
