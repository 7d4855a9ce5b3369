"""What the catalog of a PostgreSQL database says about relations, and what is missing before they can be followed.

A relation can be followed if all its changes are logged with the whole old row, and if what we read is what is there:

- it is an ordinary or partitioned table, logged with all its partitions, without tables inheriting from it, without
  row-level security for us;
- it and every partition of it has REPLICA IDENTITY FULL — checked before publishing, because a published table without
  identity makes its owner's UPDATE and DELETE fail;
- a partitioned table has a primary key. Its later partitions are published with it, and do not inherit REPLICA IDENTITY
  FULL: without a key they would have no identity at all, and their owner's UPDATE and DELETE would fail;
- generated columns: up to PostgreSQL 17 they are not in the log and therefore unusable; from 18 on stored ones are
  published. Virtual ones never are, and with FULL they would make UPDATE and DELETE fail: such a table is refused.

What no log tells, and nobody can notice: a rewrite of a column that keeps its type (`ALTER … TYPE int USING x + 1`)
and renaming a value of an enumeration. After one of these the views over the table must be read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.errors import SourceRefused
from headwater.model.relation import Column, ForeignKey, Identity, Relation, RelationName
from headwater.sources.postgres.connect import Connection
from headwater.sources.postgres.followable import CatalogEntry, later_partitions, refusal
from headwater.sources.postgres.partitions import leaf_obstacles
from headwater.sources.postgres.types import TYPES_SQL, TypeCatalog
from headwater.sources.source import missing_relation

GENERATED_PUBLISHED_FROM = 180000

_TABLES_SQL = """
SELECT n.nspname, c.relname, c.oid, c.relkind::text, c.relpersistence::text, c.relreplident::text,
       (SELECT coalesce(sum(CASE
            WHEN s.reltuples > 0 THEN s.reltuples
            WHEN pg_stat_get_live_tuples(s.oid) > 0 THEN pg_stat_get_live_tuples(s.oid)
            ELSE trunc(pg_relation_size(s.oid) / (
               SELECT 28 + coalesce(sum(CASE WHEN a.attlen > 0 THEN a.attlen ELSE 32 END), 0)
               FROM pg_attribute a WHERE a.attrelid = s.oid AND a.attnum > 0 AND NOT a.attisdropped)) END), 0)::int8
        FROM pg_class s WHERE s.relkind IN ('r', 'm')
          AND (s.oid = c.oid OR s.oid IN (SELECT relid FROM pg_partition_tree(c.oid) WHERE isleaf))),
       pg_has_role(c.relowner, 'USAGE'), row_security_active(c.oid),
       ARRAY_REMOVE(ARRAY[
           CASE WHEN NOT has_schema_privilege(n.oid, 'USAGE')
                THEN format('GRANT USAGE ON SCHEMA %%I TO %%I', n.nspname, current_user) END,
           CASE WHEN NOT has_table_privilege(c.oid, 'SELECT')
                THEN format('GRANT SELECT ON %%I.%%I TO %%I', n.nspname, c.relname, current_user) END], NULL),
       EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid) AND c.relkind <> 'p',
       ARRAY(SELECT format('%%I.%%I', pn.nspname, p.relname)
             FROM pg_partition_tree(c.oid) tree JOIN pg_class p ON p.oid = tree.relid
             JOIN pg_namespace pn ON pn.oid = p.relnamespace
             WHERE p.relreplident <> 'f' AND c.relkind = 'p' AND p.oid <> c.oid AND tree.isleaf ORDER BY 1),
       c.relispartition, format('%%I.%%I', n.nspname, c.relname)
FROM unnest(%s::text[], %s::text[]) AS wanted(schema, name)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
"""
"""Rows are estimated: as counted when the table was last analyzed, or as they were inserted and deleted since the
server began to count that, or else from the table's size, as PostgreSQL's planner does: a row has 28 bytes beside its
values, and a value of varying length has 32."""
_COLUMNS_SQL = """
SELECT a.attrelid, a.attname, a.atttypid, a.atttypmod, a.attgenerated::text, format_type(a.atttypid, a.atttypmod),
       a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint n WHERE n.conrelid = a.attrelid AND n.contype = 'n'
                                    AND n.conkey[1] = a.attnum AND NOT n.convalidated),
       CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid) END
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
_INDEXES_SQL = """
SELECT i.indrelid, i.indisprimary,
       ARRAY(SELECT a.attname FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
             WHERE k.place <= i.indnkeyatts
               AND NOT EXISTS (SELECT FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS e(attnum, place)
                               WHERE e.place <= k.place AND e.attnum = 0)
             ORDER BY k.place)::text[]
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
WHERE i.indrelid = ANY(%s) AND i.indisvalid AND i.indpred IS NULL AND m.amname IN ('btree', 'hash')
ORDER BY i.indrelid, NOT i.indisprimary, i.indexrelid
"""
_FOREIGN_KEYS_SQL = """
SELECT f.conrelid, n.nspname, p.relname,
       ARRAY(SELECT a.attname FROM unnest(f.conkey) WITH ORDINALITY AS k(attnum, place)
             JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.attnum ORDER BY k.place)::text[],
       ARRAY(SELECT a.attname FROM unnest(f.confkey) WITH ORDINALITY AS k(attnum, place)
             JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.attnum ORDER BY k.place)::text[]
FROM pg_constraint f JOIN pg_class p ON p.oid = f.confrelid JOIN pg_namespace n ON n.oid = p.relnamespace
WHERE f.contype = 'f' AND f.conrelid = ANY(%s) AND f.convalidated AND NOT f.condeferrable
  AND coalesce(to_jsonb(f)->>'conperiod', 'false') = 'false'
  AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgconstraint = f.oid AND t.tgenabled NOT IN ('O', 'A'))
ORDER BY f.conrelid, f.conname
"""
"""References that hold after every statement and for every row: not deferrable, checked, of equal values, switched on.

Of PostgreSQL 18: one that is NOT ENFORCED is not validated either, and one with a PERIOD compares ranges.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedTable:
    """A relation, its number in the catalog, and what we may and must still do about it."""

    relation: Relation
    oid: int
    owned: bool
    grant_sql: tuple[str, ...]
    identity_sql: tuple[str, ...]
    partition_identity_sql: tuple[str, ...]
    """The same for its partitions: until one of them has it, an UPDATE or DELETE there cannot be followed."""
    is_partitioned: bool
    """Whether it has partitions, or is one."""
    refusal: SourceRefused | None
    """Why the relation cannot be followed as it is; None if nothing stands in the way."""
    warnings: tuple[str, ...] = ()


def load_types(connection: Connection) -> TypeCatalog:
    """Read every type of the database."""
    return TypeCatalog(connection.execute(TYPES_SQL).fetchall())


class TypeNames:
    """Says what the types are that the log names by number. Asks the database once for each."""

    def __init__(self, connection: Connection) -> None:
        """Read the types there are now. One that is made later is read when it is met."""
        self._connection = connection
        self._types = load_types(connection)
        self._names: dict[tuple[int, int], tuple[str | None, str]] = {}

    def __call__(self, oid: int, modifier: int) -> tuple[str | None, str]:
        """Return the Spark type that holds a type (None: none does), and what PostgreSQL calls it."""
        if (oid, modifier) not in self._names:
            if oid not in self._types:
                self._types = load_types(self._connection)
            resolved = self._types.resolve(oid, modifier)
            name = native_name(self._connection, resolved.oid, resolved.modifier)
            self._names[oid, modifier] = (resolved.spark, name)
        return self._names[oid, modifier]


def native_name(connection: Connection, oid: int, modifier: int) -> str:
    """Return what PostgreSQL calls a type."""
    row = connection.execute("SELECT format_type(%s::oid, %s)", (oid, modifier)).fetchone()
    assert row is not None
    return str(row[0])


def describe(connection: Connection, names: Sequence[RelationName]) -> tuple[DescribedTable | SourceRefused, ...]:
    """Describe relations in the order asked. For one that is not there, the error that says so."""
    rows = connection.execute(_TABLES_SQL, ([name.schema for name in names], [name.name for name in names])).fetchall()
    found = {(row[0], row[1]): row[2:] for row in rows}
    oids = [row[0] for row in found.values()]
    columns = connection.execute(_COLUMNS_SQL, (oids,)).fetchall()
    indexes = connection.execute(_INDEXES_SQL, (oids,)).fetchall()
    references = connection.execute(_FOREIGN_KEYS_SQL, (oids,)).fetchall()
    types = load_types(connection)
    of_leaves = leaf_obstacles(connection, oids)
    return tuple(
        _described(
            connection,
            name,
            table=found[name.schema, name.name],
            columns=columns,
            indexes=indexes,
            references=references,
            types=types,
            of_leaves=of_leaves,
        )
        if (name.schema, name.name) in found
        else missing_relation(
            name, f'there is no table "{name.schema}"."{name.name}", or it cannot be seen by this account'
        )
        for name in names
    )


def describe_all(connection: Connection, names: Sequence[RelationName]) -> tuple[DescribedTable, ...]:
    """Describe relations that can all be followed. The first that cannot is refused."""
    found = []
    for each in describe(connection, names):
        if isinstance(each, SourceRefused):
            raise each
        if each.refusal is not None:
            raise each.refusal
        found.append(each)
    return tuple(found)


def _described(
    connection: Connection,
    name: RelationName,
    *,
    table: tuple[Any, ...],
    columns: Sequence[tuple[Any, ...]],
    indexes: Sequence[tuple[Any, ...]],
    references: Sequence[tuple[Any, ...]],
    types: TypeCatalog,
    of_leaves: Mapping[int, str],
) -> DescribedTable:
    (
        oid,
        kind,
        persistence,
        identity,
        estimate,
        owned,
        secured,
        grants,
        inherited,
        bare_partitions,
        is_leaf,
        table_sql,
    ) = table
    generated_published = connection.info.server_version >= GENERATED_PUBLISHED_FROM
    usable: list[Column] = []
    unusable: list[tuple[str, str]] = []
    not_null: set[str] = set()
    virtual: list[str] = []
    for _, column, type_oid, modifier, generated, native, never_null, formula in (r for r in columns if r[0] == oid):
        resolved = types.resolve(type_oid, modifier)
        virtual += [column] if generated == "v" else []
        if generated and not (generated == "s" and generated_published):
            unusable.append((column, f"{native}, generated as {formula}, and is not logged before PostgreSQL 18"))
        elif resolved.spark is None:
            unusable.append((column, native))
        else:
            if (resolved.oid, resolved.modifier) != (type_oid, modifier):
                native = native_name(connection, resolved.oid, resolved.modifier)  # noqa: PLW2901 - a domain's base
            usable.append(Column(name=column, type=resolved.spark, native=native))
            not_null |= {column} if never_null else set()
    names = {column.name for column in usable}
    leading = [(primary, tuple(leads)) for index_oid, primary, leads in indexes if index_oid == oid and leads]
    has_key = any(primary for primary, _ in leading)
    relation = Relation(
        name=name,
        columns=tuple(usable),
        key=next((leads for primary, leads in leading if primary and names.issuperset(leads)), ()),
        indexes=tuple(dict.fromkeys(leads for _, leads in leading)),
        identity=_identity(identity, has_key=has_key),
        unusable=tuple(unusable),
        row_estimate=int(estimate),
        not_null=frozenset(not_null),
        foreign_keys=tuple(_foreign_key(name, *row[1:]) for row in references if row[0] == oid),
    )
    return DescribedTable(
        relation=relation,
        oid=oid,
        owned=owned,
        grant_sql=tuple(grants),
        identity_sql=_identity_sql([table_sql] if identity != "f" else []),
        partition_identity_sql=_identity_sql(bare_partitions),
        is_partitioned=kind == "p" or is_leaf,
        refusal=refusal(
            name,
            table_sql,
            CatalogEntry(
                kind=kind,
                persistence=persistence,
                has_key=has_key,
                is_secured=secured,
                is_inherited=inherited,
                virtual=tuple(virtual),
                of_leaf=of_leaves.get(oid, ""),
            ),
        ),
        warnings=(later_partitions(name),) if kind == "p" else (),
    )


def _identity_sql(tables: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in tables)


def _foreign_key(
    child: RelationName, schema: str, table: str, columns: Sequence[str], referred: Sequence[str]
) -> ForeignKey:
    return ForeignKey(
        columns=tuple(columns),
        parent=RelationName(source=child.source, schema=schema, name=table),
        parent_columns=tuple(referred),
    )


def _identity(letter: str, *, has_key: bool) -> Identity:
    match letter:
        case "f":
            return Identity.FULL
        case "i":
            return Identity.KEY
        case "d" if has_key:
            return Identity.KEY
        case _:
            return Identity.NOTHING
