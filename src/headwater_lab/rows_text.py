"""Rows as a scenario writes them: `(9, 'pen', NULL)`, and `(7, 8)[2]` for a row that is there twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from headwater.model.relation import Relation
from headwater_lab.in_memory.bag import Row

NOTHING = "nothing"
_FEW = 8

_VALUE = r"(?:'(?:[^']|'')*'|[^\s,()\[\]']+)"
_ROW = rf"\(\s*{_VALUE}(?:\s*,\s*{_VALUE})*\s*\)(?:\[\d+\])?"

ROWS = rf"{_ROW}(?:\s*,\s*{_ROW})*"
"""What one row or several look like."""

NATIVE_TYPES: Mapping[str, str] = {
    "boolean": "bool",
    "smallint": "int2",
    "int": "int4",
    "bigint": "int8",
    "double": "float8",
    "string": "text",
    "date": "date",
}
"""The types that a scenario's columns may have, as Spark names them, and what PostgreSQL would call them."""


def _unquoted(text: str) -> str:
    if not (text.startswith("'") and text.endswith("'")):
        raise ValueError("not quoted")
    return text[1:-1].replace("''", "'")


_READERS: Mapping[str, Callable[[str], Any]] = {
    "boolean": lambda text: {"true": True, "false": False}[text.lower()],
    "smallint": int,
    "int": int,
    "bigint": int,
    "double": float,
    "string": _unquoted,
    "date": lambda text: date.fromisoformat(_unquoted(text)),
}


def parse_rows(text: str, relation: Relation) -> list[tuple[Row, int]]:
    """Return rows of a relation with their counts. Raise ValueError, with the reason, if they cannot be its rows.

    >>> from headwater.model.relation import Column, RelationName
    >>> columns = (Column(name="id", type="int", native="int4"), Column(name="name", type="string", native="text"))
    >>> relation = Relation(name=RelationName(source="shop", name="people"), columns=columns)
    >>> parse_rows("(1, 'O''Hara'), (2, NULL)[3]", relation)
    [((1, "O'Hara"), 1), ((2, None), 3)]
    """
    return [_parse_row(match, relation) for match in re.findall(_ROW, text)]


def _parse_row(text: str, relation: Relation) -> tuple[Row, int]:
    end = text.rindex(")")
    inner, count = text[:end], text[end + 1 :]
    values = re.findall(_VALUE, inner)
    if len(values) != len(relation.columns):
        raise ValueError(f"{text} has {len(values)} values, {relation.name} has {len(relation.columns)} columns")
    row = tuple(_parse_value(value, column.type) for value, column in zip(values, relation.columns, strict=True))
    return row, int(count.strip("[]")) if count else 1


def _parse_value(text: str, spark_type: str) -> Any:
    if text.upper() == "NULL":
        return None
    try:
        return _READERS[spark_type](text)
    except (ValueError, KeyError):
        raise ValueError(f"{text} is not a value of type {spark_type}") from None


def format_value(value: object) -> str:
    """Return a value as a scenario writes it.

    >>> [format_value(value) for value in (3, None, True, "O'Hara")]
    ['3', 'NULL', 'true', "'O''Hara'"]
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int() | float() | Decimal():
            return str(value)
        case _:
            return "'" + str(value).replace("'", "''") + "'"


def format_counted(row: Row, count: int) -> str:
    """Return a row, with its count if that is not one.

    >>> format_counted((7, 8), 2)
    '(7, 8)[2]'
    """
    return f"({', '.join(format_value(value) for value in row)})" + ("" if count == 1 else f"[{count}]")


def format_bag(rows: Mapping[Row, int]) -> str:
    """Return the rows of a bag, in the order of their values."""
    return ", ".join(format_counted(row, count) for row, count in _in_order(rows.items())) or NOTHING


def format_signed(rows: Iterable[tuple[Row, int]]) -> str:
    """Return signed rows, each with its sign. If there are many, the first ones and how many more.

    >>> format_signed([((2, 3), -1), ((1, 3), 2)])
    '+(1, 3)[2], -(2, 3)'
    """
    ordered = _in_order(rows)
    shown = [("-" if count < 0 else "+") + format_counted(row, abs(count)) for row, count in ordered[:_FEW]]
    more = [f"and {len(ordered) - _FEW} more"] if len(ordered) > _FEW else []
    return ", ".join(shown + more) or NOTHING


def _in_order(rows: Iterable[tuple[Row, int]]) -> list[tuple[Row, int]]:
    kept = [(row, count) for row, count in rows if count]
    return sorted(kept, key=lambda entry: [(value is not None, str(type(value)), value) for value in entry[0]])
