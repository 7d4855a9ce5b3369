"""Prepared transactions of a live server: their rows come once, where they commit, whatever connections are lost."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headwater.model.position import LSN
from headwater.model.transaction import Capture, Transaction
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.postgres import PostgresSource


@pytest.fixture(scope="module", params=[16, 18])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedServer]:
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    settings = {"fsync": "off", "max_prepared_transactions": "5"}
    made = EmbeddedServer(directory, version=request.param, settings=settings)
    try:
        made.start()
        made.execute("CREATE DATABASE bank")
        yield made
    finally:
        made.kill()
        shutil.rmtree(directory)


def source(server: EmbeddedServer, *, tells_prepared: bool = True) -> PostgresSource:
    return PostgresSource("bank", server.url("bank"), "prepared", tells_prepared=tells_prepared)


@pytest.fixture
def world(server: EmbeddedServer, make_world: type[Any]) -> Iterator[Any]:
    made = make_world(server=server, database="bank", source=source(server))
    made.execute("CREATE TABLE legs (id int PRIMARY KEY, amount int); CREATE TABLE other (id int)")
    yield made
    made.stop_following()
    for (gid,) in made.execute("SELECT gid FROM pg_prepared_xacts"):
        made.execute(f"ROLLBACK PREPARED '{gid}'")
    made.teardown()
    made.execute("DROP TABLE legs, other")


def prepare(world: Any, gid: str, *statements: str) -> int:
    """Prepare a transaction, and return its id."""
    with psycopg.connect(world.server.url(world.database), autocommit=True) as connection:
        connection.execute("BEGIN")
        for statement in statements:
            connection.execute(statement.encode())
        row = connection.execute("SELECT pg_current_xact_id()::text::int8").fetchone()
        connection.execute(f"PREPARE TRANSACTION '{gid}'".encode())
    assert row is not None
    return int(row[0])


def log_end(world: Any) -> int:
    [(text,)] = world.execute("SELECT pg_current_wal_insert_lsn()::text")
    return LSN.parse(text)


def confirmed(world: Any) -> int:
    [(text,)] = world.execute("SELECT confirmed_flush_lsn::text FROM pg_replication_slots")
    return LSN.parse(text)


def amounts(world: Any, captures: list[Capture]) -> list[tuple[str, int]]:
    """Return the signed rows as (amount, count), sorted."""
    return sorted((row[1], count) for row, count in world.signed(captures, world.relations["legs"]).items())


def told(captures: list[Capture]) -> list[Transaction]:
    return [transaction for capture in captures for transaction in capture.transactions]


def test_rows_come_where_the_transaction_commits(world: Any) -> None:
    world.declare("legs")
    follower = world.follow()
    xid = prepare(world, "transfer 7", "INSERT INTO legs VALUES (1, 10)")
    world.execute("INSERT INTO legs VALUES (2, 20)")
    first = world.captures(follower)
    assert amounts(world, first) == [("20", 1)]
    with world.source.snapshot() as snapshot:
        assert not snapshot.seen.sees(xid, "")
    world.execute("COMMIT PREPARED 'transfer 7'")
    with world.source.snapshot() as snapshot:
        assert snapshot.seen.sees(xid, "")
        second = world.captures(follower, snapshot.position)
    assert amounts(world, second) == [("10", 1)]
    [transaction] = told(second)
    assert (transaction.identity, transaction.gid) == (xid, "transfer 7")
    assert told(first)[0].position < transaction.position


def test_rolled_back_ones_never_come_and_an_id_may_be_used_again(world: Any) -> None:
    world.declare("legs")
    follower = world.follow()
    prepare(world, "again", "INSERT INTO legs VALUES (1, 10)")
    world.execute("ROLLBACK PREPARED 'again'")
    prepare(world, "again", "INSERT INTO legs VALUES (1, 11)", "UPDATE legs SET amount = 12")
    world.execute("COMMIT PREPARED 'again'")
    captures = world.captures(follower)
    assert amounts(world, captures) == [("12", 1)]
    assert [one.gid for one in told(captures)] == ["again"]


def test_a_lost_connection_between_prepare_and_commit_loses_nothing(world: Any) -> None:
    world.declare("legs")
    follower = world.follow()
    prepare(world, "held", "INSERT INTO legs VALUES (1, 10)")
    prepared_to = log_end(world)
    world.execute("INSERT INTO legs VALUES (2, 20)")
    [x] = told(world.captures(follower))
    follower.acknowledge(x.position)
    world.stop_following()
    assert confirmed(world) < prepared_to, "not past the PREPARE, although what committed after it is durable"

    follower = world.follow(x.position)
    follower.acknowledge(x.position)
    follower._report()
    time.sleep(0.2)
    world.stop_following()
    assert confirmed(world) < prepared_to, "what this connection has not read yet may hold a PREPARE"

    follower = world.follow(x.position)
    follower.acknowledge(x.position)
    assert world.captures(follower) == [], "what comes again is dropped, what is prepared waits"
    world.execute("COMMIT PREPARED 'held'")
    world.execute("INSERT INTO legs VALUES (3, 30)")
    again = world.captures(follower)
    assert amounts(world, again) == [("10", 1), ("30", 1)]
    world.stop_following()
    assert confirmed(world) < prepared_to, "it has committed, and is not durable"

    follower = world.follow(x.position)
    third = world.captures(follower)
    assert amounts(world, third) == [("10", 1), ("30", 1)], "a part that was held is told with its rows again"
    follower.acknowledge(told(third)[-1].position)
    follower.next_capture(0.1)
    world.stop_following()
    deadline = time.monotonic() + 20
    while confirmed(world) < told(third)[-1].position.offset:
        assert time.monotonic() < deadline, "what is durable is forgotten"
        time.sleep(0.02)
    assert world.captures(world.follow(told(third)[-1].position)) == []


def test_what_touches_nothing_of_ours_is_a_part_all_the_same(world: Any) -> None:
    world.declare("legs")
    follower = world.follow()
    prepare(world, "elsewhere", "INSERT INTO other VALUES (1)")
    world.execute("COMMIT PREPARED 'elsewhere'")
    captures = world.captures(follower)
    assert [one.gid for one in told(captures)] == ["elsewhere"]
    assert amounts(world, captures) == []


def test_a_slot_that_did_not_tell_begins_to_and_one_that_did_goes_on(world: Any) -> None:
    telling, world.source = world.source, source(world.server, tells_prepared=False)
    world.declare("legs")
    follower = world.follow()
    prepare(world, "one", "INSERT INTO legs VALUES (1, 10)")
    world.execute("COMMIT PREPARED 'one'")
    plain = world.captures(follower)
    assert [one.gid for one in told(plain)] == [None]
    assert amounts(world, plain) == [("10", 1)]
    prepare(world, "two", "INSERT INTO legs VALUES (2, 20)")
    follower.acknowledge(told(plain)[-1].position)
    assert world.captures(follower) == []

    world.source = telling
    follower = world.follow(told(plain)[-1].position)
    world.execute("COMMIT PREPARED 'two'")
    captures = world.captures(follower)
    assert [one.gid for one in told(captures)] == ["two"], "prepared before it was asked for"
    assert amounts(world, captures) == [("20", 1)]

    world.source = source(world.server, tells_prepared=False)
    follower = world.follow(told(captures)[-1].position)
    prepare(world, "three", "INSERT INTO legs VALUES (3, 30)")
    assert world.captures(follower) == []
    world.execute("COMMIT PREPARED 'three'")
    assert amounts(world, world.captures(follower)) == [("30", 1)]


def test_a_server_that_takes_none_is_refused(postgres_server: EmbeddedServer, shared_database: str) -> None:
    asked = PostgresSource("shop", postgres_server.url(shared_database), "prepared", tells_prepared=True)
    assert [refusal.code for refusal in asked.inspect([]).refusals] == ["HW-337"]
