"""What a server and an account must be before a log can be followed. Checked before anything is made or opened."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import HeadwaterError, SourceRefused
from headwater.sources.postgres.connect import Address, Connection

_OLDEST_VERSION = 14
_TELLS_PREPARED_FROM = 15

_SQL = """
SELECT pg_is_in_recovery(), current_setting('wal_level'), current_setting('server_encoding'), quote_ident(rolname),
       rolsuper OR rolreplication
       OR EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_replication' AND pg_has_role(oid, 'MEMBER')),
       current_setting('max_prepared_transactions')::int
FROM pg_roles WHERE rolname = current_user
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRequirement:
    """Something that must hold, and what to say where it does not."""

    is_met: bool
    code: str
    what: str
    detail: str
    hint: str
    error: type[HeadwaterError] = SourceRefused


def replication_refusals(connection: Connection, address: Address, *, prepared: bool) -> tuple[HeadwaterError, ...]:
    """Return every reason why a server cannot be followed, or why the account may not follow it.

    A server that is too old is refused at once: it cannot be asked what others can.

    With `prepared`, also one that cannot tell of prepared transactions, or has none: others would wait for its parts.
    """
    row = connection.execute(_SQL).fetchone()
    assert row is not None
    is_standby, wal_level, encoding, account, may_replicate, most_prepared = row
    version = connection.info.server_version // 10000
    requirements = (
        ServerRequirement(
            is_met=version >= _OLDEST_VERSION,
            code="HW-334",
            what="is too old",
            detail=f"it is PostgreSQL {version}",
            hint=f"use PostgreSQL {_OLDEST_VERSION} or later",
        ),
        ServerRequirement(
            is_met=not is_standby,
            code="HW-324",
            what="is a standby",
            detail="what a standby shows is not ordered with its log",
            hint="point the source at the primary server",
        ),
        ServerRequirement(
            is_met=encoding != "SQL_ASCII",
            code="HW-335",
            what="does not know the encoding of its texts",
            detail="the database was made with encoding SQL_ASCII, so that its texts may be anything",
            hint="move it to a database with encoding UTF8",
        ),
        ServerRequirement(
            is_met=wal_level == "logical",
            code="HW-325",
            what="does not log what we need",
            detail=f"wal_level is {wal_level}, and must be logical",
            hint="let an administrator run: ALTER SYSTEM SET wal_level = logical; and restart the server",
        ),
        ServerRequirement(
            is_met=may_replicate,
            code="HW-326",
            what=f"does not let {account} follow its log",
            detail="the account lacks the REPLICATION attribute",
            hint=f"let an administrator run: ALTER ROLE {account} REPLICATION",
        ),
        ServerRequirement(
            is_met=not prepared or version >= _TELLS_PREPARED_FROM,
            code="HW-336",
            what="is too old to tell of prepared transactions",
            detail=f"it is PostgreSQL {version}, and [global_transactions] goes by their ids",
            hint=f"use PostgreSQL {_TELLS_PREPARED_FROM} or later, or ids in a column",
        ),
        ServerRequirement(
            is_met=not prepared or most_prepared > 0,
            code="HW-337",
            what="takes no prepared transactions",
            detail="max_prepared_transactions is 0, and [global_transactions] goes by their ids",
            hint="let an administrator run: ALTER SYSTEM SET max_prepared_transactions = 20; and restart the server",
        ),
    )
    refusals = tuple(
        required.error(
            f'source "{address.source}" ({address.place}) {required.what}',
            code=required.code,
            detail=required.detail,
            hint=required.hint,
        )
        for required in requirements
        if not required.is_met
    )
    if not requirements[0].is_met:
        raise refusals[0]
    return refusals
