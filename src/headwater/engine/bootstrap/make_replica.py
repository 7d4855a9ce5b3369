"""Make a replica as it is to be at a tick: from what was read for it, and from what is held already (`fill`).

The files that chunks were read into become those of the replica where they hold just what it is to hold: only chunks
whose rows changed meanwhile are computed and written again.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.deltas.extent import Content, Remainder
from headwater.deltas.on_spark import passing, quoted
from headwater.engine.bootstrap.born_rows import BornRows
from headwater.engine.bootstrap.corrections import Corrections
from headwater.engine.bootstrap.recompute import rows_at
from headwater.engine.bootstrap.staging import StagedRelation
from headwater.engine.state.replica_reader import ReplicaReader, load_replica
from headwater.model.memory_budget import DEFAULT_BUDGET, MemoryBudget
from headwater.model.position import Tick
from headwater.model.relation import COUNT, Relation
from headwater.model.settings import DEFAULTS, BatchSettings
from headwater.project.fill import Fill, Way
from headwater.storage.data_file import move_in
from headwater.storage.spark_files import spark_schema, write_files
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.folders import replica_folder, reserve_generation
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
    replica, entry = _new_replica(warehouse, relation, content)
    BornRows.of_frame(_netted(replica, entry, rows), few).write(replica.checkpoint, tick)
    return load_replica(spark, relation, entry, replica, budget, settings)


def is_made_of_chunks(staged: StagedRelation, content: Content) -> bool:
    """Tell whether the rows of chunks are stored as a replica stores them: each row is there once, for it has a key."""
    key = staged.relation.key
    as_read = set(staged.wanted) == set(content.columns) and staged.rows == Remainder(of=content.rows)
    return as_read and bool(key) and set(key) <= set(content.columns)


def keep_chunks(
    spark: SparkSession,
    warehouse: str,
    content: Content,
    staged: StagedRelation,
    corrections: Corrections,
    tick: Tick,
    budget: MemoryBudget = DEFAULT_BUDGET,
    settings: BatchSettings = DEFAULTS.batch,
) -> ReplicaReader:
    """Make a replica of the files that a relation's chunks were read into. Those with corrections are written again."""
    replica, entry = _new_replica(warehouse, staged.relation, content)
    root, untouched = replica.checkpoint.table.path, corrections.untouched()
    others = replace(staged, chunks=tuple(one for one in staged.chunks if one not in untouched))
    written = []
    if others.chunks:
        rows = rows_at(spark, others, corrections)
        written = write_files(_netted(replica, entry, rows), root)
    moved = [move_in(root, one.path) for one in untouched]
    replica.checkpoint.write_files([*(file for file in moved if file.row_count), *written], tick)
    return load_replica(spark, staged.relation, entry, replica, budget, settings)


def _new_replica(warehouse: str, relation: Relation, content: Content) -> tuple[Replica, ReplicaEntry]:
    key = tuple(column for column in relation.key if column in content.columns)
    generation = reserve_generation(replica_folder(warehouse, relation.name, 0))
    entry = ReplicaEntry(
        relation=relation.name, generation=generation, columns=content.columns, key=key, rows=content.rows
    )
    folder = replica_folder(warehouse, relation.name, generation)
    return Replica.create(folder, relation.arrow_schema(content.columns)), entry


def _netted(replica: Replica, entry: ReplicaEntry, rows: DataFrame) -> DataFrame:
    counted = rows.select(*quoted(entry.columns)).withColumn(COUNT, F.lit(1).cast("bigint"))
    return replica.netted(counted, entry.key)
