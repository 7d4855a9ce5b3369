"""The rows that a bootstrap reads and computes: few are held in this process, many stay on Spark.

Of many small views, the fixed costs of Spark jobs are what their birth takes: a job that writes files takes longer than
everything else together. So few rows are computed by one task, collected, and written here; relations that are few rows
are read once for all new views. How many there are is asked before they are collected, and no more are fetched.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater.changelog.change_log import ChangeLog
from headwater.deltas.compare import row_key
from headwater.deltas.extent import Content
from headwater.deltas.on_spark import collect_few, small_session, to_small_dataframe
from headwater.engine.state.replica_reader import ReplicaReader
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.warehouse.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class BornRows:
    """Rows that Spark computes, and the same in this process where they are few."""

    frame: DataFrame
    few: pa.Table | None = None

    @classmethod
    def of_frame(cls, frame: DataFrame, few: int) -> BornRows:
        """Compute rows that are expected to be no more than a few. With 0 nothing is computed yet."""
        return cls(frame=frame, few=collect_few(frame, few) if few else None)

    def placed(self, spark: SparkSession) -> BornRows:
        """Return them so that a reader of the frame does not compute few rows again."""
        if self.few is None:
            return self
        return replace(self, frame=to_small_dataframe(small_session(spark), self.few))

    def write(self, checkpoint: Checkpoint, tick: Tick) -> None:
        """Write them as the rows of a tick."""
        if self.few is None:
            checkpoint.write_from_dataframe(self.frame, tick)
        else:
            checkpoint.write(self.few, tick)

    def are_surely(self, other: BornRows) -> bool:
        """Tell whether both are in this process, and the same bag of rows."""
        return self.few is not None and other.few is not None and _bag(self.few) == _bag(other.few)


def _bag(rows: pa.Table) -> Counter[tuple[object, ...]]:
    return Counter(map(row_key, zip(*(column.to_pylist() for column in rows.columns), strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Plain rows of the relations that a view reads, and the session that they are in."""

    spark: SparkSession
    plain: Mapping[RelationName, DataFrame]
    few: int
    """How many rows are computed and held here at most; 0 where these are too many already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BornInputs:
    """What new views read, at their birth: replicas, and what was read of relations where these do not suffice."""

    spark: SparkSession
    log: ChangeLog
    tick: Tick
    replicas: Mapping[RelationName, ReplicaReader]
    read: Mapping[RelationName, DataFrame]
    read_counts: Mapping[RelationName, int]
    """How many rows were read of a relation."""
    small_rows: int
    """Views are computed in one task that read no more rows."""
    _known: dict[tuple[RelationName, bool], BornRows] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def of_view(self, needs: Mapping[RelationName, Content]) -> Inputs:
        """Return what a view reads that needs this of relations."""
        with self._reading:
            found = {name: self._rows(name, needed) for name, needed in needs.items()}
        few = [rows.few for rows in found.values() if rows.few is not None]
        if len(few) == len(found) and sum(table.num_rows for table in few) <= self.small_rows:
            plain = {name: rows.frame for name, rows in found.items()}
            return Inputs(spark=small_session(self.spark), plain=plain, few=self.small_rows)
        plain = {name: self._frame(name, is_held=self._is_held(name, needed)) for name, needed in needs.items()}
        return Inputs(spark=self.spark, plain=plain, few=0)

    def _rows(self, name: RelationName, needed: Content) -> BornRows:
        is_held = self._is_held(name, needed)
        if (name, is_held) not in self._known:
            reader = self.replicas[name] if is_held else None
            count = self.read_counts[name] if reader is None else reader.rows.row_count
            read = BornRows.of_frame(
                self._frame(name, is_held=is_held), self.small_rows if count <= self.small_rows else 0
            )
            self._known[name, is_held] = read.placed(self.spark)
        return self._known[name, is_held]

    def _is_held(self, name: RelationName, needed: Content) -> bool:
        return name in self.replicas and self.replicas[name].entry.content.covers(needed)

    def _frame(self, name: RelationName, *, is_held: bool) -> DataFrame:
        return self.replicas[name].plain_at(self.log, self.tick) if is_held else self.read[name]
