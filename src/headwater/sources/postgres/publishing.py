"""The publication and the slot: what the source must have before its log can be followed, and the SQL that makes it.

The order matters. Identity before publication, or the owner's writes fail. Publication before slot, or the log before
the publication cannot be decoded. Nothing is filtered by column or row: pruning is the warehouse's business.

A publication belongs to a project, and its owner may have made it before there is a warehouse. A slot belongs to one
warehouse: if warehouses shared it, what was sent to one would be forgotten for all of them. Its name ends in a random
part that the warehouse keeps in its change log.
Changes of partitions are published under their own names (not via the root), so that a partition and its root can both
be followed, and a TRUNCATE of one partition is in the log.
"""

from __future__ import annotations

import re
import secrets
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from headwater.errors import SourceLost, SourceRefused, SourceUnavailable
from headwater.model.position import LSN, Position, by_log
from headwater.sources.postgres.blocking import blocking_sessions
from headwater.sources.postgres.catalog import GENERATED_PUBLISHED_FROM, DescribedTable
from headwater.sources.postgres.connect import TOOK_TOO_LONG, Address, Connection
from headwater.sources.source import SlotState

_MAX_NAME = 63
_RANDOM_BYTES = 4

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
_SLOTS_SQL = """
SELECT slot_name, confirmed_flush_lsn::text, active,
       coalesce(pg_current_wal_lsn() - restart_lsn, 0)::int8,
       CASE WHEN wal_status = 'lost' THEN 'its wal_status is lost'
            ELSE coalesce(to_jsonb(s) ->> 'invalidation_reason', '') END
FROM pg_replication_slots s
WHERE database = current_database() AND plugin = 'pgoutput' AND confirmed_flush_lsn IS NOT NULL
      AND (slot_name = %s OR slot_name ~ %s)
ORDER BY slot_name
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
    """Our replication slot as it is. With `two_phase` it tells of prepared transactions when they are prepared."""

    confirmed_offset: int
    two_phase: bool


def channel_name(project: str, source: str) -> str:
    """Return the name that the publication of a project's source has, and its slot once had.

    >>> channel_name("Department Store", "shop")
    'headwater_department_store_shop'
    """
    name = "headwater_" + re.sub(r"[^a-z0-9_]", "_", f"{project}_{source}".lower())
    return _shortened(name, _MAX_NAME)


def new_slot_name(channel: str) -> str:
    """Return a name for a slot that nobody else has.

    The source is part of it because slots are named per server: two databases of one server may be two sources.

    >>> name = new_slot_name("headwater_department_store_shop")
    >>> name[:-8], len(new_slot_name("headwater_" + 53 * "x"))
    ('headwater_department_store_shop_', 63)
    """
    return f"{_slot_stem(channel)}_{secrets.token_hex(_RANDOM_BYTES)}"


def _slot_stem(channel: str) -> str:
    return _shortened(channel, _MAX_NAME - 1 - 2 * _RANDOM_BYTES)


def _shortened(name: str, length: int) -> str:
    return name if len(name) <= length else f"{name[: length - 9]}_{zlib.crc32(name.encode()):08x}"


def find_slots(connection: Connection, channel: str, source: str, history: str) -> dict[str, SlotState]:
    """Return the slots that warehouses of this project have in this database, by name."""
    random_part = f"[0-9a-f]{{{2 * _RANDOM_BYTES}}}"
    rows = connection.execute(_SLOTS_SQL, (channel, f"^{_slot_stem(channel)}_{random_part}$")).fetchall()
    return {
        name: SlotState(
            name=name,
            forgotten_to=by_log([Position(source=source, history=history, offset=LSN.parse(confirmed))]),
            is_in_use=is_in_use,
            held_bytes=held_bytes,
            what=f"replication slot {name}",
            drop=f"SELECT pg_drop_replication_slot('{name}')",
            lost=_thrown_away(source, name, lost) if lost else None,
        )
        for name, confirmed, is_in_use, held_bytes, lost in rows
    }


def find_publication(connection: Connection, channel: str) -> Publication | None:
    """Read our publication from the catalog."""
    row = connection.execute(_PUBLICATION_SQL, (channel,)).fetchone()
    if row is None:
        return None
    return Publication(owned=row[0], all_tables=row[1], complete=row[2], via_root=row[3], tables=frozenset(row[4]))


def publication_sql(
    connection: Connection, channel: str, found: Publication | None, wanted: Sequence[DescribedTable]
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


def find_slot(connection: Connection, address: Address, slot: str) -> Slot | None:
    """Read our slot from the catalog. One that the server has given up is lost."""
    row = connection.execute(_SLOT_SQL, (slot,)).fetchone()
    if row is None:
        return None
    confirmed, plugin, database, is_here, wal_status, invalidation, two_phase = row
    if not is_here or plugin != "pgoutput":
        raise SourceRefused(
            f'source "{address.source}" has a replication slot "{slot}" that is not ours',
            code="HW-327",
            detail=f'it belongs to database "{database}" and plugin "{plugin}"',
            hint="rename the project, or drop the slot",
        )
    if wal_status == "lost" or invalidation or confirmed is None:
        why = f"wal_status {wal_status}, {invalidation or 'no reason given'}"
        raise _thrown_away(address.source, slot, why)
    return Slot(confirmed_offset=LSN.parse(confirmed), two_phase=two_phase)


def _thrown_away(source: str, slot: str, why: str) -> SourceLost:
    return SourceLost(
        f'source "{source}" has thrown away log that we still need',
        code="HW-311",
        detail=f'replication slot "{slot}": {why}',
        hint=f"`headwater teardown --source {source}` and `headwater run` read this source again; raise "
        "max_slot_wal_keep_size so that it does not happen again",
    )


def create_slot(connection: Connection, address: Address, slot: str, wait_seconds: float) -> Slot:
    """Make our slot. The server waits for the transactions that run now, and so do we, for a while."""
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
    connection.execute(sql.SQL("SET statement_timeout = {}").format(sql.Literal(round(wait_seconds * 1000))))
    try:
        with address.explained():
            connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
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
    made = find_slot(connection, address, slot)
    assert made is not None, "a slot that was just made is there"
    return made
