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
from typing import ClassVar, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from headwater.deltas.extent import Extent
from headwater.deltas.lookup import Lookup, RowRequest, RowResult
from headwater.deltas.on_arrow import ArrowBag, ArrowKeys, ArrowRequest, ArrowResult
from headwater.deltas.on_spark import passing, quoted, to_arrow, to_dataframe, unfold
from headwater.deltas.order import By, Order
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK

_BROADCAST_BYTES = 32 * 2**20
"""Held rows of no more bytes are sent to every task where they meet stored ones."""
_BROADCAST_KEYS = 100_000
"""Up to this many keys are sent to every task instead of being shuffled."""


UNKNOWN = 2**62
"""The bound of what is not known to have one."""
ALL_ROWS = 2**62
"""The number of rows that are held by a caller that holds whatever it finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredKeys:
    """Key values as a frame of distinct rows."""

    frame: DataFrame
    schema: pa.Schema
    most: int
    """How many there are at most."""

    held: ClassVar[None] = None
    """The keys are not in this process."""

    @property
    def stored(self) -> StoredKeys:
        """The keys, which are on Spark."""
        return self

    @classmethod
    def of_held(cls, spark: SparkSession, keys: ArrowKeys) -> StoredKeys:
        """Return keys that are held as a frame."""
        return cls(frame=as_frame(spark, keys.table), schema=keys.table.schema, most=len(keys))

    def like(self, keys: ArrowKeys) -> StoredKeys:
        """Return other keys in the form of these."""
        return StoredKeys.of_held(self.frame.sparkSession, keys)

    def bag_like(self, bag: ArrowBag) -> StoredBag:
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
        return self.like(others.held) if others.stored is None else others.stored


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
    has_one_tick: bool = False
    """Whether all entries surely have the same tick."""
    is_net: bool = False
    """Whether there are surely no two entries of one row, and none with a count of zero: nothing is left to net."""

    changed_from: tuple[StoredBag, Bag] | None = None
    """The rows that exist, and the changes, that these were computed from by `changed_by`."""

    held: ClassVar[None] = None
    """The entries are not in this process."""

    @property
    def stored(self) -> StoredBag:
        """The bag, whose entries are on Spark."""
        return self

    @classmethod
    def of_held(cls, spark: SparkSession, bag: ArrowBag) -> StoredBag:
        """Return a bag that is held as a frame."""
        return cls(frame=as_frame(spark, bag.table), schema=bag.schema, most=len(bag))

    @classmethod
    def of_counted(
        cls, frame: DataFrame, schema: pa.Schema, tick: Tick, most: int, *, is_net: bool = False
    ) -> StoredBag:
        """Return rows that have `_count`, stamped with a tick. The schema is that of the rows without both."""
        stamped = pa.schema([*schema, pa.field(TICK, pa.int64()), pa.field(COUNT, pa.int64())])
        rows = frame.select(*quoted(schema.names), _long(tick).alias(TICK), COUNT)
        return cls(frame=rows, schema=stamped, most=most, has_one_tick=True, is_net=is_net)

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
        stored = self._stored(other)
        both = self.of_frame(self.frame.unionByName(stored.frame), is_net=False)
        files = None if self.files is None or stored.files is None else self.files + stored.files
        return replace(both, most=self.most + other.most, files=files, has_one_tick=False)

    def negated(self) -> StoredBag:
        """Return the same rows with their counts' signs turned."""
        return self.of_frame(self.frame.withColumn(COUNT, -F.col(COUNT)))

    def net(self) -> StoredBag:
        """Return equal rows of equal tick as one, with the sum of their counts. Zero sums vanish."""
        return self if self.is_net else self._grouped(F.sum(COUNT))

    def net_if_held(self) -> StoredBag:
        """Return the bag as it is: what reads it nets it."""
        return self

    def plain(self) -> DataFrame:
        """Return plain rows: one that counts k stands k times."""
        return unfold(self.counted, list(self.columns))

    def positive(self) -> StoredBag:
        """Return the netted rows whose count is above zero."""
        return self.of_frame(self.net().frame.where(F.col(COUNT) > 0))

    def picked(self, columns: tuple[str, ...]) -> StoredBag:
        """Return the rows with these of their columns."""
        names = (*columns, TICK, COUNT)
        schema = pa.schema([self.schema.field(name) for name in names])
        picked = self.of_frame(self.frame.select(*quoted(names)), is_net=False)
        return replace(picked, schema=schema)

    def typed(self, schema: pa.Schema, columns: tuple[str, ...] | None = None) -> StoredBag:
        """Return columns, some perhaps twice, under the names and types of a schema, which has them in their order."""
        names = (*(self.columns if columns is None else columns), TICK, COUNT)
        types = from_arrow_schema(schema, prefer_timestamp_ntz=True)
        cast = [
            F.col(name).cast(field.dataType).alias(field.name) for name, field in zip(quoted(names), types, strict=True)
        ]
        return replace(self.of_frame(self.frame.select(*cast), is_net=False), schema=schema)

    def restamped(self, tick: Tick) -> StoredBag:
        """Return the rows with another tick."""
        moved = self.of_frame(self.frame.withColumn(TICK, _long(tick)), is_net=self.is_net and self.has_one_tick)
        return replace(moved, has_one_tick=True)

    def shifted(self, ticks: int) -> StoredBag:
        """Return the rows with their ticks moved."""
        return self.of_frame(self.frame.withColumn(TICK, F.col(TICK) + _long(ticks)))

    def upto(self, tick: Tick) -> StoredBag:
        """Return the rows whose tick is not after this one."""
        return self.of_frame(self.frame.where(F.col(TICK) <= tick))

    def after(self, tick: Tick) -> StoredBag:
        """Return the rows whose tick is after this one."""
        return self.of_frame(self.frame.where(F.col(TICK) > tick))

    def at(self, ticks: Collection[Tick]) -> StoredBag:
        """Return the rows that have one of these ticks."""
        return self.of_frame(self.frame.where(F.col(TICK).isin(*ticks)))

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
        stored = StoredKeys.of_held(self.frame.sparkSession, keys.held) if keys.stored is None else keys.stored
        return self.of_frame(_matched(self.frame, columns, stored, "left_semi"))

    def known(self, columns: tuple[str, ...]) -> StoredBag:
        """Return the rows that have no NULL in these columns."""
        return self.of_frame(self.frame.where(reduce(and_, (F.col(name).isNotNull() for name in quoted(columns)))))

    def selected(self, extent: Extent) -> StoredBag:
        """Return the rows of an extent."""
        return self if extent.is_everything else self.of_frame(self.frame.where(passing(extent)))

    def widest(self, other: Bag) -> StoredBag:
        """Return every row of either with the larger of its two counts."""
        if not other.most:
            return self
        one_tick = self.has_one_tick and other.stored is not None and other.stored.has_one_tick
        return replace(self.plus(other), has_one_tick=one_tick)._grouped(F.max(COUNT))  # noqa: SLF001 - of this class

    def first(self, order: Order, count: int) -> ArrowBag:
        """Return the first rows of an order, netted: at most this many, computed now."""
        keys = [_ordered(by) for by in order]
        found = to_arrow(self.net().frame.orderBy(*keys).limit(count))
        return ArrowBag(found.select(self.schema.names).cast(self.schema))

    def changed_by(self, changes: Bag, tick: Tick) -> StoredBag:
        """Return these rows, all of which exist, with changes added, stamped with a tick. They are netted if these are.

        Rows that no change touches are read, and not shuffled.
        """
        if not changes.most:
            return self.restamped(tick)
        if self.changed_from is not None:  # on top of each other, plans would read the rows twice as often each time
            first, before = self.changed_from
            return first.changed_by(before.plus(changes), tick)
        rows = self.restamped(tick)
        due = self._stored(changes).restamped(tick).net()
        touched = StoredKeys(frame=due.frame.select(*quoted(self.columns)), schema=self.schema, most=due.most)
        untouched = _matched(rows.frame, self.columns, touched, "left_anti")
        counted = rows.of_frame(_matched(rows.frame, self.columns, touched, "left_semi")).plus(due).restamped(tick)
        both = untouched.unionByName(replace(counted, is_net=False).net().frame)
        return replace(rows.of_frame(both), most=self.most + changes.most, changed_from=(self, changes))

    def __len__(self) -> int:
        """Return how many entries there are. Where that is not known they are counted now."""
        return self.most if self.files is not None else self.frame.count()

    def of_frame(self, frame: DataFrame, *, is_net: bool | None = None) -> StoredBag:
        """Return some of these entries, or as many others with the same columns, as a frame computes them."""
        net = self.is_net if is_net is None else is_net
        return replace(self, frame=frame, files=None, is_net=net, changed_from=None)

    def _grouped(self, aggregate: Column) -> StoredBag:
        by = [name for name in self.schema.names if name != COUNT]
        grouped = self.frame.groupBy(*quoted(by)).agg(aggregate.alias(COUNT)).where(F.col(COUNT) != 0)
        return self.of_frame(grouped.select(*quoted(self.schema.names)), is_net=self.has_one_tick)

    def _stored(self, other: Bag) -> StoredBag:
        return as_stored(self.frame.sparkSession, other)


Bag: TypeAlias = ArrowBag | StoredBag
"""A signed bag, held or stored."""
AnyKeys: TypeAlias = ArrowKeys | StoredKeys
"""Keys, held or stored."""


BagRequest = RowRequest[AnyKeys]
BagResult = RowResult[Bag]
BagLookup = Lookup[AnyKeys, Bag]
"""What a batch looks rows up in: few come as Arrow tables, many as frames."""


class NotHeldError(Exception):
    """Rows are needed in this process that are too many to be held there."""


def held(bag: Bag) -> ArrowBag:
    """Return a bag that is held. Raise `NotHeldError` for one that is stored."""
    if bag.held is None:
        raise NotHeldError
    return bag.held


def held_result(result: BagResult) -> ArrowResult:
    """Return a result whose rows are held. Raise `NotHeldError` if they are stored."""
    return result.with_rows(held(result.rows))


def held_request(request: BagRequest) -> ArrowRequest:
    """Return a request whose keys are held. Raise `NotHeldError` if they are stored."""
    if request.within is None:
        return request.restricted_to(None)
    if (keys := request.within.keys.held) is None:
        raise NotHeldError
    return request.with_keys(keys)


def rows_of(bag: Bag) -> pa.Table | DataFrame:
    """Return a bag's entries as a query reads them."""
    return bag.held.table if bag.stored is None else bag.stored.frame


def as_stored(spark: SparkSession, bag: Bag) -> StoredBag:
    """Return a bag in its stored form."""
    return StoredBag.of_held(spark, bag.held) if bag.stored is None else bag.stored


def as_frame(spark: SparkSession, rows: pa.Table | DataFrame) -> DataFrame:
    """Return held rows as a frame with their own types: timestamps without a zone stay so."""
    if not isinstance(rows, pa.Table):
        return rows
    frame = to_dataframe(spark, rows).to(from_arrow_schema(rows.schema, prefer_timestamp_ntz=True))
    return F.broadcast(frame) if rows.nbytes <= _BROADCAST_BYTES else frame


def _ordered(by: By) -> Column:
    [name] = quoted([by.column])
    column = F.col(name)
    if by.is_descending:
        return column.desc_nulls_first() if by.are_nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if by.are_nulls_first else column.asc_nulls_last()


def _long(value: int) -> Column:
    return F.lit(value).cast("bigint")


def _matched(rows: DataFrame, columns: tuple[str, ...], keys: StoredKeys, how: str) -> DataFrame:
    """Return the rows that have one of the keys, or those that have none. NULL is NULL."""
    names = tuple(f"key_{place}" for place in range(len(columns)))
    named = keys.named(names)
    sought = F.broadcast(named) if keys.most <= _BROADCAST_KEYS else named
    same = [F.col(own).eqNullSafe(F.col(key)) for own, key in zip(quoted(columns), names, strict=True)]
    return rows.join(sought, reduce(and_, same), how)
