"""A replica: some columns of some rows of a relation as of one tick, netted, with a count column.

Its changes are the change log, so it has only a checkpoint; bringing it to a later tick takes the log's rows. Its files
are sorted by its key, or each is of one range of keys, so that what cannot hold a key is skipped by its bounds. It is
not bucketed: who looks up scattered keys where it is stored reads the key columns of the whole replica.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater.deltas.on_spark import quoted
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.storage.fenced_table import FencedTable
from headwater.storage.few_rows import read_in_parts
from headwater.storage.spark_files import read_files
from headwater.warehouse.checkpoint import Checkpoint, CheckpointSnapshot
from headwater.warehouse.state import net


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    """A replica's counted rows at one tick, as they are stored."""

    spark: SparkSession
    snapshot: CheckpointSnapshot
    schema: pa.Schema

    @property
    def tick(self) -> Tick:
        """The tick of the rows."""
        return self.snapshot.tick

    @property
    def dataframe(self) -> DataFrame:
        """The rows on Spark."""
        return read_files(self.spark, self.snapshot.files, self.schema)

    def parts(self) -> Iterator[pa.Table]:
        """Yield the rows, read into this process part by part."""
        return read_in_parts(self.snapshot.files, self.schema)


class Replica:
    """One generation of a relation's copy."""

    def __init__(self, folder: str, checkpoint: Checkpoint) -> None:
        """Wrap an open checkpoint. Use `create` or `open`."""
        self.folder = folder
        self.checkpoint = checkpoint

    @classmethod
    def create(cls, folder: str, schema: pa.Schema) -> Self:
        """Create an empty replica of these columns. The same again is harmless."""
        path = f"{folder}/checkpoint"
        if not FencedTable.exists(path):
            columns = pa.schema([*schema, pa.field(COUNT, pa.int64())])
            FencedTable.create(path, columns, numbers={}, mark="{}", indexed=8)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str) -> Self:
        """Open the replica at its newest version."""
        return cls(folder, Checkpoint.open(f"{folder}/checkpoint"))

    @property
    def schema(self) -> pa.Schema:
        """The columns, with `_count`."""
        return self.checkpoint.table.schema()

    @property
    def columns(self) -> list[str]:
        """The copied columns."""
        return [name for name in self.schema.names if name != COUNT]

    def netted(self, frame: DataFrame, key: tuple[str, ...]) -> DataFrame:
        """Return rows with `_count` as they are stored: netted, in key order."""
        netted = net(frame, self.columns)
        return netted.sortWithinPartitions(*quoted(key)) if key else netted

    def newest(self, spark: SparkSession) -> ReplicaState:
        """Return the newest state."""
        return ReplicaState(spark=spark, snapshot=self.checkpoint.snapshot(), schema=self.checkpoint.table.schema())

    def roll_forward(self, spark: SparkSession, changes: DataFrame, upto: Tick, key: tuple[str, ...]) -> bool:
        """Bring the replica to a later tick with the log's signed rows that it holds, of its own tick up to there."""
        newest = self.newest(spark)
        if newest.tick >= upto:
            return False
        rows = newest.dataframe.unionByName(changes.drop(TICK))
        return self.checkpoint.write_from_dataframe(self.netted(rows, key), upto)
