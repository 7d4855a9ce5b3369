"""What a server and an account must be before a log can be followed; checked before anything is made or opened."""

from __future__ import annotations

from headwater.errors import SourceRefused
from headwater.sources.postgres.connect import Address, Connection

_OLDEST_VERSION = 14

_SQL = """
SELECT pg_is_in_recovery(), current_setting('wal_level'), current_setting('server_encoding'), quote_ident(rolname),
       rolsuper OR rolreplication
       OR EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_replication' AND pg_has_role(oid, 'MEMBER'))
FROM pg_roles WHERE rolname = current_user
"""


def require_replication(connection: Connection, address: Address) -> None:
    """Refuse a server that cannot be followed, or an account that may not follow it."""
    row = connection.execute(_SQL).fetchone()
    assert row is not None
    is_standby, wal_level, encoding, account, may_replicate = row
    version = connection.info.server_version // 10000
    requirements = (
        (
            version >= _OLDEST_VERSION,
            "HW-334",
            "is too old",
            f"it is PostgreSQL {version}",
            f"use PostgreSQL {_OLDEST_VERSION} or later",
        ),
        (
            not is_standby,
            "HW-324",
            "is a standby",
            "what a standby shows is not ordered with its log",
            "point the source at the primary server",
        ),
        (
            encoding != "SQL_ASCII",
            "HW-335",
            "does not know the encoding of its texts",
            "the database was made with encoding SQL_ASCII, so that its texts may be anything",
            "move it to a database with encoding UTF8",
        ),
        (
            wal_level == "logical",
            "HW-325",
            "does not log what we need",
            f"wal_level is {wal_level}, and must be logical",
            "let an administrator run: ALTER SYSTEM SET wal_level = logical; and restart the server",
        ),
        (
            may_replicate,
            "HW-326",
            f"does not let {account} follow its log",
            "the account lacks the REPLICATION attribute",
            f"let an administrator run: ALTER ROLE {account} REPLICATION",
        ),
    )
    for is_met, code, what, detail, hint in requirements:
        if not is_met:
            raise SourceRefused(
                f'source "{address.source}" ({address.place}) {what}', code=code, detail=detail, hint=hint
            )
