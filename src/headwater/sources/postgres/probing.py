"""The SQL of a probe: which rows of a relation equal some of these keys, found on an index.

    SELECT r."wanted" FROM relation AS r JOIN unnest('{…}'::int8[], …) AS k(k0, …) ON r."column" = k.k0 AND …

Keys have the type their Arrow column has, so that an index on an int4 column serves int8 keys. Equality must mean
what it means to the caller: equality of the values *as we return them*. Where PostgreSQL's own equality
says yes more often (blank-padded text, collations that ignore case, uuid in capitals), it finds the rows on the index
and a second condition on the text decides. Types without a useful equality of their own are compared as text, which
no index helps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pyarrow as pa
from psycopg import sql

from headwater.model.relation import Column, Relation
from headwater.sources.postgres.types import is_blank_padded

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KEY_TYPES: dict[pa.DataType, str] = {
    pa.bool_(): "bool",
    pa.int8(): "int2",
    pa.int16(): "int2",
    pa.int32(): "int4",
    pa.int64(): "int8",
    pa.float32(): "float4",
    pa.float64(): "float8",
    pa.string(): "text",
    pa.large_string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
}
PLAIN_TEXT = re.compile(r"text|name|character varying(\(\d+\))?")


def relation_identifier(relation: Relation) -> sql.Identifier:
    """Return a relation's name, quoted."""
    return sql.Identifier(relation.name.schema, relation.name.name)


def column_list(names: Iterable[str]) -> sql.Composed:
    """Return columns of the alias `r`, quoted."""
    return sql.SQL(", ").join(sql.Identifier("r", name) for name in names)


def probe_query(relation: Relation, wanted: tuple[str, ...], columns: tuple[str, ...], keys: pa.Table) -> sql.Composed:
    """Return the query that reads the wanted columns of the rows whose `columns` equal some row of `keys`."""
    if not columns:
        return sql.SQL("SELECT {} FROM {} AS r").format(column_list(wanted), relation_identifier(relation))
    probed = [relation.column(name) for name in columns]
    texts = _key_texts(probed, keys)
    arrays = [
        sql.SQL("{}::{}[]").format(sql.Literal(_array_literal(values, key.type)), sql.SQL(_key_type(column, key.type)))
        for column, values, key in zip(probed, texts, keys.columns, strict=True)
    ]
    names = [sql.Identifier(f"k{place}") for place in range(len(columns))]
    return sql.SQL("SELECT {} FROM {} AS r JOIN unnest({}) AS k({}) ON {}").format(
        column_list(wanted),
        relation_identifier(relation),
        sql.SQL(", ").join(arrays),
        sql.SQL(", ").join(names),
        sql.SQL(" AND ").join(_equality(column, place) for place, column in enumerate(probed)),
    )


def _key_type(column: Column, arrow: pa.DataType) -> str:
    if column.native == "uuid":
        return "uuid"
    if pa.types.is_decimal(arrow):
        return "numeric"
    if pa.types.is_timestamp(arrow):
        return "timestamptz" if arrow.tz else "timestamp"
    return _KEY_TYPES[arrow]


def _equality(column: Column, place: int) -> sql.Composed:
    ours, theirs = sql.Identifier("r", column.name), sql.Identifier("k", f"k{place}")
    if column.type != "string" or column.native == "uuid":
        return sql.SQL("{} = {}").format(ours, theirs)
    if is_blank_padded(column.native):
        return sql.SQL('({0} = {1}::bpchar AND {0}::text COLLATE "C" = {1} COLLATE "C")').format(ours, theirs)
    if PLAIN_TEXT.fullmatch(column.native):
        return sql.SQL('({0} = {1} AND {0}::text COLLATE "C" = {1} COLLATE "C")').format(ours, theirs)
    return sql.SQL("({0} IS NOT NULL AND format('%s', {0}) = {1})").format(ours, theirs)


def _key_texts(probed: list[Column], keys: pa.Table) -> list[list[str]]:
    """Return the keys' texts column by column, without keys that no row can have and without repeats."""
    columns = [_texts(keys.column(place)) for place in range(len(probed))]
    rows = dict.fromkeys(zip(*columns, strict=True))
    uuids = [place for place, column in enumerate(probed) if column.native == "uuid"]
    kept = [
        row
        for row in rows
        if all("\x00" not in text for text in row) and all(_UUID.fullmatch(row[place]) for place in uuids)
    ]
    return [list(values) for values in zip(*kept, strict=True)] if kept else [[] for _ in probed]


def _texts(column: pa.ChunkedArray) -> list[str]:
    kind = column.type
    assert column.null_count == 0, "keys hold no NULL"
    if pa.types.is_binary(kind):
        return ["\\x" + value.hex() for value in column.to_pylist()]
    if pa.types.is_floating(kind):
        return [repr(value + 0.0) for value in column.to_pylist()]  # adding zero turns -0.0 into 0.0, which it equals
    texts: list[str] = column.cast(pa.string()).to_pylist()
    return texts


def _array_literal(texts: list[str], kind: pa.DataType) -> str:
    r"""Return texts as PostgreSQL writes an array.

    >>> _array_literal(["1", "2"], pa.int64()), _array_literal(['a"b'], pa.string())
    ('{1,2}', '{"a\\"b"}')
    """
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind)):
        quoted = [f'"{text}"' for text in texts] if pa.types.is_timestamp(kind) else texts
        return "{" + ",".join(quoted) + "}"
    return "{" + ",".join('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts) + "}"
