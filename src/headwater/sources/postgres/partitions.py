"""The partitions of followed tables: in which table a root's rows are logged, and rows that come or go without a log.

Changes of a partitioned table (the root) are logged under the tables that hold its rows (the leaves). Which leaves
belong to which root is asked here, and what belonged together is remembered from run to run, because three commands
change the rows of a root, and the log does not tell of them:

- ATTACH PARTITION brings the rows that a table already has;
- DETACH PARTITION and DROP TABLE take the rows of a leaf away;
- CREATE TABLE … INHERITS gives an ordinary table rows that are logged under another name.

So the catalog is compared with what is remembered: when a connection to the log is made, every few seconds, and when
the log names a table for the first time. A leaf that is gone stops the source. A leaf that joined is welcome if it has
no rows from before it joined: those that CREATE TABLE … PARTITION OF makes, and tables attached while empty.

The numbers of transactions and commands that PostgreSQL keeps with rows show whether a row was there before. They do
not show it if somebody made, filled (within a savepoint) and attached a table in one transaction, or changed or deleted
all such rows of an attached table before we looked.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg import sql

from headwater.errors import SourceRefused
from headwater.model.relation import Relation, RelationName
from headwater.sources.postgres.connect import Connection
from headwater.sources.postgres.messages import WireRelation
from headwater.sources.source import Memory

_log = logging.getLogger(__name__)

Leaves = Mapping[int, str]
"""The tables that hold the rows of a partitioned table: their numbers in the catalog, and their names in SQL."""

_LEAVES_SQL = """
WITH RECURSIVE tree(root, oid) AS (
    SELECT wanted, wanted FROM unnest(%s::oid[]) AS wanted
    UNION ALL
    SELECT tree.root, i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid WHERE NOT i.inhdetachpending
)
SELECT tree.root, leaf.oid, format('%%I.%%I', n.nspname, leaf.relname),
       CASE WHEN root.relkind <> 'p' THEN '' WHEN leaf.relkind <> 'r' THEN 'is a foreign table'
            WHEN leaf.relpersistence <> 'p' THEN 'is not logged' ELSE '' END
FROM tree JOIN pg_class root ON root.oid = tree.root
JOIN pg_class leaf ON leaf.oid = tree.oid JOIN pg_namespace n ON n.oid = leaf.relnamespace
WHERE leaf.relkind <> 'p' AND leaf.oid <> root.oid
ORDER BY 1, 4
"""
_JOINED_SQL = """
SELECT i.xmin::text, i.cmin::text, i.xmin = made.xmin
FROM pg_inherits i JOIN pg_attribute made ON made.attrelid = i.inhrelid AND made.attname = 'ctid'
WHERE i.inhrelid IN (SELECT relid FROM pg_partition_ancestors(%s))
  AND i.inhrelid NOT IN (SELECT relid FROM pg_partition_ancestors(%s))
"""
"""By which transaction and command a leaf, and what lies between it and the root, became what it is; and whether the
same transaction made the table."""
_BOUNDS_SQL = "SELECT coalesce(pg_get_partition_constraintdef(%s), 'true')"
_OLDER_ROWS = sql.SQL(
    "SELECT EXISTS (SELECT FROM {table} AS r WHERE r.tableoid = {leaf} AND {bounds}"
    " AND (r.xmin = {joined}::xid AND r.cmin::text::int8 < {command}"
    " OR NOT {made_here} AND age(r.xmin) > age({joined}::xid)))"
)
"""Rows of a leaf from before it joined. It is asked through the root: the account may not read the leaf itself. What
made and joined it in one transaction may have rows of a lower number: those of the transaction around a savepoint."""
_IS_STRANGER_SQL = """
SELECT EXISTS (SELECT FROM pg_class WHERE oid = %(oid)s) AND (p.puballtables OR EXISTS (
    SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid
    AND (r.prrelid = %(oid)s OR r.prrelid IN (SELECT relid FROM pg_partition_ancestors(%(oid)s)))))
FROM pg_publication p WHERE p.pubname = %(publication)s
"""
"""Whether a table is published to us for itself, or in a tree that nobody follows."""
_ROOTS_SQL = "SELECT oid FROM pg_class WHERE oid = ANY(%s) AND relkind = 'p'"


def remember_partitions(
    connection: Connection, oids: Mapping[int, RelationName], memory: Memory, *, afresh: bool
) -> None:
    """Note the leaves of relations that are followed from now on. Of all, with `afresh`: they are read again."""
    known = {} if afresh else _remembered(memory)
    found = _read_leaves(connection, oids)
    _remember(memory, {name: known.get(name, found[name]) for name in oids.values()})


class Partitions:
    """The leaves of the relations that one connection follows. Used by the following thread."""

    def __init__(
        self,
        connection: Connection,
        publication: str,
        oids: Mapping[int, RelationName],
        relations: Sequence[Relation],
        memory: Memory,
    ) -> None:
        """Compare what is there with what is remembered, at once."""
        self._connection = connection
        self._publication = publication
        self._oids = dict(oids)
        self._relations = {relation.name: relation for relation in relations}
        self._memory = memory
        self._described: set[int] = set()
        known, found = _remembered(memory), _read_leaves(connection, oids)
        self._known: dict[RelationName, dict[int, str]] = {
            name: dict(known.get(name, found[name])) for name in self._oids.values()
        }
        self.look()

    def leaves(self, name: RelationName) -> Leaves:
        """Return the tables that hold the rows of a relation. Empty for one that is not partitioned."""
        return self._known.get(name, {})

    def roots(self, wire: WireRelation) -> tuple[RelationName, ...]:
        """Return the partitioned relations that a table of the log is a leaf of. One that no longer is any is refused.

        One that is not known as a leaf is looked up, and so is one that the log describes again: it was altered.
        """
        found = self._roots(wire.oid)
        if not found or wire.oid in self._described:
            self.look()
            found = self._roots(wire.oid)
        self._described.add(wire.oid)
        if not found and wire.oid not in self._oids:
            self._require_stranger(wire)
        self._warn_of_identity(wire, found)
        return found

    def look(self) -> None:
        """Refuse the source if a leaf is gone, or joined with rows. Remember the leaves that joined without."""
        found = _read_leaves(self._connection, self._oids)
        joined = False
        for oid, name in self._oids.items():
            for leaf, written in found[name].items() - self._known[name].items():
                if leaf not in self._known[name]:
                    self._require_no_rows_before(oid, name, leaf, written)
                self._known[name][leaf] = written
                joined = True
            gone = sorted(self._known[name].keys() - found[name].keys())
            if gone:
                raise rows_unknown(name, f"{self._known[name][gone[0]]} no longer belongs to it: its rows went with it")
        if joined:
            _remember(self._memory, self._known)

    def _roots(self, leaf: int) -> tuple[RelationName, ...]:
        return tuple(name for name, leaves in self._known.items() if leaf in leaves)

    def _require_no_rows_before(self, root: int, name: RelationName, leaf: int, written: str) -> None:
        """Refuse a leaf that has rows from before it joined."""
        links = self._connection.execute(_JOINED_SQL, (leaf, root)).fetchall()
        if not links:
            raise rows_unknown(name, f"table {written} inherits from it now, and is logged under its own name")
        bounds = self._connection.execute(_BOUNDS_SQL, (leaf,)).fetchone()
        assert bounds is not None
        for transaction, command, made_here in links:
            row = self._connection.execute(
                _OLDER_ROWS.format(
                    table=sql.Identifier(name.schema, name.name),
                    leaf=sql.Literal(leaf),
                    bounds=sql.SQL(bounds[0]),
                    made_here=sql.Literal(made_here),
                    joined=sql.Literal(transaction),
                    command=sql.Literal(int(command)),
                )
            ).fetchone()
            if row == (True,):
                raise rows_unknown(name, f"partition {written} was attached with rows: those are not in the log")

    def _require_stranger(self, wire: WireRelation) -> None:
        """Refuse a table of the log that seems to have been a leaf, and is none."""
        row = self._connection.execute(_IS_STRANGER_SQL, {"oid": wire.oid, "publication": self._publication}).fetchone()
        if row == (True,):
            return
        columns = {column.name for column in wire.columns}
        for (oid,) in self._connection.execute(_ROOTS_SQL, (list(self._oids),)).fetchall():
            name = self._oids[oid]
            usable = set(self._relations[name].column_names)
            if usable <= columns <= usable.union(other for other, _ in self._relations[name].unusable):
                raise rows_unknown(name, f"{wire.schema}.{wire.name} was a partition of it and is gone, with its rows")

    def _warn_of_identity(self, wire: WireRelation, roots: Sequence[RelationName]) -> None:
        if roots and wire.identity != "f":
            _log.warning(
                'source "%s": partition %s.%s has no REPLICA IDENTITY FULL. The first UPDATE or DELETE in it stops what'
                " reads %s. Let its owner run: ALTER TABLE %s.%s REPLICA IDENTITY FULL;",
                roots[0].source, wire.schema, wire.name, roots[0], wire.schema, wire.name,
            )  # fmt: skip


def rows_unknown(name: RelationName, detail: str) -> SourceRefused:
    """Return the error for a relation whose rows changed in a way that its log does not tell."""
    return SourceRefused(
        f'rows of "{name}" came or went without being in the log of its source',
        code="HW-344",
        detail=detail,
        hint=f"run `headwater teardown --source {name.source}`, then `headwater run`: the source is read again",
    )


def leaf_obstacles(connection: Connection, oids: Sequence[int]) -> dict[int, str]:
    """Return why partitioned tables cannot be followed, because of a leaf, by their numbers. Others are left out."""
    rows = connection.execute(_LEAVES_SQL, (list(oids),)).fetchall()
    return {
        root: f"its partition {written} {obstacle}: the changes of its rows are not in the log"
        for root, _, written, obstacle in rows
        if obstacle
    }


def _read_leaves(connection: Connection, oids: Mapping[int, RelationName]) -> dict[RelationName, dict[int, str]]:
    """Return the leaves that relations have now."""
    found: dict[RelationName, dict[int, str]] = {name: {} for name in oids.values()}
    for root, leaf, written, obstacle in connection.execute(_LEAVES_SQL, (list(oids),)).fetchall():
        if obstacle:
            raise rows_unknown(
                oids[root], f"partition {written} {obstacle}: the changes of its rows are not in the log"
            )
        found[oids[root]][leaf] = written
    return found


def _remembered(memory: Memory) -> dict[RelationName, dict[int, str]]:
    text = memory.read()
    if text is None:
        return {}
    return {
        RelationName(**one["relation"]): {int(oid): written for oid, written in one["leaves"].items()}
        for one in json.loads(text)["partitions"]
    }


def _remember(memory: Memory, known: Mapping[RelationName, Leaves]) -> None:
    value: list[dict[str, Any]] = [
        {"relation": {"source": name.source, "schema": name.schema, "name": name.name}, "leaves": dict(leaves)}
        for name, leaves in sorted(known.items())
    ]
    memory.write(json.dumps({"partitions": value}, sort_keys=True))
