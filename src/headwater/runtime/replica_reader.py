"""Look rows up in a replica: a relation's rows at one tick, cached on Spark.

    base (cached, as of the replica's checkpoint)  ∪  recent (cached: the change log since)  ⋉  keys (broadcast)
                                                   ∪  newest (here: the last few changes)    ⋉  keys

A replica is an answer read at the tick it was refreshed to; whoever asks rebases it like any other. The base is never
rewritten in place: changes are laid on top until they are many, then a new checkpoint is made. Laying them into Spark's
cache is a job, so the newest stay in the maintainer's memory until they are some thousands. Of the change log only
those rows count that the replica holds (`ReplicaEntry.rows`): an update may bring a row in, or take it out.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.content import Content
from headwater.deltas.on_arrow import ArrowBag, ArrowKeys
from headwater.deltas.on_spark import passing, quoted, to_arrow, to_dataframe
from headwater.maintenance.questions import Answer, SawTicks
from headwater.position import Tick
from headwater.relation import COUNT, TICK, Relation, RelationName
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.log_rows import spark_rows
from headwater.warehouse.replica import Replica
from headwater.warehouse.state import net, unfold

_NEWEST_ROWS = 20_000


@dataclass(slots=True, kw_only=True)
class ReplicaReader:
    """Rows of a relation on Spark, as of `tick`."""

    spark: SparkSession
    relation: Relation
    entry: ReplicaEntry
    base: DataFrame
    base_row_count: int
    tick: Tick
    recent: DataFrame | None = None
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

    def _cached(self) -> DataFrame:
        """Every entry that Spark has, signed: the base's and those laid on top."""
        return self.base if self.recent is None else self.base.unionByName(self.recent)

    def _rows(self) -> DataFrame:
        """Every entry, signed."""
        return self._cached() if self.newest is None else self._cached().unionByName(self._on_spark(self.newest))

    def _on_spark(self, changes: ArrowBag) -> DataFrame:
        return to_dataframe(self.spark, changes.table.select([*self.columns, COUNT]))

    def lookup(self, wanted: tuple[str, ...], columns: tuple[str, ...], keys: ArrowKeys | None) -> Answer[ArrowBag]:
        """Return the rows that it holds under the keys, or all of them."""
        frame = self._cached().select(*quoted((*wanted, COUNT)))
        if keys is not None:
            looked_up = to_dataframe(self.spark, keys.table.rename_columns(list(columns)))
            frame = frame.join(F.broadcast(looked_up), list(columns), "left_semi").select(*quoted((*wanted, COUNT)))
        schema = pa.schema([*self.relation.arrow_schema(wanted), pa.field(COUNT, pa.int64())])
        found = to_arrow(frame).cast(schema)
        if self.newest is not None:
            newest = self.newest if keys is None else self.newest.matching(columns, keys)
            found = pa.concat_tables([found, newest.table.select(schema.names).cast(schema)])
        typed = found.append_column(TICK, pa.repeat(pa.scalar(self.tick, pa.int64()), found.num_rows))
        return Answer(rows=ArrowBag(typed.select([*wanted, TICK, COUNT])), sight=SawTicks(upto=self.tick))

    def dataframe(self) -> DataFrame:
        """Return the rows at `tick`, netted, with `_count`."""
        is_bare = self.recent is None and self.newest is None
        return self.base if is_bare else net(self._rows(), list(self.columns))

    def dataframe_at(self, log: ChangeLog, tick: Tick) -> DataFrame:
        """Return the rows at a tick, before or after this one, netted, with `_count`."""
        with self._lock:
            if self.tick == tick:
                return self.dataframe()
            rows, at = self._rows(), self.tick
        changes = self.changes(log, min(at, tick), max(at, tick))
        due = (changes if at < tick else changes.negated()).table.select([*self.columns, COUNT])
        return net(rows.unionByName(to_dataframe(self.spark, due)), list(self.columns))

    def plain_at(self, log: ChangeLog, tick: Tick) -> DataFrame:
        """Return the rows at a tick as they stand: one that counts k stands k times."""
        return unfold(self.dataframe_at(log, tick), list(self.columns))

    def absorb(self, changes: ArrowBag, upto: Tick) -> None:
        """Lay the changes of the ticks (tick, upto] on top."""
        newest = changes if self.newest is None else self.newest.plus(changes)
        self.recent_row_count += len(changes)
        if len(newest) > _NEWEST_ROWS:
            self._lay_into_cache(newest, upto)
        else:
            with self._lock:
                self.newest, self.tick = newest if len(newest) else None, upto

    def _lay_into_cache(self, changes: ArrowBag, upto: Tick) -> None:
        added = self._on_spark(changes)
        laid = added if self.recent is None else self.recent.unionByName(added)
        cached = laid.coalesce(1).persist()
        cached.count()
        replaced = self.recent
        with self._lock:
            self.recent, self.newest, self.tick = cached, None, upto
        if replaced is not None:
            replaced.unpersist()

    def release(self) -> None:
        """Give the cached rows back."""
        self.base.unpersist()
        if self.recent is not None:
            self.recent.unpersist()


def contents(replicas: Mapping[RelationName, ReplicaReader]) -> dict[RelationName, Content]:
    """Return what replicas hold."""
    return {name: reader.entry.content for name, reader in replicas.items()}


def load_replica(spark: SparkSession, relation: Relation, entry: ReplicaEntry, replica: Replica) -> ReplicaReader:
    """Read a stored replica into Spark's cache."""
    stored = stored_replica(spark, relation, entry, replica)
    base = stored.base.persist()
    return replace(stored, base=base, base_row_count=base.count())


def refresh_replica(reader: ReplicaReader, replica: Replica, log: ChangeLog) -> ReplicaReader:
    """Bring a stored replica to the tick that its reader has come to, and return another reader, of that tick."""
    spark, upto = reader.spark, reader.tick  # the reader goes on meanwhile
    at, _ = replica.dataframe(spark)
    changes = spark_rows(spark, log, reader.relation.name, reader.columns, after=at, upto=upto)
    replica.roll_forward(spark, changes.where(passing(reader.entry.rows)), upto, reader.entry.key)
    return load_replica(spark, reader.relation, reader.entry, replica)


def stored_replica(spark: SparkSession, relation: Relation, entry: ReplicaEntry, replica: Replica) -> ReplicaReader:
    """Return a reader of a replica where it is stored: for a few lookups; its rows are not counted."""
    tick, frame = replica.dataframe(spark)
    base = frame.select(*quoted((*entry.columns, COUNT)))
    return ReplicaReader(spark=spark, relation=relation, entry=entry, base=base, base_row_count=0, tick=tick)
