"""The publication and the slot: what the source must have before its log can be followed, and the SQL that makes it.

The order matters. Identity before publication, or the owner's writes fail. Publication before slot, or the log before
the publication cannot be decoded. Nothing is filtered by column or row: pruning is the warehouse's business.
Changes of partitions are published under their own names (not via the root), so that a partition and its root can both
be followed, and a TRUNCATE of one partition is told of.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from headwater.errors import SourceLost, SourceRefused, SourceUnavailable
from headwater.position import parse_offset
from headwater.sources.postgres.blocking import blocking_sessions
from headwater.sources.postgres.catalog import GENERATED_PUBLISHED_FROM, Described
from headwater.sources.postgres.connect import TOOK_TOO_LONG, Address, Connection

_MAX_NAME = 63
_SLOT_SECONDS = 60

_PUBLICATION_SQL = """
SELECT pg_has_role(p.pubowner, 'USAGE'), p.puballtables,
       p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate
       AND coalesce(to_jsonb(p) ->> 'pubgencols', 's') = 's', p.pubviaroot,
       ARRAY(SELECT r.prrelid FROM pg_publication_rel r WHERE r.prpubid = p.oid
             AND coalesce(to_jsonb(r) -> 'prqual', 'null') = 'null'
             AND coalesce(to_jsonb(r) -> 'prattrs', 'null') = 'null')::oid[]
FROM pg_publication p WHERE p.pubname = %s
"""
_SLOT_SQL = """
SELECT confirmed_flush_lsn::text, plugin, database, database = current_database(), wal_status,
       coalesce(to_jsonb(s) ->> 'invalidation_reason', ''), two_phase
FROM pg_replication_slots s WHERE slot_name = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Our publication as it is."""

    owned: bool
    all_tables: bool
    complete: bool
    via_root: bool
    tables: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Our replication slot as it is; with `two_phase` it tells of prepared transactions when they are prepared."""

    confirmed_offset: int
    two_phase: bool


def channel_name(project: str, source: str) -> str:
    """Return the name that the slot and the publication of a project's source have.

    The source is part of it because slots are named per server: two databases of one server may be two sources.

    >>> channel_name("Department Store", "shop")
    'headwater_department_store_shop'
    """
    name = "headwater_" + re.sub(r"[^a-z0-9_]", "_", f"{project}_{source}".lower())
    if len(name) <= _MAX_NAME:
        return name
    return f"{name[: _MAX_NAME - 9]}_{zlib.crc32(name.encode()):08x}"


def find_publication(connection: Connection, channel: str) -> Publication | None:
    """Read our publication from the catalog."""
    row = connection.execute(_PUBLICATION_SQL, (channel,)).fetchone()
    if row is None:
        return None
    return Publication(owned=row[0], all_tables=row[1], complete=row[2], via_root=row[3], tables=frozenset(row[4]))


def publication_sql(
    connection: Connection, channel: str, found: Publication | None, wanted: Sequence[Described]
) -> tuple[str, ...]:
    """Return the statements that make our publication hold the wanted relations, whole."""
    options = "publish = 'insert, update, delete, truncate', publish_via_partition_root = false"
    if connection.info.server_version >= GENERATED_PUBLISHED_FROM:
        options += ", publish_generated_columns = stored"
    missing = [each for each in wanted if found is None or not (found.all_tables or each.oid in found.tables)]
    tables = ", ".join(
        sql.Identifier(each.relation.name.schema, each.relation.name.name).as_string(connection) for each in missing
    )
    if found is None:
        return (f"CREATE PUBLICATION {channel} FOR TABLE {tables} WITH ({options})",)
    is_misnamed = found.via_root and any(each.is_partitioned for each in wanted)
    statements = [] if found.complete and not is_misnamed else [f"ALTER PUBLICATION {channel} SET ({options})"]
    if missing:
        statements.append(f"ALTER PUBLICATION {channel} ADD TABLE {tables}")
    return tuple(statements)


def find_slot(connection: Connection, address: Address, channel: str) -> Slot | None:
    """Read our slot from the catalog; one that the server has given up is lost."""
    row = connection.execute(_SLOT_SQL, (channel,)).fetchone()
    if row is None:
        return None
    confirmed, plugin, database, is_here, wal_status, invalidation, two_phase = row
    if not is_here or plugin != "pgoutput":
        raise SourceRefused(
            f'source "{address.source}" has a replication slot "{channel}" that is not ours',
            code="HW-327",
            detail=f'it belongs to database "{database}" and plugin "{plugin}"',
            hint="rename the project, or drop the slot",
        )
    if wal_status == "lost" or invalidation or confirmed is None:
        raise SourceLost(
            f'source "{address.source}" ({address.place}) has thrown away log that we still need',
            code="HW-311",
            detail=f'replication slot "{channel}": wal_status {wal_status}, {invalidation or "no reason given"}',
            hint="run `headwater teardown` and start over; raise max_slot_wal_keep_size",
        )
    return Slot(confirmed_offset=parse_offset(confirmed), two_phase=two_phase)


def create_slot(connection: Connection, address: Address, channel: str) -> Slot:
    """Make our slot; the server waits for the transactions that run now, and so do we, for a while."""
    row = connection.execute(
        "SELECT current_setting('max_replication_slots')::int > (SELECT count(*) FROM pg_replication_slots)"
    ).fetchone()
    if row == (False,):
        raise SourceRefused(
            f'source "{address.source}" ({address.place}) has no replication slot left',
            code="HW-328",
            detail="max_replication_slots are all in use",
            hint="drop a slot that nobody needs, or raise max_replication_slots and restart the server",
        )
    connection.execute(sql.SQL("SET statement_timeout = {}").format(sql.Literal(_SLOT_SECONDS * 1000)))
    try:
        with address.explained():
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (channel,))
    except SourceUnavailable as error:
        if error.code != TOOK_TOO_LONG:
            raise
        raise SourceUnavailable(
            f'source "{address.source}" ({address.place}) cannot start a log for us while transactions stay open',
            code="HW-307",
            detail="; ".join(blocking_sessions(connection)) or "no session is named",
            hint="end the transactions named above, then try again",
        ) from None
    finally:
        if not connection.closed:
            connection.execute("SET statement_timeout = 0")
    slot = find_slot(connection, address, channel)
    assert slot is not None, "a slot that was just made is there"
    return slot
