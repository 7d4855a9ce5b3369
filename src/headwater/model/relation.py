"""A table of a source, without its data.

Types are Spark SQL type names in lower case; `native` keeps the source's own name for the type, which is what a probe
casts its keys to. Arrow is how rows travel, so the one mapping from Spark types to Arrow types is here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import pyarrow as pa

DEFAULT_SCHEMA = "public"
"""How a name says: the schema where the source looks if none is named, whatever the source itself calls it.

The word is PostgreSQL's because warehouses have stored names with it, and names of segments are made from it.
"""
COUNT = "_count"
TICK = "_tick"
SEGMENTS = "segments"
"""What stands for a source in the stored name of a segment; no project may call a source so."""

_SIMPLE_TYPES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(spark_type: str) -> pa.DataType:
    """Return the Arrow type whose values a Spark type holds.

    >>> arrow_type("decimal(12,2)")
    Decimal128Type(decimal128(12, 2))
    >>> arrow_type("array<int>")
    ListType(list<element: int32>)
    """
    if spark_type in _SIMPLE_TYPES:
        return _SIMPLE_TYPES[spark_type]
    if decimal := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", spark_type):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if array := re.fullmatch(r"array<(.+)>", spark_type):
        return pa.list_(pa.field("element", arrow_type(array[1])))
    raise AssertionError(f"not a type of ours: {spark_type}")


class ColumnUse(Enum):
    """What views do with a column, which decides what may happen to it at the source while it is followed."""

    READ = "read"
    """Some view reads it, from the first row of the log on."""
    FIRST_READ = "read for the first time"
    """Views read it that are computed from the rows that are there now: what the log said of it before is not used."""
    UNREAD = "not read"
    """No view reads it. It is NULL in the change log where its source no longer sends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a relation: its name, its Spark type, what the source calls that type, and what views do with it."""

    name: str
    type: str
    native: str
    use: ColumnUse = ColumnUse.READ

    @property
    def arrow_field(self) -> pa.Field:
        """The Arrow field that holds this column. Every column may be NULL."""
        return pa.field(self.name, arrow_type(self.type))


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationName:
    """The name of a table at a source. Segments have a `SegmentName`.

    >>> str(RelationName(source="shop", schema="public", name="sales"))
    'shop.sales'
    >>> str(RelationName(source="shop", schema="old", name="sales"))
    'shop.old.sales'
    """

    source: str
    schema: str = DEFAULT_SCHEMA
    name: str

    def __post_init__(self) -> None:
        """See to it that a segment's name is one by its type: nothing else has to compare texts."""
        assert self.source != SEGMENTS or isinstance(self, SegmentName), f"a segment's name is a SegmentName: {self}"

    def __lt__(self, other: RelationName) -> bool:
        """Tell whether this name comes first: by source, schema and table."""
        return (self.source, self.schema, self.name) < (other.source, other.schema, other.name)

    def __str__(self) -> str:
        """Return the name as a view's SQL writes it. The default schema is left out."""
        middle = "" if self.schema == DEFAULT_SCHEMA else f"{self.schema}."
        return f"{self.source}.{middle}{self.name}"

    @property
    def label(self) -> str:
        """The name as a person reads it."""
        return str(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SegmentName(RelationName):
    """The name of a segment: what a step of a view gives is read like a relation, and is a table of no source.

    >>> SegmentName(name="group_1").label, str(SegmentName(name="group_1"))
    ('group_1', 'segments.group_1')
    >>> SegmentName(name="sales") == RelationName(source="shop", name="sales")
    False
    """

    source: str = field(default=SEGMENTS, init=False)
    schema: str = field(default=DEFAULT_SCHEMA, init=False)

    def __repr__(self) -> str:
        """Return the text by which steps name what they read: segments' stored names are made of it."""
        return f"RelationName(source={self.source!r}, schema={self.schema!r}, name={self.name!r})"

    @property
    def label(self) -> str:
        """The name as a person reads it: alone."""
        return self.name


def is_reserved_source(name: str) -> bool:
    """Tell whether no source may have this name: it stands for a source in the names of segments."""
    return name == SEGMENTS


def written_name(source: str, name: str, schema: str = DEFAULT_SCHEMA) -> RelationName:
    """Return the name that is written so in SQL.

    >>> isinstance(written_name("segments", "group_1"), SegmentName), isinstance(written_name("s", "t"), SegmentName)
    (True, False)
    """
    return SegmentName(name=name) if source == SEGMENTS else RelationName(source=source, schema=schema, name=name)


class Identity(Enum):
    """What a source's log has of the old row when a row is changed or deleted."""

    FULL = "full"
    KEY = "key"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """Columns whose values, where none is NULL, are those of exactly one row of another table of the same source.

    Only keys that hold after every statement: neither deferrable nor unchecked for older rows.
    """

    columns: tuple[str, ...]
    parent: RelationName
    parent_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A table of a source as its catalog describes it.

    `key` is the primary key (empty if there is none); `indexes` are the leading columns of the usable indexes;
    `unusable` names the columns whose type we cannot hold, with the source's name for the type: a view that uses one
    is refused, other views do not care. `not_null` are the columns that never hold NULL.
    """

    name: RelationName
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    identity: Identity = Identity.FULL
    unusable: tuple[tuple[str, str], ...] = ()
    row_estimate: int = 0
    not_null: frozenset[str] = frozenset()
    foreign_keys: tuple[ForeignKey, ...] = ()

    def column(self, name: str) -> Column:
        """Return the column of that name. Asking for one that is not there is a bug of the caller."""
        return next(column for column in self.columns if column.name == name)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the columns, in the source's order."""
        return tuple(column.name for column in self.columns)

    def in_order(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return columns in the source's order, each once."""
        wanted = set(names)
        return tuple(name for name in self.column_names if name in wanted)

    def arrow_schema(self, columns: tuple[str, ...] | None = None) -> pa.Schema:
        """Return the Arrow schema of this relation's rows, or of some of their columns in the order asked."""
        names = self.column_names if columns is None else columns
        return pa.schema([self.column(name).arrow_field for name in names])
