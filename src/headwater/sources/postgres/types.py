"""Which Spark type holds a PostgreSQL type, decided from its catalog entry alone.

Decisions a user may question:

- `numeric(p,s)` with p <= 38 and 0 <= s <= p is `decimal(p,s)`. `numeric` without precision is `decimal(38,18)`, and a
  value that does not fit in it exactly (NaN and the infinities included) is refused by name when it is met: never
  rounded. Any other numeric is unusable.
- -0.0 is kept as 0.0, which it equals to PostgreSQL and to Spark.
- `char(n)` is `string` without its trailing blanks: PostgreSQL itself ignores them when it compares.
- `uuid`, `json`, `jsonb`, `xml`, `inet`, `cidr`, `macaddr`, `time`, `timetz`, `interval` and enumerations are `string`,
  as PostgreSQL prints them; two texts that PostgreSQL calls equal (`1 day`, `24:00:00`) are two values.
- `timestamptz` is `timestamp`, `timestamp` is `timestamp_ntz`. Infinite dates, years BC and years past 9999 are refused
  by name when they are met.
- A domain is its base type. Arrays have one dimension, start at 1, and hold numbers, booleans, text, uuid or dates.
- Everything else is unusable: a view that names such a column is refused, other views do not care.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_MAX_PRECISION = 38
UNBOUNDED_NUMERIC = "decimal(38,18)"

_SIMPLE: Mapping[str, str] = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "int",
    "int8": "bigint",
    "float4": "float",
    "float8": "double",
    "bytea": "binary",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "char"), "string"),
    **dict.fromkeys(("uuid", "json", "jsonb", "xml", "inet", "cidr", "macaddr"), "string"),
    **dict.fromkeys(("time", "timetz", "interval"), "string"),
}
_ARRAY_ELEMENTS = frozenset(
    ("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "uuid", "date")
)

TYPES_SQL = """
SELECT t.oid, t.typname, n.nspname, t.typtype::text, t.typbasetype, t.typtypmod, t.typelem, t.typarray
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogType:
    """One row of pg_type, as far as we care."""

    oid: int
    name: str
    schema: str = "pg_catalog"
    kind: str = "b"
    base: int = 0
    modifier: int = -1
    element: int = 0
    array: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedType:
    """A column's type with its domains taken off, and the Spark type that holds it (None: no type does)."""

    oid: int
    modifier: int
    spark: str | None


class TypeCatalog:
    """Every type of one database, by its number."""

    def __init__(self, rows: Iterable[tuple[int, str, str, str, int, int, int, int]]) -> None:
        """Keep the rows that TYPES_SQL gave."""
        self._types = {
            oid: CatalogType(
                oid=oid,
                name=name,
                schema=schema,
                kind=kind,
                base=base,
                modifier=modifier,
                element=element,
                array=array,
            )
            for oid, name, schema, kind, base, modifier, element, array in rows
        }

    def __contains__(self, oid: int) -> bool:
        """Tell whether a type was there when the catalog was read."""
        return oid in self._types

    def resolve(self, oid: int, modifier: int) -> ResolvedType:
        """Take the domains off a type, and say which Spark type holds it."""
        found = self._types.get(oid)
        while found is not None and found.kind == "d":
            oid, modifier = found.base, found.modifier
            found = self._types.get(oid)
        if found is None:
            return ResolvedType(oid=oid, modifier=modifier, spark=None)
        return ResolvedType(oid=oid, modifier=modifier, spark=self._spark(found, modifier))

    def _spark(self, found: CatalogType, modifier: int) -> str | None:
        if found.kind == "e":
            return "string"
        if found.schema != "pg_catalog":
            return None
        element = self._types.get(found.element)
        if element is not None and element.array == found.oid:
            held = _scalar(element.name, modifier) if element.name in _ARRAY_ELEMENTS else None
            return None if held is None or element.schema != "pg_catalog" else f"array<{held}>"
        return _scalar(found.name, modifier)


def _scalar(name: str, modifier: int) -> str | None:
    return numeric_type(modifier) if name == "numeric" else _SIMPLE.get(name)


def numeric_type(modifier: int) -> str | None:
    """Return the decimal that holds a numeric with this type modifier, or None.

    >>> numeric_type(((12 << 16) | 2) + 4), numeric_type(-1), numeric_type(((40 << 16) | 2) + 4)
    ('decimal(12,2)', 'decimal(38,18)', None)
    """
    if modifier < 0:
        return UNBOUNDED_NUMERIC
    precision = ((modifier - 4) >> 16) & 0xFFFF
    scale = (((modifier - 4) & 0x7FF) ^ 0x400) - 0x400  # 11 bits, signed
    return f"decimal({precision},{scale})" if precision <= _MAX_PRECISION and 0 <= scale <= precision else None


def is_blank_padded(native: str) -> bool:
    """Tell whether a type as PostgreSQL names it is char(n), whose trailing blanks mean nothing.

    >>> is_blank_padded("character(3)"), is_blank_padded("character varying(3)")
    (True, False)
    """
    return native == "bpchar" or native.startswith("character(")
