"""Make a replica as it is to be at a tick: from what was read for it, and from what is held already (`fill`)."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.deltas.extent import Content
from headwater.deltas.on_spark import passing, quoted
from headwater.engine.bootstrap.born_rows import BornRows
from headwater.engine.state.replica_reader import ReplicaReader, load_replica
from headwater.model.memory_budget import DEFAULT_BUDGET, MemoryBudget
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation
from headwater.model.settings import DEFAULTS, BatchSettings
from headwater.project.fill import Fill, Way
from headwater.storage.spark_files import spark_schema
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.folders import next_generation, replica_folder
from headwater.warehouse.replica import Replica


def filled(fill: Fill, read: DataFrame, held: DataFrame | None, relation: Relation) -> DataFrame:
    """Return plain rows of what a replica is to hold. `held` are those of the one that it takes the place of."""
    if fill.way is Way.WHOLE:
        return _cut(read, fill.content, relation)
    assert held is not None, "what is widened is there"
    if fill.way is Way.MORE_ROWS:
        return _cut(held, fill.content, relation).unionByName(_cut(read, fill.content, relation))
    there = [name for name in fill.content.columns if name in held.columns]
    lacking = [name for name in fill.content.columns if name not in there]
    old = held.where(passing(fill.content.rows)).select(
        *quoted({**dict.fromkeys(relation.key), **dict.fromkeys(there)})
    )
    return _cut(old.join(read.select(*quoted((*relation.key, *lacking))), list(relation.key)), fill.content, relation)


def _cut(rows: DataFrame, content: Content, relation: Relation) -> DataFrame:
    """Return what is in the content, in the relation's types."""
    typed = [
        F.col(name).cast(field.dataType).alias(field.name)
        for name, field in zip(
            quoted(content.columns), spark_schema(relation.arrow_schema(content.columns)), strict=True
        )
    ]
    return rows.where(passing(content.rows)).select(*typed)


def make_replica(
    spark: SparkSession,
    warehouse: str,
    relation: Relation,
    content: Content,
    rows: DataFrame,
    tick: Tick,
    few: int = 0,
    budget: MemoryBudget = DEFAULT_BUDGET,
    settings: BatchSettings = DEFAULTS.batch,
) -> ReplicaReader:
    """Write plain rows as a new generation of a relation's replica, and return it, ready to be read.

    Rows that are expected to be no more than a `few` are written here, others by Spark.
    """
    key = tuple(column for column in relation.key if column in content.columns)
    generation = next_generation(replica_folder(warehouse, relation.name, 0))
    entry = ReplicaEntry(
        relation=relation.name, generation=generation, columns=content.columns, key=key, rows=content.rows
    )
    folder = replica_folder(warehouse, relation.name, generation)
    replica = Replica.create(folder, relation.arrow_schema(content.columns))
    counted = rows.select(*quoted(content.columns)).withColumn(COUNT, F.lit(1).cast("bigint"))
    netted = replica.netted(counted, key)
    BornRows.of_frame(netted, few).write(replica.checkpoint, tick)
    return load_replica(spark, relation, entry, replica, budget, settings)
