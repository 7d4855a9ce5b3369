"""Look rows up in a replica: a relation's rows at one tick, and the changes since, in layers in memory or mapped.

A replica is an answer read at the tick it was refreshed to, and is rebased like any other. The base is never rewritten
in place: changes are laid on top until they are many, then a new checkpoint is made. A lookup costs as much as what it
finds. Of the change log only those rows count that the replica holds (`ReplicaEntry.rows`): an update may bring a row
in, or take it out.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.extent import Content
from headwater.deltas.first_rows import limited
from headwater.deltas.lookup import Origin, RowResult, SawTicks
from headwater.deltas.on_arrow import ArrowBag, ArrowKeys, ArrowRequest
from headwater.deltas.on_spark import large_session, passing, quoted, to_arrow, to_dataframe, under_keys
from headwater.deltas.stored_bag import BagRequest, BagResult, StoredBag, held_request
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation, RelationName
from headwater.model.settings import DEFAULTS, MemorySettings
from headwater.storage.layered_rows import LayeredRows
from headwater.storage.mapped_rows import MappedFolder
from headwater.storage.spark_files import read_files
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.log_rows import spark_rows
from headwater.warehouse.replica import Replica, ReplicaState
from headwater.warehouse.state import net, unfold


@dataclass(slots=True, kw_only=True)
class ReplicaReader:
    """Rows of a relation as of `tick`. `files` are those of the checkpoint that the rows' base was read from."""

    spark: SparkSession
    relation: Relation
    entry: ReplicaEntry
    rows: LayeredRows
    tick: Tick
    files: tuple[str, ...] = ()
    settings: MemorySettings = DEFAULTS.memory
    held_rows: int = DEFAULTS.batch.held_rows
    """Up to this many entries are looked up here. More are left to Spark."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Guards what is laid on top and `tick`, which change together while a bootstrap or a TRUNCATE reads them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The copied columns."""
        return self.entry.columns

    def changes(self, log: ChangeLog, after: Tick, upto: Tick) -> ArrowBag:
        """Return by what the ticks (after, upto] change what it holds."""
        return ArrowBag(log.rows(self.relation.name, self.columns, after, upto)).selected(self.entry.rows)

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request, in entries that are not netted. Many are not held."""
        return [limited(self._found(request), request) for request in requests]

    def _found(self, request: BagRequest) -> BagResult:
        if self._most(request) > self.held_rows:
            return self._stored(request)
        if isinstance(request.keys, ArrowKeys):
            found = self.rows.matching(request.columns, request.keys.named(request.columns))
        else:
            found = self.rows.entries()
        result = _result(found, request, self.relation, self.tick)
        return replace(result, has_all_rows=not isinstance(request.keys, ArrowKeys))

    def _most(self, request: BagRequest) -> int:
        """Return how many entries a request finds at most."""
        if isinstance(request.keys, ArrowKeys):
            return self.rows.count_matching(request.columns, request.keys.named(request.columns))
        return self.rows.row_count

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

    def _dataframe(self) -> DataFrame:
        """Return every entry, signed. A base that is not in memory is read by Spark from its files."""
        if self.rows.is_held:
            return to_dataframe(self.spark, self.rows.entries())
        base = read_files(self.spark, self.files, self.rows.schema)
        return base.unionByName(to_dataframe(self.spark, pa.concat_tables([self._nothing(), *self.rows.changes()])))

    def _nothing(self) -> pa.Table:
        return self.rows.schema.empty_table()

    def dataframe(self) -> DataFrame:
        """Return the rows at `tick`, netted, with `_count`."""
        rows = self._dataframe()
        return net(rows, list(self.columns)) if self.rows.change_count else rows

    def _netted(self) -> DataFrame:
        """Return the same, from where most of them are stored: rows that no change touches are only read."""
        session = large_session(self.spark)
        base = (
            to_dataframe(session, self.rows.base())
            if self.rows.is_held
            else read_files(session, self.files, self.rows.schema)
        )
        bag = StoredBag.of_counted(
            base, self.relation.arrow_schema(self.columns), self.tick, self.rows.base_count, is_net=True
        )
        changes = ArrowBag.of_counted(pa.concat_tables([self._nothing(), *self.rows.changes()]), self.tick)
        return bag.changed_by(changes, self.tick).counted

    def dataframe_at(self, log: ChangeLog, tick: Tick) -> DataFrame:
        """Return the rows at a tick, before or after this one, netted, with `_count`."""
        with self._lock:
            if self.tick == tick:
                return self.dataframe()
            rows, at = self._dataframe(), self.tick
        changes = self.changes(log, min(at, tick), max(at, tick))
        between = (changes if at < tick else changes.negated()).table.select([*self.columns, COUNT])
        return net(rows.unionByName(to_dataframe(self.spark, between)), list(self.columns))

    def plain_at(self, log: ChangeLog, tick: Tick) -> DataFrame:
        """Return the rows at a tick as they stand: one that counts k stands k times."""
        return unfold(self.dataframe_at(log, tick), list(self.columns))

    def absorb(self, changes: ArrowBag, upto: Tick) -> None:
        """Lay the changes of the ticks (tick, upto] on top."""
        with self._lock:
            self.rows.add(changes.table)
            self.tick = upto

    def release(self) -> None:
        """Delete what is mapped for it."""
        self.rows.release()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReplica:
    """A replica where it is stored, for a few lookups by Spark."""

    spark: SparkSession
    relation: Relation
    entry: ReplicaEntry
    state: ReplicaState

    def lookup(self, requests: Sequence[BagRequest]) -> list[BagResult]:
        """Return the rows of each request."""
        return [limited(self._found(held_request(request)), request) for request in requests]

    def _found(self, request: ArrowRequest) -> BagResult:
        rows = self.state.dataframe
        if request.keys is not None:
            rows = under_keys(self.spark, rows, request.keys.named(request.columns))
        found = to_arrow(rows.select(*quoted((*request.wanted, COUNT))))
        return _result(found, request, self.relation, self.state.tick)


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
    settings: MemorySettings = DEFAULTS.memory,
    held_rows: int = DEFAULTS.batch.held_rows,
) -> ReplicaReader:
    """Read a stored replica, file by file: as much into memory as the settings allow, and map the rest."""
    state = replica.newest(spark)
    schema = pa.schema([*relation.arrow_schema(entry.columns), pa.field(COUNT, pa.int64())])
    rows = LayeredRows(schema=schema, folder=MappedFolder.below(replica.folder), held_bytes_limit=settings.held_bytes)
    rows.fill(part.select(schema.names).cast(schema) for part in state.parts())
    return ReplicaReader(
        spark=spark,
        relation=relation,
        entry=entry,
        rows=rows,
        tick=state.tick,
        files=state.snapshot.files,
        settings=settings,
        held_rows=held_rows,
    )


def refresh_replica(reader: ReplicaReader, replica: Replica, log: ChangeLog) -> ReplicaReader:
    """Bring a stored replica to the tick that its reader has come to, and return another reader, of that tick."""
    spark, upto = reader.spark, reader.tick  # the reader goes on meanwhile
    at = replica.newest(spark).tick
    changes = spark_rows(spark, log, reader.relation.name, reader.columns, after=at, upto=upto)
    replica.roll_forward(spark, changes.where(passing(reader.entry.rows)), upto, reader.entry.key)
    fresh = load_replica(spark, reader.relation, reader.entry, replica, reader.settings, reader.held_rows)
    fresh.rows.make_indexes(reader.rows.indexed())
    return fresh


def stored_replica(spark: SparkSession, relation: Relation, entry: ReplicaEntry, replica: Replica) -> StoredReplica:
    """Return a replica where it is stored: for a few lookups."""
    return StoredReplica(spark=spark, relation=relation, entry=entry, state=replica.newest(spark))
