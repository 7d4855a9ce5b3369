"""The people who change the databases: each writer has one connection, its own acts, and its own pace.

Nobody waits for anybody in another database. Some transactions are rolled back, as a whole or to a savepoint; some
commit with `synchronous_commit = off`, which makes them visible before their log record can be read.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg

from headwater.demo.seed import CITIES, EMPLOYEE_COUNT, GOODS, NAMES, PRODUCT_COUNT, STORE_COUNT

_ROLLED_BACK, _NOT_SYNCHRONOUS = 0.05, 0.3
"""Which part of the transactions is rolled back, and which commits without waiting for the log."""

_IDLING = 6
"""How many times slower than at its own pace a writer begins."""

Connection: TypeAlias = psycopg.Connection[Any]
Act: TypeAlias = Callable[[Connection, random.Random], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A kind of writer: the source it works on, what it does (the more often listed, the more often), how often."""

    name: str
    source: str
    acts: tuple[Act, ...]
    per_second: float


class Writer(threading.Thread):
    """Plays one role until it is stopped. `error` is what went wrong."""

    def __init__(self, role: Role, url: str, stop: threading.Event, seed: int) -> None:
        """Choose the role. Nothing is written before `start`."""
        super().__init__(name=f"writer {role.name}", daemon=True)
        self.role = role
        self.commit_count = 0
        self.error: Exception | None = None
        self._url = url
        self._halt = stop
        self._pace = role.per_second / _IDLING
        self._random = random.Random(seed)  # noqa: S311 - not a secret

    def run(self) -> None:
        """Do one act after the other, each in a transaction of its own."""
        try:
            with psycopg.connect(self._url, autocommit=True) as connection:
                while not self._halt.wait(self._random.expovariate(self._pace)):
                    self._act(connection)
        except psycopg.Error as error:
            self.error = error

    def hurry(self) -> None:
        """Write at the role's own pace from now on. Before, it was slow."""
        self._pace = self.role.per_second

    def require_alive(self) -> None:
        """Raise what ended the writer."""
        if self.error is not None:
            raise self.error

    def _act(self, connection: Connection) -> None:
        undone = self._random.random() < _ROLLED_BACK
        try:
            with connection.transaction(force_rollback=undone):
                if self._random.random() < _NOT_SYNCHRONOUS:
                    connection.execute("SET LOCAL synchronous_commit = off")
                self._random.choice(self.role.acts)(connection, self._random)
        except psycopg.errors.DeadlockDetected:
            return  # PostgreSQL chose this one to give way: one more transaction that never was
        self.commit_count += not undone


def sell(connection: Connection, random: random.Random) -> None:
    """Sell one or a few things."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        connection.execute(
            "INSERT INTO sales (store_id, clerk_id, product_id, quantity) SELECT %s, %s, product_id, %s FROM products "
            "ORDER BY abs(product_id - %s) LIMIT 1",
            (
                random.randint(1, STORE_COUNT + 1),
                random.choice((None, random.randint(1, EMPLOYEE_COUNT))),
                random.randint(1, 9),
                random.randint(1, PRODUCT_COUNT),
            ),
        )


def take_back(connection: Connection, random: random.Random) -> None:
    """Take things back: the older half of the sales goes first, so that there are never too many."""
    connection.execute(
        "DELETE FROM sales WHERE sale_id IN (SELECT sale_id FROM sales ORDER BY sale_id OFFSET %s LIMIT %s)",
        (random.randint(0, 150), random.choice((1, 2, 3))),
    )


def correct_sale(connection: Connection, random: random.Random) -> None:
    """Correct a quantity, then perhaps think again: what came after the savepoint is undone."""
    _change_a_sale(connection, random, "quantity = 1 + (quantity + 2) %% 9")
    with connection.transaction(force_rollback=random.random() < 0.5):  # noqa: PLR2004 - every other time
        _change_a_sale(connection, random, "clerk_id = 1 + sale_id %% 60")


def _change_a_sale(connection: Connection, random: random.Random, change: str) -> None:
    connection.execute(
        f"UPDATE sales SET {change} "
        "WHERE sale_id = (SELECT sale_id FROM sales ORDER BY sale_id DESC OFFSET %s LIMIT 1)",
        (random.randint(0, 200),),
    )


def change_price(connection: Connection, random: random.Random) -> None:
    """Change a price: every sale of the product earns more or less at once."""
    connection.execute(
        "UPDATE products SET price = round(price * %s, 2) WHERE product_id = %s",
        (random.choice(("0.95", "1.04", "1.06")), random.randint(1, PRODUCT_COUNT)),
    )


def launch_product(connection: Connection, random: random.Random) -> None:
    """Replace a product with its sales by a new one with first sales: two relations, one transaction."""
    product = random.randint(1, PRODUCT_COUNT)
    connection.execute("DELETE FROM products WHERE product_id = %s", (product,))
    connection.execute(
        "INSERT INTO products VALUES (%s, %s, %s, %s)",
        (product, f"new {random.choice(GOODS)}", random.randint(40, 120), random.randint(10, 39)),
    )
    connection.execute(
        "INSERT INTO sales (store_id, clerk_id, product_id, quantity) "
        "SELECT n, n * 5, %s, 9 FROM generate_series(1, 5) n",
        (product,),
    )


def change_expenses(connection: Connection, random: random.Random) -> None:
    """Change what a store costs: it may be worth it no longer, or be so again."""
    connection.execute(
        "UPDATE stores SET expenses = expenses + %s WHERE store_id = %s",
        (random.randint(-50, 50), random.randint(1, STORE_COUNT)),
    )


def move_store(connection: Connection, random: random.Random) -> None:
    """Move a store to another city: every row that shows the city changes."""
    connection.execute(
        "UPDATE stores SET city = %s WHERE store_id = %s",
        (f"{random.choice(('Old', 'New', 'Upper'))} {random.choice(CITIES)}", random.randint(1, STORE_COUNT)),
    )


def reopen_store(connection: Connection, random: random.Random) -> None:
    """Close a store, or open it again. Sales there go on, because the tills are in another database."""
    store = random.choice((STORE_COUNT, STORE_COUNT + 1))
    gone = connection.execute("DELETE FROM stores WHERE store_id = %s", (store,))
    if not gone.rowcount:
        connection.execute("INSERT INTO stores VALUES (%s, %s, 900)", (store, random.choice(CITIES)))


def change_salary(connection: Connection, random: random.Random) -> None:
    """Change what somebody earns."""
    connection.execute(
        "UPDATE employees SET salary = salary + %s WHERE employee_id = %s",
        (random.choice((-12, 8, 15)), random.randint(1, EMPLOYEE_COUNT)),
    )


def transfer(connection: Connection, random: random.Random) -> None:
    """Send somebody to another store, under another boss."""
    connection.execute(
        "UPDATE employees SET store_id = %s, manager_id = %s WHERE employee_id = %s",
        (random.randint(1, STORE_COUNT), random.randint(1, 10), random.randint(7, EMPLOYEE_COUNT)),
    )


def replace_employee(connection: Connection, random: random.Random) -> None:
    """Let somebody go, and hire somebody else in the same place."""
    employee = random.randint(7, EMPLOYEE_COUNT)
    connection.execute("DELETE FROM employees WHERE employee_id = %s", (employee,))
    connection.execute(
        "INSERT INTO employees VALUES (%s, %s, %s, %s, %s)",
        (
            employee,
            f"{random.choice(NAMES)} {employee}",
            random.randint(1, STORE_COUNT),
            random.randint(1, 6),
            random.randint(220, 340),
        ),
    )


ROLES = (
    Role(name="first till", source="shop", acts=(sell, sell, sell, take_back, take_back, correct_sale), per_second=14),
    Role(name="second till", source="shop", acts=(sell, sell, sell, take_back, take_back, correct_sale), per_second=14),
    Role(name="buyer", source="shop", acts=(change_price, change_price, change_price, launch_product), per_second=7),
    Role(
        name="head office", source="chain", acts=(change_expenses, move_store, move_store, reopen_store), per_second=7
    ),
    Role(
        name="personnel office",
        source="staff",
        acts=(change_salary, change_salary, transfer, replace_employee),
        per_second=12,
    ),
)
"""Who writes."""


@contextmanager
def writing(urls: Mapping[str, str]) -> Iterator[tuple[Writer, ...]]:
    """Let everybody write for a block, to the sources at these addresses."""
    stop = threading.Event()
    writers = tuple(Writer(role, urls[role.source], stop, seed) for seed, role in enumerate(ROLES))
    for writer in writers:
        writer.start()
    try:
        yield writers
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    for writer in writers:
        writer.require_alive()
