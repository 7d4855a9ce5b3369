"""Transfers between two banks, each leg a transaction of its own database: no state of any view shows half of one."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from audited import AuditedWorld, assert_exact
from banks import BANKS, VIEWS, assert_whole, banks, note, ticks_of_transfers, wait_until, waiting
from pyspark.sql import SparkSession
from running import running
from test_kill import Killable
from volume import volume

from headwater.errors import HeadwaterError
from headwater.sources.embedded import EmbeddedServer

TRANSFERS = volume(12, 25)
SETTINGS = '[global_transactions]\nsources = ["crm", "shop"]\ncolumn = "transfer"\n'


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with banks(three_servers, tmp_path / "banks", SETTINGS) as made:
        yield made


def leg(world: AuditedWorld, bank: str, transfer: str, account: int, amount: int) -> None:
    world.execute(
        bank, f"UPDATE accounts SET balance = balance + {amount}, transfer = '{transfer}' WHERE id = {account}"
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "probed",
    [pytest.param((), id="replicas"), pytest.param(("crm.accounts",), id="probes")],
)
def test_no_state_shows_half_a_transfer(world: AuditedWorld, spark: SparkSession, probed: tuple[str, ...]) -> None:
    """Writers transfer in both directions at once, so that legs wait, pass each other and now and then cross."""
    world.write_project(VIEWS, probed=probed, settings=SETTINGS)

    def write(seed: int, banks: tuple[str, str]) -> None:
        chance = random.Random(seed)
        with (
            psycopg.connect(world.url(banks[0]), autocommit=True) as first,
            psycopg.connect(world.url(banks[1]), autocommit=True) as second,
        ):
            for number in range(TRANSFERS):
                account, amount = chance.randint(1, 8), chance.randint(1, 9)
                values = {"amount": amount, "transfer": f"{seed}-{number}", "account": account}
                change = (
                    "UPDATE accounts SET balance = balance + %(amount)s, transfer = %(transfer)s WHERE id = %(account)s"
                )
                first.execute(change, values)
                if chance.random() < 0.5:
                    first.execute("UPDATE accounts SET note = note + 1 WHERE id = %s", (chance.randint(1, 8),))
                time.sleep(chance.choice((0, 0.005, 0.05)))
                if chance.random() < 0.5:
                    second.execute("UPDATE accounts SET note = note + 1 WHERE id = %s", (chance.randint(1, 8),))
                second.execute(change, {**values, "amount": -amount})
                time.sleep(0.2 * chance.random())

    writers = [
        threading.Thread(target=write, args=(seed, banks)) for seed, banks in enumerate([BANKS, BANKS[::-1], BANKS])
    ]
    with running(world, spark):
        for writer in writers:
            writer.start()
        for writer in writers:
            note(world, "geo")
            writer.join()
    world.open().run(until_idle=True)
    assert not waiting(world)
    transfers = ticks_of_transfers(world)
    assert len(transfers) == 3 * TRANSFERS
    assert all(len(ticks) == 2 and len(set(ticks)) == 1 for ticks in transfers.values()), "every transfer is one tick"
    assert len({tick for ticks in transfers.values() for tick in ticks}) > TRANSFERS, "most have a tick of their own"
    assert_whole(world, spark)
    assert all(view.verdict.guarantee.value == "complete" for view in world.open().check().views)


def test_an_incomplete_transfer_is_shown_and_released(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project(VIEWS, probed=("crm.accounts",), settings=SETTINGS)
    world.open().run(until_idle=True)
    with running(world, spark) as maintainer:
        leg(world, "crm", "lost", 1, 5)
        note(world, "crm", 2)
        maintainer.wait_until(lambda: "lost" in waiting(world))
        part = waiting(world)["lost"]
        assert (part.arrived, part.missing) == (("crm",), ("shop",))
        before = maintainer.frontier("both")
        note(world, "shop", 3)
        note(world, "geo", 3)
        maintainer.wait_until(lambda: maintainer.frontier("apart") >= before + 2)
        assert maintainer.frontier("both") == before, "it has to ask crm, which stands still"
        time.sleep(1)
        assert waiting(world)["lost"].age_seconds > part.age_seconds
        with pytest.raises(HeadwaterError, match='no part of a global transaction "lots"') as refused:
            world.open().release("lots")
        assert refused.value.hint == 'did you mean "lost"?'
        assert world.open().release("lost").maintained
        maintainer.wait_until(lambda: not waiting(world))
        maintainer.wait_until(lambda: maintainer.frontier("both") >= before + 4)
        leg(world, "shop", "lost", 1, -5)
        maintainer.wait_until(lambda: maintainer.frontier("both") >= before + 5)
    [ticks] = [ticks for transfer, ticks in ticks_of_transfers(world).items() if transfer == "lost"]
    assert len(set(ticks)) == 2, "each part alone"
    assert_exact(world, spark)


def test_killed_between_the_parts(world: AuditedWorld, spark: SparkSession) -> None:
    killable = Killable(world, spark)
    try:
        leg(world, "crm", "1", 1, 5)
        note(world, "crm")
        killable.start()
        wait_until(lambda: waiting(world).keys() == {"1"})
        killable.kill()
        leg(world, "shop", "1", 1, -5)
        killable.start("after log append")
        killable.wait_for("ended")
        leg(world, "shop", "2", 2, 5)
        leg(world, "crm", "3", 3, 7)
        leg(world, "crm", "2", 2, -5)
        world.open().run(until_idle=True)
        assert waiting(world).keys() == {"3"}, "crm stands still at it, and 2 is behind it; there is nothing to do"
        assert not world.open().release("3").maintained
        world.open().run(until_idle=True)
    finally:
        killable.close()
    assert not waiting(world)
    ticks = ticks_of_transfers(world)
    assert {transfer: len(set(both)) for transfer, both in ticks.items()} == {"1": 1, "2": 1, "3": 1}
    assert_exact(world, spark)


def test_what_cannot_be_meant_is_refused_and_what_will_not_happen_is_warned_of(world: AuditedWorld) -> None:
    world.write_project({"elsewhere": VIEWS["elsewhere"], "apart": VIEWS["apart"]}, probed=(), settings=SETTINGS)
    assert any('source "crm", which no view reads' in warning for warning in world.open().plan().warnings)
    swept = f'{SETTINGS}\n[views.both]\nalgorithm = "sweep"\n'
    world.write_project({"both": VIEWS["both"]}, probed=("crm.accounts", "shop.accounts"), settings=swept)
    with pytest.raises(HeadwaterError, match="cannot be kept by sweep: it reads crm and shop") as refused:
        world.open().plan()
    assert refused.value.code == "HW-246"
    world.execute("crm", "ALTER TABLE accounts ADD COLUMN moved boolean")
    world.execute("shop", "ALTER TABLE accounts ADD COLUMN moved boolean")
    world.write_project(VIEWS, probed=(), settings=SETTINGS.replace('"transfer"', '"moved"'))
    with pytest.raises(HeadwaterError, match=r'column "moved" of .* cannot hold the ids') as refused:
        world.open().plan()
    assert refused.value.code == "HW-131"
