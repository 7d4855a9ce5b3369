"""A MariaDB database as the contract of sources wants it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pymysql
from mariadb_server import MariadbServer

from headwater.sources.mariadb import MariadbSource
from headwater.sources.source import SourceSettings
from headwater_contracts.database import EXTREMES, SOURCE, Changes, Table

NATIVE = {
    "string": "longtext",
    "binary": "longblob",
    "timestamp_ntz": "datetime(6)",
    "timestamp": "timestamp(6) null",
}
UNHELD = ("boolean", "float", "double", "timestamp")
"""Spark types of whose extremes some are no values of MariaDB: infinity, 1970-01-01 00:00:00."""


@dataclass
class MariadbUnderTest:
    """A database of a server, and as many connections to it as transactions are open."""

    server: MariadbServer
    name: str
    types = frozenset(EXTREMES) - set(UNHELD)
    _tables: dict[str, Table] = field(default_factory=dict)
    _connection: pymysql.Connection[Any] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def create(self, table: Table) -> None:
        columns = [
            f"`{name}` {NATIVE.get(kind, kind)}" + (" COLLATE utf8mb4_general_ci" if kind == "string" else "")
            for name, kind in table.columns
        ]
        columns += [f"PRIMARY KEY ({', '.join(table.key)})"] if table.key else []
        self.run(f"CREATE TABLE `{table.name}` ({', '.join(columns)})")
        self._tables[table.name] = table

    def connect(self) -> MariadbSource:
        return MariadbSource.connect(
            SourceSettings(name=SOURCE, url=lambda: self.server.url(self.name), project="contract")
        )

    def commit(self, changes: Changes) -> None:
        with self._lock:
            if self._connection is None:
                self._connection = self.server.connect(self.name)
            change(self._connection, self._tables, changes)
            self._connection.commit()

    def begin(self, changes: Changes) -> MariadbOpen:
        connection = self.server.connect(self.name)
        change(connection, self._tables, changes)
        return MariadbOpen(connection)

    def truncate(self, table: str) -> bool:
        self.run(f"TRUNCATE `{table}`")
        return True

    def alter(self, table: str) -> bool:
        name, _ = self._tables[table].columns[-1]
        [key] = self._tables[table].key
        self.run(f"ALTER TABLE `{table}` DROP COLUMN `{name}`")
        self.run(f"INSERT INTO `{table}` ({key}) VALUES (0)")
        return True

    def replace_log(self) -> bool:
        self.run("RESET MASTER")
        for number in range(40):
            self.commit({"notes": {(number, "another"): 1}})
        return True

    def run(self, statement: str) -> None:
        self.server.execute(statement, self.name)

    def clean(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self.server.execute(f"DROP DATABASE {self.name}")


@dataclass
class MariadbOpen:
    """A transaction on a connection of its own."""

    connection: pymysql.Connection[Any]

    def commit(self) -> None:
        self.connection.commit()
        self.connection.close()

    def roll_back(self) -> None:
        self.connection.rollback()
        self.connection.close()


def change(connection: pymysql.Connection[Any], tables: dict[str, Table], changes: Changes) -> None:
    with connection.cursor() as cursor:
        for name, rows in changes.items():
            columns = [column for column, _ in tables[name].columns]
            for row, count in rows.items():
                if count > 0:
                    places = ", ".join(["%s"] * len(columns))
                    cursor.executemany(f"INSERT INTO `{name}` VALUES ({places})", [row] * count)
                else:
                    exact = " AND ".join(f"CAST(`{one}` AS BINARY) <=> CAST(%s AS BINARY)" for one in columns)
                    cursor.execute(f"DELETE FROM `{name}` WHERE {exact} LIMIT {-count}", row)
