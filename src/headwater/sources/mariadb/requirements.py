"""What a server has to be set to, and what our account may, before a MariaDB database can be followed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headwater.errors import HeadwaterError, SourceRefused
from headwater.sources.mariadb.connect import Connection, texts
from headwater.sources.mariadb.types import quoted

_NEEDED = {
    "binlog_format": ("ROW",),
    "binlog_row_image": ("FULL",),
    "binlog_row_metadata": ("FULL",),
    "log_bin_compress": ("OFF", "0"),
    "binlog_transaction_compression": ("OFF", "0"),
    "binlog_row_value_options": ("",),
}
"""Without them the log lacks what we need. A server that does not know a setting behaves as is needed."""
_ADVISED = {
    "sync_binlog": ("1",),
    "innodb_flush_log_at_trx_commit": ("1", "3"),
}
"""Without them a crash of the machine may lose the end of the log, and the source then has to be read again."""
_SHORT_RETENTION_SECONDS = 86_400
_VALUES = {"binlog_transaction_compression": "OFF", "log_bin_compress": "OFF", "binlog_row_value_options": "''"}


def variables(connection: Connection) -> dict[str, str]:
    """Return the settings of the server."""
    return {name.lower(): value for name, value in texts(connection, "SHOW GLOBAL VARIABLES")}


def owner_sql(connection: Connection, settings: dict[str, str], schemas: Sequence[str]) -> tuple[str, ...]:
    """Return the statements that the server's owner has to run."""
    wrong = [
        f"{name} = {_VALUES.get(name, values[0])}"
        for name, values in _NEEDED.items()
        if name in settings and settings[name].upper() not in values
    ]
    found = [f"SET GLOBAL {', '.join(wrong)}"] if wrong else []
    return (*found, *_grants(connection, schemas, is_mariadb="mariadb" in settings.get("version", "").lower()))


def warnings(settings: dict[str, str]) -> tuple[str, ...]:
    """Return what is not wrong, and may become so."""
    found = [
        f"{name} is {settings[name]}: a crash of the machine may lose the end of its log; the source then has to be "
        f"read again; let the owner run SET GLOBAL {name} = {values[0]}"
        for name, values in _ADVISED.items()
        if settings.get(name, values[0]) not in values
    ]
    seconds = float(settings.get("binlog_expire_logs_seconds") or 0) or 86_400 * float(
        settings.get("expire_logs_days") or 0
    )
    if 0 < seconds < _SHORT_RETENTION_SECONDS:
        found.append(
            f"it deletes its log after {seconds:,.0f} s, whether we have read it or not; let the owner run "
            "SET GLOBAL binlog_expire_logs_seconds = 604800"
        )
    return tuple(found)


def refusals(connection: Connection, settings: dict[str, str], source: str) -> tuple[HeadwaterError, ...]:
    """Return what keeps the server from being followed and no statement changes."""
    found: list[HeadwaterError] = []
    if settings.get("log_bin", "OFF").upper() not in ("ON", "1"):
        found.append(
            SourceRefused(
                f'source "{source}" has no binary log',
                code="HW-383",
                detail="log_bin is OFF, and only a restart switches it on",
                hint="let the owner write into the server's my.cnf, below [mysqld], and restart it:\n"
                "log_bin = mariadb-bin\nserver_id = 1\nbinlog_format = ROW\nbinlog_row_image = FULL\n"
                "binlog_row_metadata = FULL\nsync_binlog = 1\nbinlog_expire_logs_seconds = 604800",
            )
        )
    if settings.get("wsrep_on", "OFF").upper() in ("ON", "1"):
        found.append(_untold(source, "it is a node of a Galera cluster: its log is not that of the cluster"))
    if settings.get("binlog_storage_engine"):
        found.append(_untold(source, "its log is kept by a storage engine (binlog_storage_engine)"))
    if settings.get("log_bin", "OFF").upper() in ("ON", "1"):
        try:
            status = texts(connection, "SHOW MASTER STATUS")
        except Exception:  # noqa: BLE001 — without the right the grants tell, and newer servers say it otherwise
            status = []
        if status and any(status[0][2:4]):
            said = "Binlog_Do_DB or Binlog_Ignore_DB is set: parts of the database are not logged"
            found.append(_untold(source, said))
    running = texts(connection, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")
    if running and running[0][1] != "0":
        found.append(_untold(source, "it is a replica: what comes from its primary need not be in its own log"))
    return tuple(found)


def _untold(source: str, detail: str) -> SourceRefused:
    return SourceRefused(
        f'source "{source}" does not log all that is committed',
        code="HW-384",
        detail=detail,
        hint="point the source at a server that writes its whole log itself",
    )


def _grants(connection: Connection, schemas: Sequence[str], *, is_mariadb: bool) -> list[str]:
    """Return what has to be granted to the account. What cannot be read out of its grants counts as granted."""
    account = texts(connection, "SELECT CURRENT_USER()")[0][0]
    user, _, host = account.rpartition("@")
    role = f"'{user}'@'{host}'"
    granted = [one[0] for one in texts(connection, "SHOW GRANTS")]
    everywhere: set[str] = set()
    reads: set[str] = set()
    for line in granted:
        said = re.match(r"GRANT (.*?) ON (\S+) TO ", line)
        if said is None:
            continue
        rights = {one.strip().upper() for one in said[1].split(",")}
        if said[2] == "*.*":
            everywhere |= rights
        if rights & {"SELECT", "ALL PRIVILEGES"}:
            reads.add(said[2].split(".")[0].strip("`").replace("\\_", "_"))
    if any("ROLE" in line or re.match(r"GRANT [`'\w]+@?\S* TO ", line) for line in granted):
        return []
    if "ALL PRIVILEGES" in everywhere:
        return []
    needed = [("REPLICATION SLAVE",), ("BINLOG MONITOR", "REPLICATION CLIENT", "SUPER")]
    if not is_mariadb:
        needed[1] = ("REPLICATION CLIENT", "SUPER")
    lacking = [one[0] for one in needed if not everywhere & set(one)]
    found = [f"GRANT {', '.join(lacking)} ON *.* TO {role}"] if lacking else []
    if "*" not in reads:
        found += [f"GRANT SELECT ON {quoted(one)}.* TO {role}" for one in schemas if one not in reads]
    return found
