"""A PostgreSQL and a MariaDB database, writers on both, and a history that each database writes down itself.

Every transaction has a number, which is the row that it inserts into `marks`. Triggers note every row that comes
or goes, with the number of its transaction, into a table that nobody follows. So a state of the view over `marks` says
which transactions a tick holds, and the notes of these say what every other view has to be: computed here, in Python.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pymysql
from mariadb_server import MariadbServer

from headwater.api.session import Headwater, open_project
from headwater.sources.embedded import EmbeddedServer

_numbers = itertools.count(1)
_TABLES = {
    "crm": (
        "CREATE TABLE marks (tx bigint PRIMARY KEY)",
        "CREATE TABLE customers (id int PRIMARY KEY, city varchar(20), score int)",
        "CREATE TABLE noted (tx bigint, sign int, id int, city varchar(20), score int)",
    ),
    "shop": (
        "CREATE TABLE marks (tx bigint PRIMARY KEY)",
        (
            "CREATE TABLE sales (id int PRIMARY KEY, customer int, city varchar(20), amount decimal(8,2),"
            " KEY (customer), KEY (city))"
        ),
        "CREATE TABLE noted (tx bigint, sign int, id int, customer int, city varchar(20), amount decimal(8,2))",
    ),
}
_NEW, _OLD = "NEW", "OLD"
VIEWS = {
    "crm_marks": "SELECT tx FROM crm.marks",
    "shop_marks": "SELECT tx FROM shop.marks",
    "probing": "SELECT s.id, c.id AS customer, s.amount, c.score FROM shop.sales s JOIN crm.customers c"
    " ON s.customer = c.id",
    "copied": "SELECT s.id, c.id AS customer, c.city FROM shop.sales s JOIN crm.customers c ON s.city = c.city",
    "totals": "SELECT city, count(*) AS n, sum(amount) AS total FROM shop.sales GROUP BY city",
}
_DEADLOCKS = (1205, 1213)
_CITIES = ("Oslo", "oslo", "Oslo ", "Ösby", "", None)


@dataclass
class MixedWorld:
    """Two databases, and a project over them."""

    postgres: EmbeddedServer
    mariadb: MariadbServer
    folder: Path
    database: str = field(default_factory=lambda: f"mixed_{os.getpid()}_{next(_numbers)}")
    counter: Any = field(default_factory=lambda: itertools.count(1))

    def make(self) -> None:
        self.postgres.execute(f"CREATE DATABASE {self.database}")
        self.mariadb.execute(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        for statement in (*_TABLES["crm"], *_postgres_triggers()):
            self.postgres.execute(statement, database=self.database)
        for statement in (*_TABLES["shop"], *_mariadb_triggers()):
            self.mariadb.execute(statement, self.database)
        os.environ.update(
            {
                "HW_MIXED_CRM": self.postgres.url(self.database),
                "HW_MIXED_SHOP": self.mariadb.url(self.database),
            }
        )
        (self.folder / "views").mkdir(parents=True)
        (self.folder / "headwater.toml").write_text(
            f'[project]\nname = "{self.database}"\n'
            '[sources.crm]\nurl = "${HW_MIXED_CRM}"\n[sources.shop]\nurl = "${HW_MIXED_SHOP}"\n'
            '[views.probing]\nmaintenance = "probe"\n[maintenance]\nbatch_ticks = 40\n'
        )
        for name, sql in VIEWS.items():
            (self.folder / "views" / f"{name}.sql").write_text(sql)

    def open(self) -> Headwater:
        return open_project(self.folder)

    def drop(self) -> None:
        self.open().teardown()
        self.mariadb.execute(f"DROP DATABASE {self.database}")

    def connect(self, source: str) -> Any:
        if source == "crm":
            return psycopg.connect(self.postgres.url(self.database))
        return self.mariadb.connect(self.database)

    def write(self, source: str, transactions: int, seed: int, own: int) -> None:
        """Commit transactions of one writer, whose rows are its own."""
        chance = random.Random(seed)
        with contextlib.closing(self.connect(source)) as connection, connection.cursor() as cursor:
            for _ in range(transactions):
                time.sleep(chance.random() * 0.02)
                try:
                    self._transaction(source, cursor, chance, own)
                except pymysql.err.OperationalError as error:
                    if error.args[0] not in _DEADLOCKS:
                        raise
                    connection.rollback()
                    continue
                if chance.random() < 0.2:
                    connection.rollback()
                else:
                    connection.commit()

    def _transaction(self, source: str, cursor: Any, chance: random.Random, own: int) -> None:
        number = next(self.counter)
        if source == "crm":
            cursor.execute("SELECT set_config('my.tx', %s, true)", (str(number),))
        else:
            cursor.execute("SET @tx = %s", (number,))
        cursor.execute("INSERT INTO marks VALUES (%s)", (number,))
        for place in range(chance.choice((1, 1, 2, 5))):
            if place and chance.random() < 0.3:
                cursor.execute("SAVEPOINT here")
                self._change(source, cursor, chance, own)
                cursor.execute("ROLLBACK TO SAVEPOINT here")
            self._change(source, cursor, chance, own)

    def _change(self, source: str, cursor: Any, chance: random.Random, own: int) -> None:
        key = own * 100 + chance.randrange(12)
        table = "customers" if source == "crm" else "sales"
        cursor.execute(f"DELETE FROM {table} WHERE id = %s", (key,))
        if chance.random() < 0.75:
            if source == "crm":
                row: tuple[Any, ...] = (key, chance.choice(_CITIES), chance.randrange(100))
            else:
                customer = (chance.randrange(1, 4)) * 100 + chance.randrange(12)
                row = (key, customer, chance.choice(_CITIES), chance.randrange(10_000) / 100)
            cursor.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
            if chance.random() < 0.3:
                cursor.execute(f"UPDATE {table} SET city = %s WHERE id = %s", (chance.choice(_CITIES), key))

    def busy(self, transactions: int, writers: int = 2) -> list[threading.Thread]:
        """Start writers on both databases."""
        found = [
            threading.Thread(target=self.write, args=(source, transactions, 31 * n + len(source), n))
            for source in ("crm", "shop")
            for n in range(1, writers + 1)
        ]
        for one in found:
            one.start()
        return found

    def noted(self) -> Mapping[str, Mapping[int, list[tuple[int, tuple[Any, ...]]]]]:
        """Return by source and transaction the signed rows that the triggers noted."""
        read: Mapping[str, Callable[[str], list[tuple[Any, ...]]]] = {
            "crm": lambda sql: self.postgres.execute(sql, database=self.database),
            "shop": lambda sql: self.mariadb.execute(sql, self.database),
        }
        found: dict[str, dict[int, list[tuple[int, tuple[Any, ...]]]]] = {"crm": {}, "shop": {}}
        for source, ask in read.items():
            for tx, sign, *row in ask("SELECT * FROM noted"):
                found[source].setdefault(tx, []).append((sign, tuple(row)))
            for (tx,) in ask("SELECT tx FROM marks"):
                found[source].setdefault(tx, [])
        return found


def states(customers: Counter[tuple[Any, ...]], sales: Counter[tuple[Any, ...]]) -> dict[str, Counter[tuple[Any, ...]]]:
    """Return what every view is over some rows."""
    probing: Counter[tuple[Any, ...]] = Counter()
    copied: Counter[tuple[Any, ...]] = Counter()
    for (no, customer, city, amount), n in sales.items():
        for (own, home, score), m in customers.items():
            if customer == own:
                probing[no, own, amount, score] += n * m
            if city is not None and city == home:
                copied[no, own, home] += n * m
    totals: Counter[tuple[Any, ...]] = Counter()
    for place in {row[2] for row in sales}:
        some = [(row[3], n) for row, n in sales.items() if row[2] == place]
        totals[place, sum(n for _, n in some), sum(amount * n for amount, n in some)] = 1
    return {"probing": probing, "copied": copied, "totals": totals}


def _mariadb_triggers() -> list[str]:
    row = "{0}.id, {0}.customer, {0}.city, {0}.amount"
    noted = {"INSERT": [(1, _NEW)], "DELETE": [(-1, _OLD)], "UPDATE": [(-1, _OLD), (1, _NEW)]}
    return [
        f"CREATE TRIGGER {event.lower()}_{sign + 1} AFTER {event} ON sales FOR EACH ROW"
        f" INSERT INTO noted SELECT @tx, {sign}, {row.format(which)}"
        for event, rows in noted.items()
        for sign, which in rows
    ]


def _postgres_triggers() -> list[str]:
    return [
        (
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF TG_OP <> 'INSERT' THEN INSERT INTO noted SELECT current_setting('my.tx')::bigint, -1, OLD.*; END IF;"
            " IF TG_OP <> 'DELETE' THEN INSERT INTO noted SELECT current_setting('my.tx')::bigint, 1, NEW.*; END IF;"
            " RETURN NULL; END $$"
        ),
        "CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON customers FOR EACH ROW EXECUTE FUNCTION note()",
    ]
