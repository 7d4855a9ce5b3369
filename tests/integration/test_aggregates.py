"""Views that aggregate, at any depth: every state is the right one, while writers write, and after `kill -9`."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from audited import AuditedWorld, assert_exact, assert_reads_agree, audited_world, observe
from pyspark.sql import SparkSession
from running import running
from test_kill import Killable
from volume import THOROUGH, volume
from writers import busy_writers, write

from headwater.errors import SeveralErrors
from headwater.observe.events import BatchCommitted, Event, SourceConnected, ViewBorn
from headwater.project.file import load
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

TICKS = volume(60, 500)
TRANSFERS = volume(600, 100_000)
KILLS = volume(1, 3)
WRITERS = 4
SETTINGS = "[maintenance]\nbatch_ticks = 150\n"

AGGREGATES = {
    "by_kind": """
        SELECT p.kind, COUNT(*) AS sold, SUM(s.amount) AS amount, SUM(s.amount * p.price) AS paid, COUNT(p.kind) AS had
        FROM shop.sales s JOIN shop.products p ON s.product = p.id GROUP BY p.kind
    """,
    "busy": """
        SELECT c.city, AVG(c.score) AS score, COUNT(*) AS customers FROM crm.customers c
        GROUP BY c.city HAVING COUNT(*) > 2 AND SUM(c.score) > 3
    """,
    "cheapest": """
        SELECT p.kind, MIN(p.price) AS lowest, MAX(p.price) AS highest FROM shop.products p GROUP BY p.kind
    """,
    "cities": "SELECT DISTINCT c.city FROM crm.customers c JOIN geo.places g ON g.city = c.city",
    "buyers": """
        SELECT c.id, c.city FROM crm.customers c
        WHERE EXISTS (SELECT 1 FROM shop.sales s WHERE s.customer = c.id AND s.amount > 2)
    """,
    "others": """
        SELECT c.id, c.city FROM crm.customers c WHERE NOT EXISTS (SELECT 1 FROM crm.visits v WHERE v.customer = c.id)
    """,
    "all_products": """
        SELECT p.id, p.kind, s.no, s.amount FROM shop.products p LEFT JOIN shop.sales s ON s.product = p.id
    """,
    "how_often": """
        SELECT bought.times, COUNT(*) AS customers
        FROM (SELECT s.customer, COUNT(*) AS times FROM shop.sales s GROUP BY s.customer) AS bought
        GROUP BY bought.times
    """,
    "lately_by_kind": """
        SELECT p.kind, COUNT(*) AS sold, MAX(s.amount) AS most
        FROM shop.sales s JOIN shop.products p ON s.product = p.id GROUP BY p.kind
    """,
    "paid_kinds": "SELECT b.kind, b.paid - b.sold AS more FROM by_kind AS b WHERE b.paid > 20",
    "everything": """
        SELECT COUNT(*) AS sales, SUM(s.amount) AS amount, COUNT(DISTINCT s.customer) AS who FROM shop.sales s
    """,
}
QUICK = ("by_kind", "cheapest", "others", "how_often")
KILLED = {name: AGGREGATES[name] for name in ("by_kind", "paid_kinds", "how_often", "lately_by_kind", "buyers")}


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def test_every_tick_of_every_aggregate_is_exact_while_sources_change(world: AuditedWorld, spark: SparkSession) -> None:
    views = AGGREGATES if THOROUGH else {name: AGGREGATES[name] for name in QUICK}
    world.write_project(views, settings=SETTINGS)

    def listen(event: Event) -> None:
        if isinstance(event, SourceConnected):
            world.note_before(event.source)  # what the writers did until now needs no tick

    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=0.1, seed=21)
    with running(world, spark, listen) as maintainer:
        maintainer.wait_until(lambda: maintainer.heard(ViewBorn))
        writers.start()
        maintainer.wait_until(
            lambda: maintainer.maintainer.log.last_tick >= TICKS and len(maintainer.heard(BatchCommitted)) > 1
        )
        writers.finish(stop=True)
    world.open().run(until_idle=True)
    judgement = assert_exact(world, spark)
    assert set(judgement.verdicts) == set(views)
    assert judgement.tick_count >= TICKS
    assert_reads_agree(world, judgement, spark)


@pytest.mark.thorough
@pytest.mark.parametrize("fail_point", ["after changes append", "before batch commit"])
def test_killed_between_the_appends_of_a_view_s_tables(
    world: AuditedWorld, spark: SparkSession, fail_point: str
) -> None:
    """Some tables of the batch are appended and some are not; the next maintainer computes that very batch again."""
    world.write_project(KILLED, settings="[maintenance]\nbatch_ticks = 20\n")
    world.open().run(until_idle=True)
    world.note_before()
    killable = Killable(world, spark)
    try:
        for seed in range(KILLS):
            write(dict(world.servers), world.database, transactions=60, seed=seed)
            killable.start(fail_point)
            assert killable.wait_for("ended") == "ended -9"
    finally:
        killable.close()
    world.open().run(until_idle=True)
    assert assert_exact(world, spark).tick_count > 30 * KILLS


RECOMPUTED = {
    "later": """
        SELECT p.id, (SELECT MAX(s.amount) FROM shop.sales s WHERE s.product > p.id) AS most FROM shop.products p
    """,
    "every_later": """
        SELECT p.id, (SELECT COUNT(*) FROM shop.sales s WHERE s.product < p.id) AS sold FROM shop.products p
    """,
    "dearest": "SELECT p.id, p.price FROM shop.products p ORDER BY p.price DESC, p.id LIMIT 3",
}


def test_what_has_no_incremental_form_is_recomputed_at_every_commit_or_every_tick(
    world: AuditedWorld, spark: SparkSession
) -> None:
    world.write_project(
        RECOMPUTED, settings='[maintenance]\nbatch_ticks = 15\n[views.every_later]\nguarantee = "complete"\n'
    )
    world.open().run(until_idle=True)
    world.note_before()
    write(dict(world.servers), world.database, transactions=50, seed=4)
    world.open().run(until_idle=True)
    assert_exact(world, spark)
    guarantees = {name: entry.guarantee for name, entry in Warehouse.open(_path(world)).catalog().views.items()}
    assert guarantees == {"later": "strong", "every_later": "complete", "dearest": "complete"}
    assert world.open().check(steps=True).kept
    told = world.open().explain("later")
    assert [one["step"] for one in told.data["segments"]] == ["selection", "selection", "recompute"]
    assert [one["code"] for one in told.data["reasons"]] == ["HW-268"]
    world.write_project(RECOMPUTED, settings="[defaults]\nstrict = true\n")
    with pytest.raises(SeveralErrors, match="strict"):
        world.open().plan()


def _path(world: AuditedWorld) -> str:
    return str(load(world.folder).warehouse)


BALANCES = """
    WITH credits AS (
        SELECT l.account, SUM(l.amount) AS amount FROM shop.legs l JOIN crm.accounts a ON a.id = l.account
        WHERE l.amount > 0 GROUP BY l.account
    ), debits AS (
        SELECT l.account, SUM(-l.amount) AS amount FROM shop.legs l JOIN crm.accounts a ON a.id = l.account
        WHERE l.amount < 0 GROUP BY l.account
    )
    SELECT credits.account, credits.amount - debits.amount AS balance
    FROM credits JOIN debits ON credits.account = debits.account
"""
MONEY = {"balances": BALANCES, "total": f"SELECT SUM(balance) AS total FROM ({BALANCES}) AS balances"}
ACCOUNTS = 10


class Transferring(threading.Thread):
    """Moves money between accounts, and sometimes takes a transfer back; both legs always in one transaction."""

    def __init__(self, url: str, seed: int, transfers: int) -> None:
        super().__init__(daemon=True)
        self._url, self._random, self._left = url, random.Random(seed), transfers
        self._numbers = iter(range(1_000_000 * (seed + 1), 1_000_000 * (seed + 2)))
        self._done: list[int] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            with psycopg.connect(self._url) as connection:
                for _ in range(self._left):
                    with connection.transaction(), connection.cursor() as cursor:
                        self._one(cursor)
        except BaseException as error:  # noqa: BLE001 - raised by the test
            self.error = error

    def _one(self, cursor: psycopg.Cursor[tuple[object, ...]]) -> None:
        chance = self._random
        if self._done and chance.random() < 0.1:
            cursor.execute("DELETE FROM legs WHERE transfer = %s", (self._done.pop(),))
            return
        number, amount = next(self._numbers), chance.randint(1, 100)
        giver, taker = chance.sample(range(1, ACCOUNTS + 1), 2)
        cursor.execute(
            "INSERT INTO legs VALUES (%s, %s, %s), (%s, %s, %s)", (number, giver, -amount, number, taker, amount)
        )
        self._done.append(number)


def test_money_moves_and_none_is_made(world: AuditedWorld, spark: SparkSession) -> None:
    """The total of all balances is 0 at every single tick: both legs of a transfer come together, in every segment."""
    world.execute(
        "crm", "CREATE TABLE accounts (id int PRIMARY KEY, owner text); ALTER TABLE accounts REPLICA IDENTITY FULL"
    )
    world.execute("shop", "CREATE TABLE legs (transfer int, account int, amount int); CREATE INDEX ON legs (account)")
    world.execute("shop", "ALTER TABLE legs REPLICA IDENTITY FULL")
    world.execute("crm", f"INSERT INTO accounts SELECT g, 'owner ' || g FROM generate_series(1, {ACCOUNTS}) g")
    world.execute(
        "shop",
        f"INSERT INTO legs SELECT -g, g, 1 FROM generate_series(1, {ACCOUNTS}) g UNION ALL "
        f"SELECT -g, 1 + g % {ACCOUNTS}, -1 FROM generate_series(1, {ACCOUNTS}) g",
    )
    world.write_project(MONEY, probed=(), settings="[maintenance]\nbatch_ticks = 1000\n")
    movers = [Transferring(world.url("shop"), seed, TRANSFERS // WRITERS) for seed in range(WRITERS)]
    with running(world, spark) as maintainer:
        maintainer.wait_until(lambda: maintainer.heard(ViewBorn))
        for mover in movers:
            mover.start()
        while any(mover.is_alive() for mover in movers):
            world.execute("crm", f"UPDATE accounts SET owner = owner || '.' WHERE id = {random.randint(1, ACCOUNTS)}")
    assert [mover.error for mover in movers] == [None] * WRITERS
    world.open().run(until_idle=True)

    warehouse = Warehouse.open(_path(world))
    total = observe(warehouse, spark, "total")
    assert total.start == Counter({(0,): 1})
    assert not total.changes, "the total never is anything but 0, not for one tick"
    balances = observe(warehouse, spark, "balances")
    state, moved = Counter(balances.start), 0
    for tick in sorted(balances.changes):
        state.update(balances.changes[tick])
        state = Counter({row: count for row, count in state.items() if count})
        moved += 1
        assert sum(balance * count for (_, balance), count in state.items()) == 0, tick
        assert set(state.values()) == {1}, tick
    assert len(state) == ACCOUNTS
    assert moved >= TRANSFERS * 0.9
