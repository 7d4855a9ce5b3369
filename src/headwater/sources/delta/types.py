"""Columns of a Delta table, from the schema in its log: the types are those of Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from headwater.model.relation import Column

_NAMES = {
    "boolean": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
}


def columns_of(
    schema_text: str, partition_columns: Sequence[str] = ()
) -> tuple[tuple[Column, ...], tuple[tuple[str, str], ...]]:
    """Return the columns that can be held, and the others with the names of their types.

    Writers do not agree on how bytes are written as a partition value.

    >>> fields = [{"name": "id", "type": "long"}, {"name": "tags", "type": {"type": "map"}}]
    >>> held, others = columns_of(json.dumps({"fields": fields}))
    >>> [(one.name, one.type) for one in held], others
    ([('id', 'bigint')], (('tags', 'map'),))
    """
    held: list[Column] = []
    others: list[tuple[str, str]] = []
    for one in json.loads(schema_text)["fields"]:
        native = _text(one["type"])
        kind = spark_type(one["type"])
        if one["name"] in partition_columns and kind == "binary":
            others.append((one["name"], "binary, as a partition column"))
        elif kind is None:
            others.append((one["name"], native))
        else:
            held.append(Column(name=one["name"], type=kind, native=native))
    return tuple(held), tuple(others)


def spark_type(kind: Any) -> str | None:
    """Return the Spark name of a type as a Delta log writes it, or None if it cannot be held.

    >>> spark_type("long"), spark_type("decimal(10, 2)"), spark_type({"type": "array", "elementType": "integer"})
    ('bigint', 'decimal(10,2)', 'array<int>')
    """
    if isinstance(kind, dict):
        element = spark_type(kind.get("elementType")) if kind.get("type") == "array" else None
        return None if element is None else f"array<{element}>"
    if kind in _NAMES:
        return _NAMES[kind]
    if match := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", str(kind)):
        return f"decimal({match[1]},{match[2]})"
    return None


def _text(kind: Any) -> str:
    return str(kind["type"]) if isinstance(kind, dict) else str(kind)
