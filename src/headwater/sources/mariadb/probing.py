"""The SQL of a probe: which rows of a relation equal some of these keys, found on an index.

    WITH k (k0) AS (VALUES (…), …) SELECT STRAIGHT_JOIN r.`wanted` FROM k JOIN relation AS r ON r.`column` = k.k0 AND …

MariaDB's own equality of texts says yes too often: it ignores case, accents, and blanks at the end (`utf8mb4_bin`
too). It finds the rows on the index, and a second test, of the bytes, decides. Keys are written in the character set
and collation of their column: otherwise the column would be converted, and no index would help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.model.relation import Column, Relation
from headwater.sources.mariadb.catalog import table_of
from headwater.sources.mariadb.connect import text_literal
from headwater.sources.mariadb.types import held, printed, quoted

_KEYS_PER_STATEMENT = 5_000
_LAST_OF_THREE_BYTES = "\uffff"
_BY_TEXT = frozenset(("time", "bit", "enum", "set", "uuid", "inet4", "inet6"))


def probe_queries(
    relation: Relation, database: str, wanted: Sequence[str], columns: tuple[str, ...], keys: pa.Table
) -> Iterator[str]:
    """Yield the queries that read the wanted columns of the rows whose `columns` equal some row of `keys`."""
    selected = ", ".join(printed(relation.column(name)) for name in wanted)
    table = f"{table_of(relation.name, database)} AS r"
    if not columns:
        yield f"SELECT {selected} FROM {table}"
        return
    probed = [relation.column(name) for name in columns]
    spelled = [[_literal(column, key) for key in keys.column(n).to_pylist()] for n, column in enumerate(probed)]
    rows = dict.fromkeys(row for row in zip(*spelled, strict=True) if None not in row)
    tests = " AND ".join(_equality(column, f"k.k{n}") for n, column in enumerate(probed))
    names = ", ".join(f"k{n}" for n in range(len(probed)))
    for some in _batched(list(rows)):
        values = ", ".join(f"({', '.join(row)})" for row in some)
        yield (f"WITH k ({names}) AS (VALUES {values}) SELECT STRAIGHT_JOIN {selected} FROM k JOIN {table} ON {tests}")


def _batched(rows: list[Any]) -> Iterator[Sequence[Any]]:
    for at in range(0, len(rows), _KEYS_PER_STATEMENT):
        yield rows[at : at + _KEYS_PER_STATEMENT]


def _equality(column: Column, key: str) -> str:
    own = f"r.{quoted(column.name)}"
    kind = held(column).kind
    if kind in _BY_TEXT:
        return f"CAST({printed(column)} AS BINARY) = {key}"
    if kind == "text":
        return f"{own} = {key} AND CAST({own} AS BINARY) = CAST({key} AS BINARY)"
    return f"{own} = {key}"


def _literal(column: Column, value: Any) -> str | None:  # noqa: PLR0911 — one for each kind of value
    """Return a key as SQL writes it. None if no row can have it."""
    found = held(column)
    try:
        match found.kind:
            case "text":
                if found.charset in ("utf8", "utf8mb3") and max(value, default="") > _LAST_OF_THREE_BYTES:
                    return None
                return text_literal(value, "utf8mb3" if found.charset == "utf8" else found.charset, found.collation)
            case "binary":
                return f"_binary X'{value.hex()}'"
            case kind if kind in _BY_TEXT:
                return f"_binary X'{value.encode().hex()}'"
            case "date":
                return f"DATE'{value}'"
            case "datetime" | "timestamp":
                return f"TIMESTAMP'{value.year:04d}-{value:%m-%d %H:%M:%S.%f}'"
            case "float" | "double":
                return f"{value + 0.0:.17e}" if value - value == 0 else None  # -0.0 is 0.0, and would be found twice
            case "decimal":
                return f"{value:f}"  # with an exponent, all keys of the statement would be doubles
            case _:
                return str(value)
    except UnicodeEncodeError:
        return None


def literal(column: Column) -> Callable[[str], str]:
    """Return how a value that the server has printed is written in SQL, as the bound of a chunk."""
    found = held(column)
    if found.kind == "text":
        return lambda text: text_literal(text, "utf8mb3" if found.charset == "utf8" else found.charset, found.collation)
    if found.kind in ("integer", "decimal", "year"):
        return lambda text: str(int(text)) if "." not in text else _number(text)
    return text_literal


def _number(text: str) -> str:
    assert text.replace("-", "").replace(".", "").isdigit(), "a number was printed"
    return text
