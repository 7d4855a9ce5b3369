"""PostgreSQL, Delta tables, polled sources and the scripted source keep the contract of sources."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delta_tables import DeltaTableWriter, arrow
from psycopg import sql

from headwater.model.relation import Column, Relation
from headwater.sources.delta import DeltaSource
from headwater.sources.delta.lake import Lake
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.polled import PolledSource
from headwater.sources.polled.folder import FolderPlace
from headwater.sources.polled.sqlite import SqlitePlace
from headwater.sources.postgres import PostgresSource
from headwater.sources.scripted import ScriptedDatabase, ScriptedSource
from headwater.sources.scripted.database import SERVER
from headwater.sources.source import Abilities, ProcessFiles
from headwater_contracts.database import EXTREMES, SOURCE, Changes, DatabaseUnderTest, Table
from headwater_contracts.sources import SourceContract

_NATIVE = {
    "smallint": "int2",
    "int": "int4",
    "bigint": "int8",
    "float": "float4",
    "double": "float8",
    "string": "text",
    "binary": "bytea",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}


class ScriptedUnderTest:
    """A database in memory. A transaction that is open when another commits is logged after it, as it is committed."""

    types = frozenset(EXTREMES)

    def __init__(self, abilities: Abilities = SERVER, *, has_log_per_relation: bool = False) -> None:
        self._database = ScriptedDatabase(
            (), tells_from_start=False, abilities=abilities, has_log_per_relation=has_log_per_relation
        )
        self._tables: dict[str, Table] = {}

    def create(self, table: Table) -> None:
        columns = tuple(Column(name=name, type=kind, native=kind) for name, kind in table.columns)
        self._database.relations += (Relation(name=table.relation, columns=columns, key=table.key),)
        self._tables[table.name] = table

    def connect(self) -> ScriptedSource:
        return ScriptedSource(SOURCE, database=self._database)

    def commit(self, changes: Changes) -> None:
        self.begin(changes).commit()

    def begin(self, changes: Changes) -> ScriptedOpen:
        return ScriptedOpen(self._database, self._named(changes))

    def truncate(self, table: str) -> bool:
        if not self._database.abilities.tells_every_transaction:
            return False
        self._database.commit({}, truncated=[self._tables[table].relation])
        return True

    def alter(self, table: str) -> bool:
        if not self._database.abilities.tells_every_transaction:
            return False
        self._database.commit({}, altered={self._tables[table].relation: "its rows were moved"})
        return True

    def replace_log(self) -> bool:
        others = [replace(one, gid="another") for one in self._database.transactions]
        if self._database.abilities.holds_log:
            self._database.restore(others)
        else:
            self._database.begin_again(others)
        return True

    def run(self, statement: str) -> None:
        raise AssertionError(statement)

    def _named(self, changes: Changes) -> dict[Any, Any]:
        return {self._tables[table].relation: rows for table, rows in changes.items()}


@dataclass
class ScriptedOpen:
    """Changes that are told of first, and seen a moment later: the two orders differ."""

    database: ScriptedDatabase
    changes: dict[Any, Any]

    def commit(self) -> None:
        if not self.database.abilities.tells_every_transaction:
            self.database.commit(self.changes)
            self.database.poll()
        elif self.database.has_log_per_relation:
            for name, rows in self.changes.items():
                self.database.commit({name: rows})
        else:
            self.database.show(self.database.commit(self.changes, is_hidden=True))

    def roll_back(self) -> None:
        self.changes = {}


class TestScripted(SourceContract):
    @pytest.fixture
    def database(self) -> DatabaseUnderTest:
        return ScriptedUnderTest(replace(SERVER, exports_snapshots=True))


class TestBinaryLog(SourceContract):
    """A server that neither shares snapshots nor holds its log, and whose log is recognised by a proof."""

    @pytest.fixture
    def database(self) -> DatabaseUnderTest:
        return ScriptedUnderTest(replace(SERVER, shares_snapshots=False, holds_log=False))


class TestTables(SourceContract):
    """A folder of tables with a log each, which can be read as of the past."""

    @pytest.fixture
    def database(self) -> DatabaseUnderTest:
        return ScriptedUnderTest(replace(SERVER, reads_as_of=True, holds_log=False), has_log_per_relation=True)


class TestPolled(SourceContract):
    """A database that is looked at now and then."""

    @pytest.fixture
    def database(self) -> DatabaseUnderTest:
        return ScriptedUnderTest(replace(SERVER, holds_log=False, tells_every_transaction=False))


@dataclass
class PostgresUnderTest:
    """A database of a server, and as many connections to it as transactions are open."""

    server: EmbeddedServer
    name: str
    types = frozenset(EXTREMES)
    _tables: dict[str, Table] = field(default_factory=dict)
    _connection: psycopg.Connection[Any] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def create(self, table: Table) -> None:
        columns = [
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(_NATIVE.get(kind, kind)))
            for name, kind in table.columns
        ]
        if table.key:
            columns.append(sql.SQL("PRIMARY KEY ({})").format(sql.SQL(", ").join(map(sql.Identifier, table.key))))
        made = sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(table.name), sql.SQL(", ").join(columns))
        self.run(made.as_string())
        self._tables[table.name] = table

    def connect(self) -> PostgresSource:
        return PostgresSource(SOURCE, self.server.url(self.name), "contract")

    def commit(self, changes: Changes) -> None:
        with self._lock:
            if self._connection is None:
                self._connection = psycopg.connect(self.server.url(self.name))
            self._change(self._connection, changes)
            self._connection.commit()

    def begin(self, changes: Changes) -> PostgresOpen:
        connection = psycopg.connect(self.server.url(self.name))
        self._change(connection, changes)
        return PostgresOpen(connection)

    def truncate(self, table: str) -> bool:
        self.run(f"TRUNCATE {table}")
        return True

    def alter(self, table: str) -> bool:
        name, _ = self._tables[table].columns[-1]
        [key] = self._tables[table].key
        self.run(f"ALTER TABLE {table} DROP COLUMN {name}; INSERT INTO {table} ({key}) VALUES (0)")
        return True

    def replace_log(self) -> bool:
        return False

    def run(self, statement: str) -> None:
        self.server.execute(statement, database=self.name)

    def clean(self) -> None:
        if self._connection is not None:
            self._connection.close()
        source = self.connect()
        for slot in source.slots().present:
            source.teardown(slot, {})
        self.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

    def _change(self, connection: psycopg.Connection[Any], changes: Changes) -> None:
        for name, rows in changes.items():
            table = sql.Identifier(name)
            places = sql.SQL(", ").join(
                sql.SQL("%s::{}").format(sql.SQL(_NATIVE.get(kind, kind))) for _, kind in self._tables[name].columns
            )
            for row, count in rows.items():
                if count > 0:
                    insert = sql.SQL("INSERT INTO {} SELECT {} FROM generate_series(1, {})")
                    connection.execute(insert.format(table, places, sql.Literal(count)), row)
                else:
                    delete = sql.SQL(
                        "DELETE FROM {0} WHERE ctid IN (SELECT t.ctid FROM {0} AS t WHERE t IS NOT DISTINCT FROM"
                        " ROW({1})::{0} LIMIT {2})"
                    )
                    connection.execute(delete.format(table, places, sql.Literal(-count)), row)


@dataclass
class PostgresOpen:
    """A transaction on a connection of its own."""

    connection: psycopg.Connection[Any]

    def commit(self) -> None:
        self.connection.commit()
        self.connection.close()

    def roll_back(self) -> None:
        self.connection.rollback()
        self.connection.close()


class DeltaUnderTest:
    """A folder of tables, written by the protocol of Delta Lake. A transaction is of one table, and is made at once."""

    types = frozenset(EXTREMES)
    enforces_keys = False

    def __init__(self, folder: Path, *, has_feed: bool) -> None:
        self.folder = folder
        self.has_feed = has_feed
        self.tables: dict[str, DeltaTableWriter] = {}

    def create(self, table: Table) -> None:
        path = self.folder / table.name
        self.tables[table.name] = DeltaTableWriter(path, table.columns, has_feed=self.has_feed).create()

    def connect(self) -> DeltaSource:
        return DeltaSource(SOURCE, Lake.at(f"delta:{self.folder}", SOURCE))

    def commit(self, changes: Changes) -> None:
        self.begin(changes).commit()

    def begin(self, changes: Changes) -> DeltaOpen:
        return DeltaOpen(self, changes)

    def truncate(self, table: str) -> bool:
        del table
        return False

    def alter(self, table: str) -> bool:
        writer = self.tables[table]
        writer.columns = writer.columns[:-1]
        rows = Counter({(*row[:-1],): n for row, n in writer.rows().items()})
        actions = [writer.metadata(), *map(writer.remove, writer.files)]
        writer.files.clear()
        writer.commit([*actions, *writer.add(rows)])
        return True

    def replace_log(self) -> bool:
        for writer in self.tables.values():
            versions = writer.version
            shutil.rmtree(writer.path)
            again = DeltaTableWriter(writer.path, writer.columns, has_feed=self.has_feed).create()
            for _ in range(versions):
                again.apply({})
        return True

    def run(self, statement: str) -> None:
        raise AssertionError(statement)


@dataclass
class DeltaOpen:
    """Changes that nobody has seen: a version is there as a whole, or not at all."""

    database: DeltaUnderTest
    changes: Changes

    def commit(self) -> None:
        for table, rows in self.changes.items():
            self.database.tables[table].apply(rows)

    def roll_back(self) -> None:
        self.changes = {}


class TestDelta(SourceContract):
    """Tables without a change data feed: the files of a version are compared."""

    @pytest.fixture
    def database(self, tmp_path: Path) -> DeltaUnderTest:
        return DeltaUnderTest(tmp_path, has_feed=False)


@pytest.mark.thorough
class TestDeltaWithFeed(SourceContract):
    """Tables with a change data feed."""

    @pytest.fixture
    def database(self, tmp_path: Path) -> DeltaUnderTest:
        return DeltaUnderTest(tmp_path, has_feed=True)


_SQLITE = {"bigint": "INTEGER", "double": "REAL", "string": "TEXT", "binary": "BLOB", "timestamp_ntz": "TIMESTAMP"}


class SqliteUnderTest:
    """A database file that is polled after each transaction. An open one is made when it is committed."""

    types = frozenset(("boolean", "bigint", "double", "decimal(12,2)", "string", "binary", "date", "timestamp_ntz"))
    enforces_keys = True

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shop.db"
        self.files = ProcessFiles()
        self.tables: list[Table] = []
        self.lock = threading.Lock()
        self.connection = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA synchronous = OFF")

    def create(self, table: Table) -> None:
        columns = [f"{name} {_SQLITE.get(kind, kind)}" for name, kind in table.columns]
        key = [f"PRIMARY KEY ({', '.join(table.key)})"] if table.key else []
        self.run(f"CREATE TABLE {table.name} ({', '.join([*columns, *key])})")
        self.tables.append(table)

    def connect(self) -> PolledSource:
        url = f"sqlite:///{self.file}"
        return PolledSource(SOURCE, SqlitePlace.at(url, SOURCE, 60.0), poll_seconds=1e9, files=self.files, url=url)

    def poll(self) -> None:
        newest = (source := self.connect()).states.newest()
        if newest is not None:
            source.poll([one.relation for one in self.tables if str(one.relation) in newest.relations])

    def commit(self, changes: Changes) -> None:
        self.begin(changes).commit()

    def begin(self, changes: Changes) -> PolledOpen:
        return PolledOpen(self, changes)

    def apply(self, changes: Changes) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        for name, rows in changes.items():
            columns = next(one.columns for one in self.tables if one.name == name)
            for row, count in sorted(rows.items(), key=lambda one: one[1]):
                values = [str(value) if isinstance(value, Decimal | date) else value for value in row]
                if count > 0:
                    places = ", ".join("?" * len(row))
                    self.connection.executemany(f"INSERT INTO {name} VALUES ({places})", [values] * count)
                else:
                    same = " AND ".join(f"{column} IS ?" for column, _ in columns)
                    found = f"SELECT rowid FROM {name} WHERE {same} LIMIT {-count}"
                    self.connection.execute(f"DELETE FROM {name} WHERE rowid IN ({found})", values)
        self.connection.execute("COMMIT")

    def truncate(self, table: str) -> bool:
        del table
        return False

    def alter(self, table: str) -> bool:
        self.run(f"ALTER TABLE {table} DROP COLUMN price")
        self.poll()
        return True

    def replace_log(self) -> bool:
        polls = self.connect().states.numbers()
        self.connect().states.forget_all()
        source = self.connect()
        source.prepare([one.relation for one in self.tables], "", is_new=True)
        for number in polls[1:]:
            self.commit({"items": {(1_000 + number, "another", None): 1}})
        return True

    def run(self, statement: str) -> None:
        self.connection.execute(statement)


@dataclass
class PolledOpen:
    """Changes that are made at once, and polled."""

    database: SqliteUnderTest
    changes: Changes

    def commit(self) -> None:
        with self.database.lock:
            self.database.apply(self.changes)
            self.database.poll()

    def roll_back(self) -> None:
        self.changes = {}


class TestSqlite(SourceContract):
    @pytest.fixture
    def database(self, tmp_path: Path) -> Iterator[DatabaseUnderTest]:
        made = SqliteUnderTest(tmp_path)
        yield made
        made.connection.close()


class FilesUnderTest(SqliteUnderTest):
    """A folder of Parquet files, each replaced as a whole."""

    types = frozenset(EXTREMES)
    enforces_keys = False

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder / "drop"
        self.folder.mkdir()
        self.rows: dict[str, Counter[Any]] = {}

    def create(self, table: Table) -> None:
        self.tables.append(table)
        self.rows[table.name] = Counter()
        self.write(table, Counter())

    def connect(self) -> PolledSource:
        url = f"files:{self.folder}"
        return PolledSource(SOURCE, FolderPlace.at(url, SOURCE), poll_seconds=1e9, files=self.files, url=url)

    def apply(self, changes: Changes) -> None:
        for table in self.tables:
            if table.name in changes:
                self.rows[table.name].update(changes[table.name])
                self.write(table, self.rows[table.name])

    def write(self, table: Table, rows: Counter[Any]) -> None:
        held = [*rows.elements()]
        arrays = [pa.array([row[n] for row in held], arrow(kind)) for n, (_, kind) in enumerate(table.columns)]
        draft = self.folder / f".{table.name}.parquet"
        pq.write_table(pa.table(arrays, [name for name, _ in table.columns]), draft)
        draft.rename(self.folder / f"{table.name}.parquet")

    def alter(self, table: str) -> bool:
        [held] = [one for one in self.tables if one.name == table]
        self.write(replace(held, columns=held.columns[:-1]), self.rows[table])
        self.poll()
        return True


@pytest.mark.thorough
class TestFiles(SourceContract):
    @pytest.fixture
    def database(self, tmp_path: Path) -> DatabaseUnderTest:
        return FilesUnderTest(tmp_path)


@pytest.fixture(scope="module")
def database_name(postgres_server: EmbeddedServer) -> str:
    postgres_server.execute("CREATE DATABASE contract")
    return "contract"


class TestPostgres(SourceContract):
    @pytest.fixture
    def database(self, postgres_server: EmbeddedServer, database_name: str) -> Iterator[DatabaseUnderTest]:
        made = PostgresUnderTest(postgres_server, database_name)
        yield made
        made.clean()
