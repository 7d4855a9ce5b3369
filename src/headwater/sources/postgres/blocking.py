"""Which sessions keep transactions open, as far as an ordinary account may know."""

from __future__ import annotations

from headwater.sources.postgres.connect import Connection

_BLOCKING_SQL = """
SELECT format('session %s of %s%s%s', l.pid, coalesce(a.usename, '?'),
              coalesce(' (' || nullif(a.application_name, '') || ')', ''),
              coalesce(', open for ' || date_trunc('second', clock_timestamp() - a.xact_start), ''))
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
UNION ALL
SELECT format('prepared transaction %L of %s, since %s', p.gid, p.owner, p.prepared) FROM pg_prepared_xacts p
LIMIT 20
"""


def blocking_sessions(connection: Connection) -> tuple[str, ...]:
    """Describe the transactions that hold an id now: session, user, application, age."""
    return tuple(row[0] for row in connection.execute(_BLOCKING_SQL).fetchall())
