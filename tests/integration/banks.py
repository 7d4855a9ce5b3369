"""Two banks and what else there is: accounts in three databases, views over them, and what holds of transfers."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from audited import AuditedWorld, assert_exact, observe
from pyspark.sql import SparkSession

from headwater.judge.audit import audit_sql
from headwater.model.position import Tick
from headwater.observe.status import WaitingPart
from headwater.project.file import load
from headwater.project.resolve import connect_sources
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

BANKS = ("crm", "shop")
SUM = 200
TABLE = "CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL, transfer text, note int)"
ROWS = "INSERT INTO accounts SELECT g, 100, NULL, 0 FROM generate_series(1, 8) g"
VIEWS = {
    "both": """
        SELECT a.id, a.balance AS here, b.balance AS there, a.note, b.note AS other_note
        FROM crm.accounts a JOIN shop.accounts b ON a.id = b.id
    """,
    "apart": "SELECT s.id, s.note, g.note AS place FROM shop.accounts s JOIN geo.accounts g ON s.id = g.id",
    "elsewhere": "SELECT g.id, g.note FROM geo.accounts g WHERE g.note > 0",
}

_numbers = iter(range(1, 1000))


@contextmanager
def banks(servers: dict[str, EmbeddedServer], folder: Path, settings: str) -> Iterator[AuditedWorld]:
    """Make a database with accounts on each server, and views over them that are up to date."""
    made = AuditedWorld(
        servers=servers,
        database=f"banks_{os.getpid()}_{next(_numbers)}",
        folder=folder,
        names=dict.fromkeys(servers, ("accounts",)),
    )
    for source, server in servers.items():
        server.execute(f"CREATE DATABASE {made.database}")
        made.execute(source, f"{TABLE}; {audit_sql(('accounts',))}")
        made.execute(source, ROWS)
    os.environ.update(made.environment)
    made.write_project(VIEWS, probed=(), settings=settings)
    made.note_before()
    made.open().run(until_idle=True)
    yield made
    for source in connect_sources(load(made.folder)).values():
        for slot in source.slots().present:
            source.teardown(slot, {})


def note(world: AuditedWorld, source: str, account: int = 1) -> None:
    """Change something else of a row: it keeps the id of its last transfer, and is no part of it."""
    world.execute(source, f"UPDATE accounts SET note = note + 1 WHERE id = {account}")


def warehouse(world: AuditedWorld) -> Warehouse:
    return Warehouse.open(str(load(world.folder).warehouse))


def waiting(world: AuditedWorld) -> dict[str, WaitingPart]:
    return {part.id: part for part in world.open().status().waiting_parts}


def ticks_of_transfers(world: AuditedWorld) -> dict[str, list[Tick]]:
    """Return the ticks of each transfer's legs; which transaction is which leg is what the triggers wrote down."""
    log = warehouse(world).log
    ticks = {(one.source, one.identity): tick for tick, one in log.transactions(None, Tick(0), log.last_tick)}
    found = defaultdict(list)
    for bank in BANKS:
        for change in world.audited(bank):
            if change.old and change.new and change.old["transfer"] != change.new["transfer"]:
                found[str(change.new["transfer"])].append(ticks[bank, change.identity])
    return found


def assert_whole(world: AuditedWorld, spark: SparkSession) -> None:
    """Assert that every state is right, and that none shows half a transfer."""
    assert_exact(world, spark)
    history = observe(warehouse(world), spark, "both")
    state = history.start.copy()
    for tick in sorted(history.changes):
        for row, count in history.changes[tick].items():
            state[row] += count
        wrong = [row for row, count in state.items() if count and row[1] + row[2] != SUM]  # type: ignore[operator]
        assert not wrong, f"half a transfer at tick {tick}: {wrong}"


def wait_until(what: object) -> None:
    assert callable(what)
    deadline = time.monotonic() + 90
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.1)
