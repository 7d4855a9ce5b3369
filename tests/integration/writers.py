"""Writers that change three databases at once in every way a transaction can: seeded, but their interleaving is not."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import psycopg

from headwater.sources.embedded import EmbeddedServer

Cursor = psycopg.Cursor[tuple[object, ...]]


class Writer(threading.Thread):
    """Commits so many transactions to one database, going on when its server comes back."""

    def __init__(
        self,
        server: EmbeddedServer,
        database: str,
        steps: Sequence[Callable[[random.Random, Cursor], None]],
        *,
        seed: int,
        transactions: int,
        pause_seconds: float = 0.004,
        held_seconds: float = 0.0,
    ) -> None:
        """`held_seconds`: how long a transaction stays open between its steps, at most."""
        super().__init__(name=f"writer {seed}", daemon=True)
        self._server = server
        self._database = database
        self._steps = steps
        self._random = random.Random(seed)
        self._left = transactions
        self._pause_seconds = pause_seconds
        self._held_seconds = held_seconds
        self._halt = threading.Event()
        self.done: Counter[str] = Counter()
        self.error: BaseException | None = None

    def stop(self) -> None:
        self._halt.set()

    def run(self) -> None:
        try:
            while self._left > 0 and not self._halt.is_set():
                with suppress(psycopg.OperationalError):
                    self._write()
                time.sleep(0.05)
        except BaseException as error:  # noqa: BLE001 - shown by `finish`
            self.error = error

    def _write(self) -> None:
        with psycopg.connect(self._server.url(self._database), autocommit=True) as connection:
            while self._left > 0 and not self._halt.is_set():
                ending = "committed"
                try:
                    with connection.transaction():
                        self._one(connection)
                except (psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected):
                    ending = "failed"
                except _GiveUp:
                    ending = "rolled back"
                self.done[ending] += 1
                self._left -= ending == "committed"
                time.sleep(self._random.uniform(0, 2 * self._pause_seconds))

    def _one(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        chance = self._random
        with connection.cursor() as cursor:
            if chance.random() < 0.3:
                cursor.execute("SET LOCAL synchronous_commit = off")
                self.done["asynchronous"] += 1
            for _ in range(chance.choice((1, 1, 2, 3))):
                chance.choice(self._steps)(chance, cursor)
                if self._held_seconds:
                    time.sleep(chance.uniform(0, self._held_seconds))
            if chance.random() < 0.15:
                with suppress(_GiveUp), connection.transaction():
                    chance.choice(self._steps)(chance, cursor)
                    if chance.random() < 0.7:
                        self.done["savepoints undone"] += 1
                        raise _GiveUp
                chance.choice(self._steps)(chance, cursor)
            if chance.random() < 0.08:
                raise _GiveUp


class _GiveUp(Exception):
    """Not an error: this transaction or savepoint is meant to end without effect."""


def _maybe(chance: random.Random, high: int) -> int | None:
    return None if chance.random() < 0.12 else chance.randint(1, high)


def change_customers(chance: random.Random, cursor: Cursor) -> None:
    who = chance.randint(1, 45)
    match chance.randrange(5):
        case 0:
            cursor.execute(
                "INSERT INTO customers VALUES (%s, %s, %s, note(%s)) ON CONFLICT DO NOTHING",
                (who, _maybe(chance, 8), chance.randint(0, 5), chance.randint(1, 10_000)),
            )
        case 1:
            cursor.execute("UPDATE customers SET city = %s WHERE id = %s", (_maybe(chance, 8), who))  # TOAST untouched
        case 2:
            cursor.execute("UPDATE customers SET id = %s WHERE id = %s", (chance.randint(1, 45), who))
        case 3:
            cursor.execute("UPDATE customers SET score = score + 1, note = note WHERE city = %s", (_maybe(chance, 8),))
        case _:
            cursor.execute("DELETE FROM customers WHERE id = %s", (who,))


def change_visits(chance: random.Random, cursor: Cursor) -> None:
    who, place = _maybe(chance, 40), _maybe(chance, 12)
    match chance.randrange(4):
        case 0 | 1:
            cursor.execute(
                "INSERT INTO visits SELECT %s, %s, DATE '2024-01-01' + %s FROM generate_series(1, %s)",
                (who, place, chance.randint(0, 2), chance.choice((1, 2))),
            )
        case 2:  # one of several equal rows
            cursor.execute("DELETE FROM visits WHERE ctid = (SELECT min(ctid) FROM visits WHERE place = %s)", (place,))
        case _:
            cursor.execute("UPDATE visits SET place = %s WHERE customer = %s", (place, who))


def change_sales(chance: random.Random, cursor: Cursor) -> None:
    number = chance.randint(1, 80)
    match chance.randrange(5):
        case 0 | 1:
            cursor.execute(
                "INSERT INTO sales VALUES (%s, %s, %s, %s) ON CONFLICT (no) DO UPDATE SET amount = sales.amount + 1",
                (number, _maybe(chance, 45), _maybe(chance, 25), chance.randint(0, 9)),
            )
        case 2:
            cursor.execute("UPDATE sales SET no = %s WHERE no = %s", (chance.randint(1, 80), number))
        case 3:
            cursor.execute("UPDATE sales SET customer = %s WHERE no = %s", (_maybe(chance, 45), number))
        case _:
            cursor.execute("DELETE FROM sales WHERE no = %s", (number,))


def change_products(chance: random.Random, cursor: Cursor) -> None:
    number = chance.randint(1, 25)
    match chance.randrange(4):
        case 0:
            cursor.execute(
                "INSERT INTO products VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (number, _maybe(chance, 6), chance.randint(1, 3000) / 100, chance.randint(1, 6)),
            )
        case 1 | 2:
            cursor.execute(
                "UPDATE products SET price = price + 0.25, kind = %s WHERE id = %s", (_maybe(chance, 6), number)
            )
        case _:
            cursor.execute("DELETE FROM products WHERE id = %s", (number,))


def change_places(chance: random.Random, cursor: Cursor) -> None:
    number = chance.randint(1, 13)
    match chance.randrange(4):
        case 0:
            cursor.execute(
                "INSERT INTO places VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                (number, _maybe(chance, 8), f"place {chance.randint(1, 99)}"),
            )
        case 1 | 2:
            cursor.execute("UPDATE places SET city = %s WHERE id = %s", (_maybe(chance, 8), number))
        case _:
            cursor.execute("DELETE FROM places WHERE id = %s", (number,))


def change_routes(chance: random.Random, cursor: Cursor) -> None:
    match chance.randrange(3):
        case 0 | 1:
            cursor.execute(
                "INSERT INTO routes VALUES (%s, %s, %s)", (_maybe(chance, 12), _maybe(chance, 12), chance.random() * 20)
            )
        case _:
            cursor.execute(
                "DELETE FROM routes WHERE ctid IN (SELECT ctid FROM routes WHERE origin = %s LIMIT 2)",
                (_maybe(chance, 12),),
            )


def sell_the_indivisible(chance: random.Random, cursor: Cursor) -> None:
    """Bring one transaction of a cycle: product 900's divisor is 0 only while no sale of it is there.

    A sale of one cycle and a divisor of another never met; a batch that holds both combines them all the same.
    """
    cursor.execute("SELECT divisor, (SELECT count(*) FROM sales WHERE product = 900) FROM products WHERE id = 900")
    found = cursor.fetchone()
    if found is None:
        cursor.execute("INSERT INTO products VALUES (900, 1, 9.99, 0)")
        return
    divisor, sold = found
    if sold:
        cursor.execute("DELETE FROM sales WHERE product = 900")
    elif divisor == 0:
        cursor.execute("UPDATE products SET divisor = %s WHERE id = 900", (chance.randint(1, 4),))
    elif chance.random() < 0.5:
        cursor.execute(
            "INSERT INTO sales VALUES (9000 + %s, %s, 900, %s)",
            (chance.randint(1, 50), chance.randint(1, 40), chance.randint(1, 9)),
        )
    else:
        cursor.execute("UPDATE products SET divisor = 0 WHERE id = 900")


class Writers:
    """Several writers as one."""

    def __init__(self, writers: Sequence[Writer]) -> None:
        self.writers = tuple(writers)

    def start(self) -> None:
        for writer in self.writers:
            writer.start()

    @property
    def are_busy(self) -> bool:
        return any(writer.is_alive() for writer in self.writers)

    def finish(self, *, stop: bool = False) -> Counter[str]:
        """Wait until all are done, and return what they did."""
        done: Counter[str] = Counter()
        for writer in self.writers:
            if stop:
                writer.stop()
        for writer in self.writers:
            writer.join(timeout=300)
            assert not writer.is_alive(), f"{writer.name} hangs"
            if writer.error is not None:
                raise writer.error
            done.update(writer.done)
        return done


def busy_writers(
    servers: dict[str, EmbeddedServer], database: str, *, transactions: int, pause_seconds: float = 0.004, seed: int = 1
) -> Writers:
    """Return eight writers who share so many transactions: two of them hold theirs open, one plays with zeros."""
    crm, shop, geo = servers["crm"], servers["shop"], servers["geo"]
    plans = [
        (crm, (change_customers, change_visits), 0.20, 0.0),
        (crm, (change_visits, change_customers), 0.15, 0.0),
        (shop, (change_sales, change_products), 0.20, 0.0),
        (shop, (change_sales,), 0.15, 0.0),
        (geo, (change_places, change_routes), 0.15, 0.0),
        (shop, (sell_the_indivisible,), 0.10, 0.0),
        (crm, (change_customers, change_visits), 0.025, 0.25),
        (shop, (change_sales, change_products), 0.025, 0.25),
    ]
    return Writers(
        [
            Writer(
                server,
                database,
                steps,
                seed=100 * seed + number,
                transactions=max(1, round(share * transactions)),
                pause_seconds=pause_seconds / share / len(plans) if not held else pause_seconds,
                held_seconds=held,
            )
            for number, (server, steps, share, held) in enumerate(plans)
        ]
    )


def write(servers: dict[str, EmbeddedServer], database: str, *, transactions: int, seed: int) -> None:
    """Let eight writers write so many transactions as fast as they can, and wait for them."""
    writers = busy_writers(servers, database, transactions=transactions, pause_seconds=0.001, seed=seed)
    writers.start()
    writers.finish()
