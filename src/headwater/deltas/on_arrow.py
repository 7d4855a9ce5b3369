"""Signed bags as Arrow tables: what a maintainer holds of a batch.

A table has the columns of the relation, `_tick` and `_count`. Everything here is vectorised; no row becomes a Python
object, except values of an array type (Arrow cannot group by them: they are grouped by their printed form).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, Self, overload

import pyarrow as pa
import pyarrow.compute as pc

from headwater.deltas.extent import Extent, Remainder
from headwater.deltas.indexed_rows import is_among
from headwater.deltas.key_hashes import comparable
from headwater.deltas.lookup import NO_TICK, Lookup, Restriction, RowRequest, RowResult
from headwater.deltas.selection import Selection
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK

if TYPE_CHECKING:  # what is held needs no Spark
    from headwater.deltas.stored_bag import AnyKeys, Bag

_PLACE = "_place"


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return an empty signed table for rows of a schema.

    >>> empty_table(pa.schema([("a", pa.int32())])).column_names
    ['a', '_tick', '_count']
    """
    return pa.schema([*schema, pa.field(TICK, pa.int64()), pa.field(COUNT, pa.int64())]).empty_table()


def _hold(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return the values cast to a type, NULL where it cannot hold them."""
    if values.type == kind:
        return values
    try:
        return pc.cast(values, kind)
    except pa.ArrowInvalid:
        return pa.chunked_array([pa.array([_held(value, kind) for value in values], kind)])


def _held(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    try:
        return value.cast(kind).as_py()
    except pa.ArrowInvalid:
        return None


def with_one_zero(rows: pa.Table) -> pa.Table:
    """Return rows as Spark groups them, and as changes have them: one zero, and one NaN.

    >>> with_one_zero(pa.table({"a": [-0.0, None]})).to_pylist()
    [{'a': 0.0}, {'a': None}]
    """
    for place, column in enumerate(rows.schema):
        if pa.types.is_floating(column.type):
            values = pc.add(rows[column.name], pa.scalar(0, column.type))
            nan = pa.scalar(float("nan"), column.type)
            rows = rows.set_column(place, column, pc.if_else(pc.is_nan(values), nan, values))
    return rows


def split_by_null(keys: pa.Table) -> Iterator[pa.Table]:
    """Yield the keys that have no NULL, and those that have one, where there are any.

    >>> [part.to_pylist() for part in split_by_null(pa.table({"a": [1, None], "b": [2, 3]}))]
    [[{'a': 1, 'b': 2}], [{'a': None, 'b': 3}]]
    """
    whole = keys.drop_null()
    if whole.num_rows:
        yield whole
    if whole.num_rows < keys.num_rows:
        yield keys.filter(reduce(pc.or_, [pc.is_null(column) for column in keys.columns]))


def remaining(table: pa.Table, rows: Remainder) -> pa.Table:
    """Return the rows of a table that are in a remainder.

    >>> few, some = (Extent.of([Selection(column="a", compare="less", values=(n,))]) for n in (2, 4))
    >>> remaining(pa.table({"a": [1, 3, 5, None]}), Remainder(of=some, without=few)).to_pylist()
    [{'a': 3}]
    """
    kept = table if rows.of.is_everything else table.filter(_passing(table, rows.of))
    return kept.filter(pc.invert(_passing(kept, rows.without))) if rows.without.any_of else kept


def _passing(table: pa.Table, extent: Extent) -> pa.ChunkedArray:
    """Return for each row whether it passes. A NULL never does, and the answer is never NULL."""
    no, yes = (pa.chunked_array([pa.repeat(pa.scalar(one), table.num_rows)]) for one in (False, True))
    lists = [reduce(pc.and_, [_passing_one(table, one) for one in selections], yes) for selections in extent.any_of]
    return reduce(pc.or_, lists, no)


def _passing_one(table: pa.Table, selection: Selection) -> pa.ChunkedArray:
    column = table[selection.column]
    values = pa.array(selection.values, column.type)
    if selection.compare == "equal":
        return pc.is_in(column, value_set=values)
    return pc.fill_null(pc.call_function(selection.compare, [column, values[0]]), fill_value=False)


@dataclass(frozen=True, slots=True)
class ArrowKeys:
    """Key values as a table of distinct rows. Those of a join have no NULL (`ArrowBag.keys`)."""

    table: pa.Table

    stored: ClassVar[None] = None
    """The keys are not on Spark."""

    @property
    def held(self) -> ArrowKeys:
        """The keys, which are in this process."""
        return self

    def named(self, columns: tuple[str, ...]) -> pa.Table:
        """Return the keys as values of columns, whatever these were called where the keys come from."""
        return self.table.rename_columns(list(columns))

    @overload
    def without(self, others: ArrowKeys) -> ArrowKeys: ...

    @overload
    def without(self, others: AnyKeys) -> AnyKeys: ...

    def without(self, others: AnyKeys) -> AnyKeys:
        """Return the keys that are not among the others."""
        if (held := others.held) is None:
            assert others.stored is not None, "keys have one of two forms"
            return others.stored.like(self).without(others)
        if not len(self) or not len(held):
            return self
        columns = tuple(self.table.column_names)
        return ArrowKeys(self.table.filter(pc.invert(is_among(self.table, columns, held.named(columns)))))

    @overload
    def plus(self, others: ArrowKeys) -> ArrowKeys: ...

    @overload
    def plus(self, others: AnyKeys) -> AnyKeys: ...

    def plus(self, others: AnyKeys) -> AnyKeys:
        """Return the keys of both, each once."""
        if (held := others.held) is None:
            return others.plus(self)
        renamed = held.table.rename_columns(self.table.column_names)
        return ArrowKeys(_distinct(pa.concat_tables([self.table, renamed])))

    def __len__(self) -> int:
        """Return how many keys there are."""
        return int(self.table.num_rows)

    @property
    def most(self) -> int:
        """How many keys there are."""
        return len(self)


def _distinct(table: pa.Table) -> pa.Table:
    names = table.column_names
    if not any(map(pa.types.is_nested, table.schema.types)):
        return table.group_by(names, use_threads=False).aggregate([]).select(names)
    flat = pa.table([comparable(table[name]) for name in names], names).append_column(_PLACE, _places(table))
    return table.take(flat.group_by(names, use_threads=False).aggregate([(_PLACE, "min")])[f"{_PLACE}_min"])


def _places(table: pa.Table) -> pa.Array:
    return pa.array(range(table.num_rows), pa.int64())


@dataclass(frozen=True, slots=True)
class ArrowBag:
    """Rows with `_tick` and `_count` in one Arrow table.

    >>> rows = pa.table({"a": [1, 1, 2], "_tick": [5, 5, 5], "_count": [1, -1, 3]})
    >>> ArrowBag(rows).net().table.to_pylist()
    [{'a': 2, '_tick': 5, '_count': 3}]
    """

    table: pa.Table

    @classmethod
    def of_counted(cls, rows: pa.Table, tick: Tick) -> Self:
        """Return rows that have `_count`, stamped with a tick."""
        names = [name for name in rows.column_names if name != COUNT]
        stamps = pa.repeat(pa.scalar(tick, pa.int64()), rows.num_rows)
        return cls(rows.select(names).append_column(TICK, stamps).append_column(COUNT, rows[COUNT]))

    @classmethod
    def of_plain(cls, rows: pa.Table, tick: Tick) -> Self:
        """Return plain rows, each of which counts one, stamped with a tick."""
        return cls.of_counted(rows.append_column(COUNT, pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows)), tick)

    @property
    def counted(self) -> pa.Table:
        """The rows with `_count`, without their ticks."""
        return self.table.drop_columns([TICK])

    stored: ClassVar[None] = None
    """The entries are not on Spark."""

    @property
    def held(self) -> ArrowBag:
        """The bag, whose entries are in this process."""
        return self

    @property
    def schema(self) -> pa.Schema:
        """The columns with their types, `_tick` and `_count` among them."""
        return self.table.schema

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the rows' columns."""
        return tuple(name for name in self.table.column_names if name not in (TICK, COUNT))

    @property
    def most(self) -> int:
        """How many entries there are."""
        return len(self)

    @overload
    def plus(self, other: ArrowBag) -> ArrowBag: ...

    @overload
    def plus(self, other: Bag) -> Bag: ...

    def plus(self, other: Bag) -> Bag:
        """Return the rows of both."""
        if (held := other.held) is None:
            return other.plus(self)
        if not len(self):
            return held
        if not len(held):
            return self
        return ArrowBag(pa.concat_tables([self.table, held.table.select(self.table.column_names)]))

    def negated(self) -> ArrowBag:
        """Return the same rows with their counts' signs turned."""
        return self._with(COUNT, pc.negate(self.table[COUNT]))

    def _with(self, name: str, values: pa.ChunkedArray | pa.Array) -> ArrowBag:
        return ArrowBag(self.table.set_column(self.table.column_names.index(name), name, values))

    def _grouped(self, aggregate: str) -> ArrowBag:
        """Return equal rows of equal tick as one, its count being the sum or the maximum of theirs."""
        lists = [field.name for field in self.table.schema if pa.types.is_list(field.type)]
        if lists:
            return self._grouped_by_printed(lists, aggregate)
        names = self.table.column_names
        by = [name for name in names if name != COUNT]
        grouped = self.table.group_by(by, use_threads=False).aggregate([(COUNT, aggregate)])
        kept = grouped.rename_columns([*by, COUNT]).select(names)
        return ArrowBag(kept.filter(pc.not_equal(kept[COUNT], 0)))

    def _grouped_by_printed(self, lists: list[str], aggregate: str) -> ArrowBag:
        """Group by what array values look like, and keep the values of some row of each group."""
        flat = self.table.drop_columns(lists).append_column(_PLACE, _places(self.table))
        for name in lists:
            flat = flat.append_column(name, comparable(self.table[name]))
        by = [name for name in flat.column_names if name not in (COUNT, _PLACE)]
        grouped = flat.group_by(by, use_threads=False).aggregate([(COUNT, aggregate), (_PLACE, "min")])
        counts = grouped[f"{COUNT}_{aggregate}"]
        some = self.table.take(grouped[f"{_PLACE}_min"])
        kept = some.set_column(some.column_names.index(COUNT), COUNT, counts)
        return ArrowBag(kept.filter(pc.not_equal(counts, 0)))

    def net(self) -> ArrowBag:
        """Return equal rows of equal tick as one, with the sum of their counts. Zero sums vanish."""
        return self._grouped("sum") if len(self) else self

    def net_if_held(self) -> ArrowBag:
        """Return the same as `net`."""
        return self.net()

    @overload
    def changed_by(self, changes: ArrowBag, tick: Tick) -> ArrowBag: ...
    @overload
    def changed_by(self, changes: Bag, tick: Tick) -> Bag: ...
    def changed_by(self, changes: Bag, tick: Tick) -> Bag:
        """Return these rows, which are netted, with changes added, stamped with a tick, and netted."""
        return self.plus(changes).restamped(tick).net()

    def plain(self) -> pa.Table:
        """Return plain rows: one that counts k stands k times."""
        return unfolded(self)

    def positive(self) -> ArrowBag:
        """Return the netted rows whose count is above zero."""
        netted = self.net().table
        return ArrowBag(netted.filter(pc.greater(netted[COUNT], 0)))

    def picked(self, columns: tuple[str, ...]) -> ArrowBag:
        """Return the rows with these of their columns."""
        return ArrowBag(self.table.select([*columns, TICK, COUNT]))

    def typed(self, schema: pa.Schema, columns: tuple[str, ...] | None = None) -> ArrowBag:
        """Return columns, some perhaps twice, under the names and types of a schema, which has them in their order."""
        names = (*(self.columns if columns is None else columns), TICK, COUNT)
        return ArrowBag(pa.table([self.table[name] for name in names], names=schema.names).cast(schema))

    def restamped(self, tick: Tick) -> ArrowBag:
        """Return the rows with another tick."""
        return self._with(TICK, pa.repeat(pa.scalar(tick, pa.int64()), len(self)))

    def shifted(self, ticks: int) -> ArrowBag:
        """Return the rows with their ticks moved."""
        return self._with(TICK, pc.add(self.table[TICK], pa.scalar(ticks, pa.int64())))

    def upto(self, tick: Tick) -> ArrowBag:
        """Return the rows whose tick is not after this one."""
        return ArrowBag(self.table.filter(pc.less_equal(self.table[TICK], tick)))

    def after(self, tick: Tick) -> ArrowBag:
        """Return the rows whose tick is after this one."""
        return ArrowBag(self.table.filter(pc.greater(self.table[TICK], tick)))

    def at(self, ticks: Collection[Tick]) -> ArrowBag:
        """Return the rows that have one of these ticks."""
        return ArrowBag(self.table.filter(pc.is_in(self.table[TICK], value_set=pa.array(ticks, pa.int64()))))

    def ticks(self) -> list[Tick]:
        """Return the ticks that rows have, in their order."""
        return sorted(Tick(tick) for tick in self.table[TICK].unique().to_pylist())

    def keys(self, columns: tuple[str, ...], like: Bag, as_columns: tuple[str, ...]) -> ArrowKeys:
        """Return the distinct values of columns, cast to the types that `like` has in `as_columns`."""
        held = [
            _hold(self.table[column], like.schema.field(name).type)
            for column, name in zip(columns, as_columns, strict=True)
        ]
        return ArrowKeys(_distinct(pa.table(held, names=list(as_columns)).drop_null()))

    def groups(self, columns: tuple[str, ...]) -> ArrowKeys:
        """Return the distinct values of columns, NULL being a value like any other: those of a GROUP BY."""
        return ArrowKeys(_distinct(self.table.select(list(columns))))

    @overload
    def matching(self, columns: tuple[str, ...], keys: ArrowKeys) -> ArrowBag: ...

    @overload
    def matching(self, columns: tuple[str, ...], keys: AnyKeys) -> Bag: ...

    def matching(self, columns: tuple[str, ...], keys: AnyKeys) -> Bag:
        """Return the rows whose columns hold one of the keys."""
        if (held := keys.held) is None:
            assert keys.stored is not None, "keys have one of two forms"
            return keys.stored.bag_like(self).matching(columns, keys)
        if not len(self) or not len(held):
            return ArrowBag(self.table.slice(0, 0))
        return ArrowBag(self.table.filter(is_among(self.table, columns, held.named(columns))))

    def known(self, columns: tuple[str, ...]) -> ArrowBag:
        """Return the rows that have no NULL in these columns."""
        return ArrowBag(self.table.filter(reduce(pc.and_, [pc.is_valid(self.table[name]) for name in columns])))

    def selected(self, extent: Extent) -> ArrowBag:
        """Return the rows of an extent."""
        return ArrowBag(remaining(self.table, Remainder(of=extent)))

    @overload
    def widest(self, other: ArrowBag) -> ArrowBag: ...

    @overload
    def widest(self, other: Bag) -> Bag: ...

    def widest(self, other: Bag) -> Bag:
        """Return every row of either with the larger of its two counts."""
        if (held := other.held) is None:
            return other.widest(self)
        if not len(self):
            return held
        return self.plus(held)._grouped("max") if len(held) else self  # noqa: SLF001 - another bag of this class

    def __len__(self) -> int:
        """Return how many entries there are."""
        return int(self.table.num_rows)


def summed_up(rows: pa.Table) -> pa.Table:
    """Return rows with counts and without ticks, equal ones as one, with the sum of their counts. Zero sums vanish.

    >>> summed_up(pa.table({"a": [1, 1, 2, 2], "_count": [1, 1, 1, -1]})).to_pylist()
    [{'a': 1, '_count': 2}]
    """
    return ArrowBag.of_counted(rows, NO_TICK).net().table.select(rows.column_names)


def unfolded(bag: ArrowBag) -> pa.Table:
    """Return the rows of a bag as plain rows: one that counts k stands k times.

    >>> unfolded(ArrowBag(pa.table({"a": [1, 2], "_count": [2, 1]}))).to_pylist()
    [{'a': 1}, {'a': 1}, {'a': 2}]
    """
    counts = bag.table[COUNT].combine_chunks()
    places = pc.list_parent_indices(
        pa.ListArray.from_arrays(
            pa.concat_arrays([pa.array([0], pa.int32()), pc.cast(pc.cumulative_sum(counts), pa.int32())]),
            pa.nulls(pc.sum(counts).as_py() or 0),
        )
    )
    return bag.table.select(list(bag.columns)).take(places)


ArrowRestriction = Restriction[ArrowKeys]
ArrowRequest = RowRequest[ArrowKeys]
ArrowResult = RowResult[ArrowBag]
ArrowLookup = Lookup[ArrowKeys, ArrowBag]
"""What a maintainer looks rows up in: they come as Arrow tables."""
