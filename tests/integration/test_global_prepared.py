"""Transfers by two-phase commit: prepared at both banks under one id, committed when each gets to it, one tick."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from audited import AuditedWorld, assert_exact
from banks import (
    BANKS,
    VIEWS,
    assert_whole,
    banks,
    note,
    ticks_of_transfers,
    wait_until,
    waiting,
    warehouse,
)
from pyspark.sql import SparkSession
from running import running
from test_kill import Killable
from volume import volume

from headwater.sources.embedded import EmbeddedServer

TRANSFERS = volume(12, 25)
SETTINGS = '[global_transactions]\nsources = ["crm", "shop"]\nby = "gid"\n'


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with banks(three_servers, tmp_path / "banks", SETTINGS) as made:
        yield made


def prepare(world: AuditedWorld, bank: str, gid: str, account: int, amount: int) -> None:
    """Prepare a leg of a transfer; its column tells the judge which one it is, and nobody else looks at it."""
    change = "UPDATE accounts SET balance = balance + %s, transfer = %s WHERE id = %s"
    with psycopg.connect(world.url(bank), autocommit=True) as connection:
        connection.execute("BEGIN")
        connection.execute(change, (amount, gid, account))
        connection.execute(f"PREPARE TRANSACTION '{gid}'".encode())


def end(world: AuditedWorld, bank: str, gid: str, how: str = "COMMIT") -> None:
    world.execute(bank, f"{how} PREPARED '{gid}'")


@pytest.mark.parametrize(
    "probed",
    [pytest.param((), id="replicas", marks=pytest.mark.thorough), pytest.param(("crm.accounts",), id="probes")],
)
def test_no_state_shows_half_a_transfer(world: AuditedWorld, spark: SparkSession, probed: tuple[str, ...]) -> None:
    """Writers prepare, then commit at one bank, do something else, and commit at the other; some are rolled back."""
    world.write_project(VIEWS, probed=probed, settings=SETTINGS)

    def write(seed: int, order: tuple[str, ...]) -> None:
        chance = random.Random(seed)
        for number in range(TRANSFERS):
            account, amount, gid = 1 + seed, chance.randint(1, 9), f"{seed}-{number}"
            for bank, sign in zip(BANKS, (1, -1), strict=True):
                prepare(world, bank, gid, account, sign * amount)
            note(world, chance.choice(BANKS), 5 + seed)
            time.sleep(chance.choice((0, 0.02)))
            outcome = "ROLLBACK" if chance.random() < 0.25 else "COMMIT"
            end(world, order[0], gid, outcome)
            time.sleep(chance.choice((0, 0.005, 0.1)))
            note(world, chance.choice(BANKS), 5 + seed)
            end(world, order[1], gid, outcome)
            time.sleep(0.1 * chance.random())

    writers = [
        threading.Thread(target=write, args=(seed, order)) for seed, order in enumerate([BANKS, BANKS[::-1], BANKS])
    ]
    with running(world, spark):
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
    world.open().run(until_idle=True)
    assert not waiting(world)
    transfers = ticks_of_transfers(world)
    assert TRANSFERS < len(transfers) < 3 * TRANSFERS, "some were rolled back"
    assert all(len(ticks) == 2 and len(set(ticks)) == 1 for ticks in transfers.values()), "every transfer is one tick"
    assert len({tick for ticks in transfers.values() for tick in ticks}) > TRANSFERS, "most have a tick of their own"
    assert_whole(world, spark)


def test_killed_between_prepare_and_commit_and_between_the_commits(world: AuditedWorld, spark: SparkSession) -> None:
    killable = Killable(world, spark)
    try:
        killable.start()
        before = warehouse(world).log.last_tick
        for bank, amount in zip(BANKS, (5, -5), strict=True):
            prepare(world, bank, "one", 1, amount)
            prepare(world, bank, "never", 2, amount)
            note(world, bank, 3)
        wait_until(lambda: warehouse(world).log.last_tick == before + 2)
        killable.kill()
        end(world, "crm", "one")
        note(world, "crm", 3)
        killable.start()
        wait_until(lambda: waiting(world).keys() == {"one"})
        assert waiting(world)["one"].missing == ("shop",)
        killable.kill()
        end(world, "shop", "one")
        for bank in BANKS:
            end(world, bank, "never", "ROLLBACK")
        killable.start("after log append")
        killable.wait_for("ended")
        world.open().run(until_idle=True)
    finally:
        killable.close()
    assert not waiting(world)
    assert {transfer: len(set(ticks)) for transfer, ticks in ticks_of_transfers(world).items()} == {"one": 1}
    assert_whole(world, spark)


@pytest.mark.thorough
def test_a_part_that_never_commits_is_shown_and_released(world: AuditedWorld, spark: SparkSession) -> None:
    prepare(world, "crm", "lost", 1, 5)
    prepare(world, "shop", "lost", 1, -5)
    end(world, "crm", "lost")
    world.open().run(until_idle=True)
    part = waiting(world)["lost"]
    assert (part.arrived, part.missing) == (("crm",), ("shop",))
    assert part.age_seconds > 0
    end(world, "shop", "lost", "ROLLBACK")
    world.open().run(until_idle=True)
    assert waiting(world).keys() == {"lost"}, "nobody guesses what it means that one bank went back on its word"
    world.open().release("lost")
    world.open().run(until_idle=True)
    assert not waiting(world)
    assert_exact(world, spark)
