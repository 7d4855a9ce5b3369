"""Snapshots and the log brought together while several sessions write: the two channels must agree exactly."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import psycopg

from headwater.model.relation import COUNT, Relation
from headwater.model.settings import CaptureSettings
from headwater.model.transaction import ORDINAL, Capture, Transaction

SECONDS = 3.0
STATEMENTS = (
    "UPDATE sales SET amount = amount + 1 WHERE id = %s",
    "UPDATE sales SET text = text || 'b' WHERE id = %s",
    "DELETE FROM sales WHERE id = %s",
    "INSERT INTO sales VALUES (%s, 0, 'a') ON CONFLICT DO NOTHING",
)


@contextlib.contextmanager
def writing(work: Callable[[int], None], writers: int) -> Iterator[None]:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join()


def signed_rows(capture: Capture, relation: Relation) -> list[Counter[tuple[Any, ...]]]:
    found: list[Counter[tuple[Any, ...]]] = [Counter() for _ in capture.transactions]
    for row in capture.rows[relation.name].to_pylist():
        ordinal, count = row.pop(ORDINAL), row.pop(COUNT)
        found[ordinal][tuple(map(repr, row.values()))] += count
    return found


def test_every_snapshot_is_the_sum_of_the_transactions_it_saw(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY, amount int, text text)")
    world.declare("sales")
    sales = world.relations["sales"]
    follower = world.follow()
    until = time.monotonic() + SECONDS

    def work(number: int) -> None:
        choose = random.Random(number)
        with world.connect() as connection:
            connection.execute(f"SET synchronous_commit = {'off' if number % 2 else 'on'}".encode())
            connection.commit()
            while time.monotonic() < until:
                for place in sorted(choose.sample(range(60), choose.randint(1, 4))):
                    connection.execute(choose.choice(STATEMENTS), (place,))
                    time.sleep(choose.choice((0, 0, 0, 0.003)))
                if choose.random() < 0.1:
                    connection.rollback()
                else:
                    connection.commit()

    logged: list[tuple[Transaction, Counter[tuple[Any, ...]]]] = []
    snapshots = 0
    with writing(work, 5):
        while time.monotonic() < until:
            with world.source.snapshot() as snapshot:
                shown = world.bag(world.whole(snapshot, sales))
            for capture in world.captures(follower, snapshot.position):
                logged += zip(capture.transactions, signed_rows(capture, sales), strict=True)
            total: Counter[tuple[Any, ...]] = Counter()
            for transaction, rows in logged:
                if snapshot.seen.sees(transaction.identity, ""):
                    assert transaction.position <= snapshot.position
                    total.update(rows)
            assert Counter({row: count for row, count in total.items() if count}) == shown
            snapshots += 1
    assert snapshots > 20
    assert len(logged) > 100


def test_nothing_is_lost_or_repeated_however_often_the_connection_ends(world: Any) -> None:
    world.set_capture(CaptureSettings(report_interval_seconds=0.01, capture_rows=50))
    world.execute("CREATE TABLE sales (id bigserial PRIMARY KEY, writer int); CREATE TABLE other (id int)")
    world.declare("sales")
    until = time.monotonic() + SECONDS

    def work(number: int) -> None:
        choose = random.Random(number)
        with psycopg.connect(world.server.url(world.database)) as connection:
            while time.monotonic() < until:
                for _ in range(choose.randint(1, 5)):
                    connection.execute("INSERT INTO sales (writer) VALUES (%s)", (number,))
                connection.execute("INSERT INTO other VALUES (1)")
                connection.commit()
                time.sleep(choose.choice((0, 0, 0.01)))

    choose = random.Random(7)
    durable: list[int] = []
    after = None
    follower = world.follow()
    waiting: list[Capture] = []

    def keep(captures: list[Capture]) -> None:
        nonlocal after
        for capture in captures:
            durable.extend(capture.rows[world.relations["sales"].name]["id"].to_pylist())
            after = capture.transactions[-1].position

    with writing(work, 3):
        while time.monotonic() < until:
            if (capture := follower.next_capture(0.02)) is not None:
                waiting.append(capture)
            count = choose.randint(0, len(waiting))
            keep(waiting[:count])
            waiting = waiting[count:]
            if after is not None and choose.random() < 0.5:
                follower.acknowledge(after)
            if choose.random() < 0.1:
                follower = world.follow(held_to=after)
                waiting = []
    keep(waiting)
    keep(world.captures(follower))
    assert sorted(durable) == [row[0] for row in world.execute("SELECT id FROM sales ORDER BY id")]
    assert len(durable) > 100
