"""Signed bags that stay on Spark: what is too large to be held, as frames over files and what is computed from them.

    held     an Arrow table in this process (`on_arrow`)
    stored   a frame with `_tick` and `_count`; how many entries it has is known where it was written, else a bound

Both keep the laws of `signed_bag`, and one contract suite. A held bag that meets a stored one becomes a frame too: the
result of an operation on both is stored. Nothing is computed until rows are written, counted, or asked for by name
(`ticks`), so a chain of operations is one query.

Where entries are not counted yet, `most` says how many they are at most: enough to choose where something is computed,
and 0 only if there are surely none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from headwater.deltas.extent import Extent
from headwater.deltas.on_arrow import ArrowBag, ArrowKeys
from headwater.deltas.on_spark import passing, quoted, to_arrow, to_dataframe
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK

_BROADCAST_KEYS = 100_000
"""Up to this many keys are sent to every task instead of being shuffled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKeys:
    """Key values as a frame of distinct rows."""

    frame: DataFrame
    schema: pa.Schema
    most: int
    """How many there are at most."""

    @classmethod
    def of_held(cls, spark: SparkSession, keys: ArrowKeys) -> StoredKeys:
        """Return keys that are held as a frame."""
        return cls(frame=_frame(spark, keys.table), schema=keys.table.schema, most=len(keys))

    def like(self, keys: ArrowKeys) -> StoredKeys:
        """Return other keys in the form of these."""
        return StoredKeys.of_held(self.frame.sparkSession, keys)

    def stored(self, bag: ArrowBag) -> StoredBag:
        """Return a bag that is held in the form of these keys."""
        return StoredBag.of_held(self.frame.sparkSession, bag)

    def named(self, columns: tuple[str, ...]) -> DataFrame:
        """Return the keys as values of columns, whatever these were called where the keys come from."""
        return self.frame.toDF(*columns)

    def without(self, others: AnyKeys) -> StoredKeys:
        """Return the keys that are not among the others."""
        names = tuple(self.schema.names)
        left = _matched(self.frame, names, self._stored(others), "left_anti")
        return replace(self, frame=left)

    def plus(self, others: AnyKeys) -> StoredKeys:
        """Return the keys of both, each once."""
        both = self.frame.union(self._stored(others).frame).distinct()
        return replace(self, frame=both, most=self.most + others.most)

    def __len__(self) -> int:
        """Return how many keys there are. They are counted now."""
        return self.frame.count()

    def _stored(self, others: AnyKeys) -> StoredKeys:
        return self.like(others) if isinstance(others, ArrowKeys) else others


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBag:
    """Rows with `_tick` and `_count` as a frame."""

    frame: DataFrame
    schema: pa.Schema
    """The columns with their types, `_tick` and `_count` among them, in the order of the frame."""
    most: int
    """How many entries there are at most; just as many where `files` are known."""
    files: tuple[str, ...] | None = None
    """The data files that hold exactly these entries, if they were written."""

    @classmethod
    def of_held(cls, spark: SparkSession, bag: ArrowBag) -> StoredBag:
        """Return a bag that is held as a frame."""
        return cls(frame=_frame(spark, bag.table), schema=bag.schema, most=len(bag))

    @classmethod
    def of_counted(cls, frame: DataFrame, schema: pa.Schema, tick: Tick, most: int) -> StoredBag:
        """Return rows that have `_count`, stamped with a tick. The schema is that of the rows without both."""
        stamped = pa.schema([*schema, pa.field(TICK, pa.int64()), pa.field(COUNT, pa.int64())])
        rows = frame.select(*quoted(schema.names), _long(tick).alias(TICK), COUNT)
        return cls(frame=rows, schema=stamped, most=most)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the rows' columns."""
        return tuple(name for name in self.schema.names if name not in (TICK, COUNT))

    @property
    def counted(self) -> DataFrame:
        """The rows with `_count`, without their ticks."""
        return self.frame.drop(TICK)

    def plus(self, other: Bag) -> StoredBag:
        """Return the rows of both."""
        if not other.most:
            return self
        union = self.frame.unionByName(self._stored(other).frame)
        return self._of(union, most=self.most + other.most)

    def negated(self) -> StoredBag:
        """Return the same rows with their counts' signs turned."""
        return self._of(self.frame.withColumn(COUNT, -F.col(COUNT)))

    def net(self) -> StoredBag:
        """Return equal rows of equal tick as one, with the sum of their counts. Zero sums vanish."""
        return self._grouped(F.sum(COUNT))

    def positive(self) -> StoredBag:
        """Return the netted rows whose count is above zero."""
        return self._of(self.net().frame.where(F.col(COUNT) > 0))

    def picked(self, columns: tuple[str, ...]) -> StoredBag:
        """Return the rows with these of their columns."""
        names = (*columns, TICK, COUNT)
        schema = pa.schema([self.schema.field(name) for name in names])
        return replace(self, frame=self.frame.select(*quoted(names)), schema=schema, files=None)

    def typed(self, schema: pa.Schema) -> StoredBag:
        """Return the rows with the names and types of a schema, column by column in their order."""
        ordered = self.picked(self.columns)
        types = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        cast = [
            F.col(name).cast(field.dataType).alias(field.name)
            for name, field in zip(quoted(ordered.schema.names), types, strict=True)
        ]
        return replace(ordered, frame=ordered.frame.select(*cast), schema=schema)

    def restamped(self, tick: Tick) -> StoredBag:
        """Return the rows with another tick."""
        return self._of(self.frame.withColumn(TICK, _long(tick)))

    def shifted(self, ticks: int) -> StoredBag:
        """Return the rows with their ticks moved."""
        return self._of(self.frame.withColumn(TICK, F.col(TICK) + _long(ticks)))

    def upto(self, tick: Tick) -> StoredBag:
        """Return the rows whose tick is not after this one."""
        return self._of(self.frame.where(F.col(TICK) <= tick))

    def after(self, tick: Tick) -> StoredBag:
        """Return the rows whose tick is after this one."""
        return self._of(self.frame.where(F.col(TICK) > tick))

    def at(self, ticks: Collection[Tick]) -> StoredBag:
        """Return the rows that have one of these ticks."""
        return self._of(self.frame.where(F.col(TICK).isin(*ticks)))

    def ticks(self) -> list[Tick]:
        """Return the ticks that rows have, in their order. They are looked for now."""
        return sorted(Tick(tick) for tick in to_arrow(self.frame.select(TICK).distinct())[TICK].to_pylist())

    def keys(self, columns: tuple[str, ...], like: Bag, as_columns: tuple[str, ...]) -> StoredKeys:
        """Return the distinct values of columns, cast to the types that `like` has in `as_columns`.

        Where a cast rounds, keys come that nobody has: they find rows that join nothing.
        """
        schema = pa.schema([like.schema.field(name) for name in as_columns])
        types = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        cast = [
            F.col(name).try_cast(field.dataType).alias(field.name)
            for name, field in zip(quoted(columns), types, strict=True)
        ]
        known = reduce(and_, (F.col(name).isNotNull() for name in quoted(as_columns)))
        return StoredKeys(frame=self.frame.select(*cast).where(known).distinct(), schema=schema, most=self.most)

    def groups(self, columns: tuple[str, ...]) -> StoredKeys:
        """Return the distinct values of columns, NULL being a value like any other."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        return StoredKeys(frame=self.frame.select(*quoted(columns)).distinct(), schema=schema, most=self.most)

    def matching(self, columns: tuple[str, ...], keys: AnyKeys) -> StoredBag:
        """Return the rows whose columns hold one of the keys."""
        stored = StoredKeys.of_held(self.frame.sparkSession, keys) if isinstance(keys, ArrowKeys) else keys
        return self._of(_matched(self.frame, columns, stored, "left_semi"))

    def selected(self, extent: Extent) -> StoredBag:
        """Return the rows of an extent."""
        return self if extent.is_everything else self._of(self.frame.where(passing(extent)))

    def widest(self, other: Bag) -> StoredBag:
        """Return every row of either with the larger of its two counts."""
        return self.plus(other)._grouped(F.max(COUNT)) if other.most else self  # noqa: SLF001 - another bag of this class

    def __len__(self) -> int:
        """Return how many entries there are. Where that is not known they are counted now."""
        return self.most if self.files is not None else self.frame.count()

    def _of(self, frame: DataFrame, most: int | None = None) -> StoredBag:
        """Return what is computed from this bag: rows of the same columns."""
        return replace(self, frame=frame, most=self.most if most is None else most, files=None)

    def _grouped(self, aggregate: Column) -> StoredBag:
        by = [name for name in self.schema.names if name != COUNT]
        grouped = self.frame.groupBy(*quoted(by)).agg(aggregate.alias(COUNT)).where(F.col(COUNT) != 0)
        return self._of(grouped.select(*quoted(self.schema.names)))

    def _stored(self, other: Bag) -> StoredBag:
        return other if isinstance(other, StoredBag) else StoredBag.of_held(self.frame.sparkSession, other)


Bag: TypeAlias = ArrowBag | StoredBag
"""A signed bag, held or stored."""
AnyKeys: TypeAlias = ArrowKeys | StoredKeys
"""Keys, held or stored."""


def as_stored(spark: SparkSession, bag: Bag) -> StoredBag:
    """Return a bag in its stored form."""
    return bag if isinstance(bag, StoredBag) else StoredBag.of_held(spark, bag)


def _frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """Return held rows as a frame with their own types: timestamps without a zone stay so."""
    return to_dataframe(spark, table).to(from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def _long(value: int) -> Column:
    return F.lit(value).cast("bigint")


def _matched(rows: DataFrame, columns: tuple[str, ...], keys: StoredKeys, how: str) -> DataFrame:
    """Return the rows that have one of the keys, or those that have none. NULL is NULL."""
    names = tuple(f"key_{place}" for place in range(len(columns)))
    named = keys.named(names)
    sought = F.broadcast(named) if keys.most <= _BROADCAST_KEYS else named
    same = [F.col(own).eqNullSafe(F.col(key)) for own, key in zip(quoted(columns), names, strict=True)]
    return rows.join(sought, reduce(and_, same), how)
