"""What the catalog of a MariaDB server says about relations, and what keeps them from being followed.

A relation can be followed if all its changes are logged, row by row:

- it is a table of InnoDB: rows of other engines are transactions of their own, and survive a ROLLBACK;
- no foreign key changes its rows (ON DELETE CASCADE, SET NULL and so on): such changes are not logged;
- it has no system versions: rows of its history look like rows.

`information_schema.referential_constraints` is empty for an account that may only SELECT. SHOW CREATE TABLE tells.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from headwater.errors import HeadwaterError, SourceRefused
from headwater.model.relation import DEFAULT_SCHEMA, Column, Relation, RelationName
from headwater.sources.mariadb.connect import Connection, text_literal, texts
from headwater.sources.mariadb.types import GENERATED, held_type, quoted
from headwater.sources.source import missing_relation

_TABLES = """
SELECT t.table_type, coalesce(t.engine, ''), coalesce(t.table_rows, 0), t.table_schema, t.table_name
FROM information_schema.tables t WHERE t.table_schema = {schema} AND t.table_name = {table}
"""
_COLUMNS = """
SELECT column_name, column_type, coalesce(character_set_name, ''), coalesce(collation_name, ''), is_nullable, extra
FROM information_schema.columns WHERE table_schema = {schema} AND table_name = {table} ORDER BY ordinal_position
"""
_INDEXES = """
SELECT index_name, column_name, coalesce(sub_part, ''), index_type
FROM information_schema.statistics WHERE table_schema = {schema} AND table_name = {table}
ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index
"""
_CASCADE = re.compile(
    r"CONSTRAINT (`(?:[^`]|``)+`) FOREIGN KEY .*? ON (?:DELETE|UPDATE) (?:CASCADE|SET NULL|SET DEFAULT)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A relation, and why it cannot be followed, if it cannot."""

    relation: Relation
    refusal: SourceRefused | None


def describe(connection: Connection, name: RelationName, database: str) -> Described | HeadwaterError:
    """Describe a relation, or say that it is not there."""
    schema = schema_of(name, database)
    place = {"schema": text_literal(schema), "table": text_literal(name.name)}
    found = texts(connection, _TABLES.format(**place))
    if not found or found[0][3:] != (schema, name.name):
        like = f"; there is {'.'.join(found[0][3:])}" if found else ""
        return missing_relation(name, f"looked for table {schema}.{name.name}{like}")
    kind, engine, row_count, _, _ = found[0]
    columns, unusable, not_null = _columns(texts(connection, _COLUMNS.format(**place)))
    key, indexes = _indexes(texts(connection, _INDEXES.format(**place)))
    relation = Relation(
        name=name,
        columns=columns,
        key=key if set(key) <= {column.name for column in columns} else (),
        indexes=indexes,
        unusable=unusable,
        row_estimate=int(row_count),
        not_null=not_null,
    )
    refusal = _refusal(connection, name, schema, kind, engine)
    return Described(relation=relation, refusal=refusal)


def schema_of(name: RelationName, database: str) -> str:
    """Return the database that a relation is in."""
    return database if name.schema == DEFAULT_SCHEMA else name.schema


def table_of(name: RelationName, database: str) -> str:
    """Return a relation's name as SQL writes it."""
    return f"{quoted(schema_of(name, database))}.{quoted(name.name)}"


def _columns(
    rows: Sequence[tuple[str, ...]],
) -> tuple[tuple[Column, ...], tuple[tuple[str, str], ...], frozenset[str]]:
    columns, unusable, not_null = [], [], set()
    for name, kind, charset, collation, nullable, extra in rows:
        native = f"{kind} character set {charset} collate {collation}" if charset else kind
        found = held_type(native)
        if found is None or "VIRTUAL" in extra.upper().split():
            unusable.append((name, native if found is None else f"{native}, virtual"))
            continue
        is_computed = "STORED" in extra.upper().split()
        columns.append(Column(name=name, type=found.spark, native=native + GENERATED * is_computed))
        if nullable == "NO":
            not_null.add(name)
    return tuple(columns), tuple(unusable), frozenset(not_null)


def _indexes(rows: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the primary key, and the columns of every index that finds whole values, in its order."""
    found: dict[str, list[str]] = defaultdict(list)
    ended: set[str] = set()
    for index, column, prefix, kind in rows:
        if prefix or kind not in ("BTREE", "HASH"):
            ended.add(index)
        if index not in ended:
            found[index].append(column)
    return tuple(found.get("PRIMARY", ())), tuple(dict.fromkeys(tuple(one) for one in found.values()))


def _refusal(connection: Connection, name: RelationName, schema: str, kind: str, engine: str) -> SourceRefused | None:
    table = f"{quoted(schema)}.{quoted(name.name)}"
    if kind == "SYSTEM VERSIONED":
        return _not_followed(
            name,
            "it has system versions: in the log, rows of its history look like its rows",
            f"let the owner run: ALTER TABLE {table} DROP SYSTEM VERSIONING",
        )
    if kind != "BASE TABLE":
        return _not_followed(name, f"it is a {kind.lower()}", "name the tables that it reads")
    if engine.upper() != "INNODB":
        return _not_followed(
            name,
            f"its engine is {engine}: what it logs are no transactions, and a ROLLBACK does not take them back",
            f"let the owner run: ALTER TABLE {table} ENGINE=InnoDB",
        )
    definition = texts(connection, f"SHOW CREATE TABLE {table}")[0][1]
    cascades = _CASCADE.findall(definition)
    if cascades:
        dropped = ", ".join(f"DROP FOREIGN KEY {one}" for one in cascades)
        return SourceRefused(
            f'relation "{name}" is changed by a foreign key',
            code="HW-382",
            detail=f"foreign key {cascades[0]} changes its rows by itself, and the server does not log such changes",
            hint=f"let the owner run: ALTER TABLE {table} {dropped};\n"
            "and add it again without CASCADE, SET NULL or SET DEFAULT; a trigger may do their work, and is logged",
        )
    return None


def _not_followed(name: RelationName, detail: str, hint: str) -> SourceRefused:
    return SourceRefused(f'relation "{name}" cannot be followed', code="HW-381", detail=detail, hint=hint)
