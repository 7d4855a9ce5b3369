"""Look rows up in a replica: a relation's rows at one tick, in memory, or cached on Spark where they are too many.

    base (in memory, indexed; or cached on Spark)                              ⋉  keys
    ∪  recent (on Spark: changes since the base was stored, once they are many)  ⋉  keys (broadcast)
    ∪  newest (in memory: the last changes)                                      ⋉  keys

A replica is an answer read at the tick it was refreshed to; whoever asks rebases it like any other. The base is never
rewritten in place: changes are laid on top until they are many, then a new checkpoint is made. In memory a lookup
costs as much as what it finds, and a scan of the newest changes; on Spark it is a job or two over the key columns of
all rows, and changes are laid into Spark's cache once they are some thousands. Of the change log only those rows count
that the replica holds (`ReplicaEntry.rows`): an update may bring a row in, or take it out.
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
from headwater.deltas.indexed_rows import IndexedRows
from headwater.deltas.lookup import Origin, RowResult, SawTicks
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest, ArrowResult
from headwater.deltas.on_spark import passing, quoted, to_dataframe
from headwater.engine.state.replica_base import ReplicaBase, RowsInMemory, RowsOnSpark
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation, RelationName
from headwater.model.settings import DEFAULTS, MemorySettings
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.log_rows import spark_rows
from headwater.warehouse.replica import Replica, ReplicaState
from headwater.warehouse.state import net, unfold

_TEXT_BYTES = 32
"""What a value without a fixed size is taken for."""
_MOST_CHUNKS = 100


@dataclass(slots=True, kw_only=True)
class ReplicaReader:
    """Rows of a relation as of `tick`; `base` are those of its checkpoint, on Spark or in memory."""

    spark: SparkSession
    relation: Relation
    entry: ReplicaEntry
    base: ReplicaBase
    base_row_count: int
    tick: Tick
    settings: MemorySettings = DEFAULTS.memory
    newest: ArrowBag | None = None
    recent_row_count: int = 0
    """Of all that is laid on top."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    """Guards what is laid on top and `tick`, which change together while a bootstrap or a TRUNCATE reads them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The copied columns."""
        return self.entry.columns

    def changes(self, log: ChangeLog, after: Tick, upto: Tick) -> ArrowBag:
        """Return by what the ticks (after, upto] change what it holds."""
        return ArrowBag(log.rows(self.relation.name, self.columns, after, upto)).selected(self.entry.rows)

    def _rows(self) -> DataFrame:
        """Every entry, signed."""
        if self.newest is None:
            return self.base.dataframe()
        return self.base.dataframe().unionByName(to_dataframe(self.spark, self._entries(self.newest)))

    def _entries(self, changes: ArrowBag) -> pa.Table:
        return changes.table.select([*self.columns, COUNT])

    def lookup(self, requests: Sequence[ArrowRequest]) -> list[ArrowResult]:
        """Return the rows of each request, in entries that are not netted."""
        return [limited(self._found(request), request) for request in requests]

    def _found(self, request: ArrowRequest) -> ArrowResult:
        schema = pa.schema([*self.relation.arrow_schema(request.wanted), pa.field(COUNT, pa.int64())])
        columns, keys = request.columns, None if request.keys is None else request.keys.named(request.columns)
        found = self.base.matching(schema.names, columns, keys).cast(schema)
        if self.newest is not None:
            newest = self.newest if request.keys is None else self.newest.matching(columns, request.keys)
            found = pa.concat_tables([found, newest.table.select(schema.names).cast(schema)])
        bag = ArrowBag.of_counted(found, self.tick)
        return RowResult(rows=bag, sight=SawTicks(upto=self.tick), origin=Origin.REPLICA)

    def dataframe(self) -> DataFrame:
        """Return the rows at `tick`, netted, with `_count`."""
        is_bare = self.base.is_bare and self.newest is None
        return self.base.dataframe() if is_bare else net(self._rows(), list(self.columns))

    def dataframe_at(self, log: ChangeLog, tick: Tick) -> DataFrame:
        """Return the rows at a tick, before or after this one, netted, with `_count`."""
        with self._lock:
            if self.tick == tick:
                return self.dataframe()
            rows, at = self._rows(), self.tick
        changes = self.changes(log, min(at, tick), max(at, tick))
        due = self._entries(changes if at < tick else changes.negated())
        return net(rows.unionByName(to_dataframe(self.spark, due)), list(self.columns))

    def plain_at(self, log: ChangeLog, tick: Tick) -> DataFrame:
        """Return the rows at a tick as they stand: one that counts k stands k times."""
        return unfold(self.dataframe_at(log, tick), list(self.columns))

    def absorb(self, changes: ArrowBag, upto: Tick) -> None:
        """Lay the changes of the ticks (tick, upto] on top."""
        newest = changes if self.newest is None else self.newest.plus(changes)
        self.recent_row_count += len(changes)
        replaced = self.base
        laid = replaced.laid_into(self._entries(newest), self.settings.replica_newest_rows)
        if laid is None:
            with self._lock:
                self.newest, self.tick = _in_few_chunks(newest) if len(newest) else None, upto
            return
        with self._lock:
            self.base, self.newest, self.tick = laid, None, upto
        replaced.release(unless=laid)

    def release(self) -> None:
        """Give the cached rows back."""
        self.base.release()


def _in_few_chunks(bag: ArrowBag) -> ArrowBag:
    chunks = bag.table.column(0).num_chunks
    return ArrowBag(bag.table.combine_chunks()) if chunks > _MOST_CHUNKS else bag


def contents(replicas: Mapping[RelationName, ReplicaReader]) -> dict[RelationName, Content]:
    """Return what replicas hold."""
    return {name: reader.entry.content for name, reader in replicas.items()}


def load_replica(
    spark: SparkSession,
    relation: Relation,
    entry: ReplicaEntry,
    replica: Replica,
    settings: MemorySettings = DEFAULTS.memory,
) -> ReplicaReader:
    """Read a stored replica into memory, or into Spark's cache if it is large."""
    state = replica.newest(spark)
    reader = replace(_reader(spark, relation, entry, state), settings=settings)
    rows = state.read_few(settings.replica_held_bytes // _row_bytes(state.schema))
    if rows is not None and rows.nbytes <= settings.replica_held_bytes:
        held = RowsInMemory(spark=spark, rows=IndexedRows(rows.combine_chunks()))
        return replace(reader, base=held, base_row_count=rows.num_rows)
    cached = state.dataframe.select(*quoted((*entry.columns, COUNT))).persist()
    return replace(reader, base=RowsOnSpark(spark=spark, rows=cached), base_row_count=cached.count())


def _row_bytes(schema: pa.Schema) -> int:
    """Return about how many bytes a row takes.

    >>> _row_bytes(pa.schema([("a", pa.int64()), ("b", pa.decimal128(12, 2)), ("c", pa.string())]))
    56
    """
    sized = (field.type for field in schema if pa.types.is_primitive(field.type) or pa.types.is_decimal(field.type))
    sizes = [-(-kind.bit_width // 8) for kind in sized]
    return int(sum(sizes)) + _TEXT_BYTES * (len(schema) - len(sizes))


def refresh_replica(reader: ReplicaReader, replica: Replica, log: ChangeLog) -> ReplicaReader:
    """Bring a stored replica to the tick that its reader has come to, and return another reader, of that tick."""
    spark, upto = reader.spark, reader.tick  # the reader goes on meanwhile
    at = replica.newest(spark).tick
    changes = spark_rows(spark, log, reader.relation.name, reader.columns, after=at, upto=upto)
    replica.roll_forward(spark, changes.where(passing(reader.entry.rows)), upto, reader.entry.key)
    fresh = load_replica(spark, reader.relation, reader.entry, replica, reader.settings)
    fresh.base.make_indexes(reader.base.indexed)
    return fresh


def stored_replica(spark: SparkSession, relation: Relation, entry: ReplicaEntry, replica: Replica) -> ReplicaReader:
    """Return a reader of a replica where it is stored: for a few lookups; its rows are not counted."""
    return _reader(spark, relation, entry, replica.newest(spark))


def _reader(spark: SparkSession, relation: Relation, entry: ReplicaEntry, state: ReplicaState) -> ReplicaReader:
    base = RowsOnSpark(spark=spark, rows=state.dataframe.select(*quoted((*entry.columns, COUNT))))
    return ReplicaReader(spark=spark, relation=relation, entry=entry, base=base, base_row_count=0, tick=state.tick)
