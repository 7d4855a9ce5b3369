"""Sources of three kinds in one change log, over restarts: each transaction is there once, with what it did."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from delta_tables import DeltaTableWriter

from headwater.changelog import ChangeLog
from headwater.changelog.accept import Acceptor
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK, Column, Relation, RelationName
from headwater.project.slot_claims import claim_slots, take_slot
from headwater.sources.delta import DeltaSource
from headwater.sources.delta.lake import Lake
from headwater.sources.polled import PolledSource
from headwater.sources.polled.sqlite import SqlitePlace
from headwater.sources.scripted import ScriptedDatabase, ScriptedSource
from headwater.sources.source import Source, shown_positions
from headwater.warehouse.source_memory import SourceFiles

SALES = RelationName(source="shop", name="sales")
ITEMS = RelationName(source="lake", name="items")
CLERKS = RelationName(source="crm", name="clerks")


def sources(folder: Path, shop: ScriptedDatabase) -> dict[RelationName, Source]:
    """Return the sources as a new process has them."""
    place = SqlitePlace.at(f"sqlite:///{folder / 'crm.db'}", "crm", 1.0)
    return {
        SALES: ScriptedSource("shop", database=shop),
        ITEMS: DeltaSource("lake", Lake.at(f"delta:{folder / 'lake'}", "lake")),
        CLERKS: PolledSource("crm", place, poll_seconds=3600, files=SourceFiles(str(folder / "warehouse"), "crm")),
    }


def follow(folder: Path, shop: ScriptedDatabase) -> ChangeLog:
    """Follow all sources until everything that they show is in the log."""
    address = str(folder / "warehouse" / "log")
    log = ChangeLog.open(address) if ChangeLog.exists(address) else ChangeLog.create(address)
    asked = sources(folder, shop)
    by_name = {one.name: one for one in asked.values()}
    relations = {name: source.inspect([name]).relations for name, source in asked.items()}
    log.declare([relation for found in relations.values() for relation in found])
    claims = claim_slots(log, by_name, ())
    acceptor = Acceptor(log, lambda _: None, lambda capture: capture)
    acceptor.start()
    try:
        for name, source in asked.items():
            take_slot(claims[source.name], source, [name], log)
            acceptor.follow(source, relations[name])
        for name, source in asked.items():
            assert acceptor.wait_for(shown_positions(source, [name]), 60.0), f"{name}: {acceptor.raise_error()}"
        acceptor.raise_error()
    finally:
        acceptor.stop()
    return log


def test_three_kinds_over_restarts(tmp_path: Path) -> None:
    columns = (Column(name="id", type="bigint", native="int8"),)
    shop = ScriptedDatabase((Relation(name=SALES, columns=columns, key=("id",)),), tells_from_start=False)
    items = DeltaTableWriter(tmp_path / "lake" / "items", (("id", "bigint"),)).create()
    crm = sqlite3.connect(tmp_path / "crm.db", isolation_level=None)
    crm.execute("CREATE TABLE clerks (id INTEGER)")
    follow(tmp_path, shop)
    told: dict[RelationName, list[Counter[Any]]] = {SALES: [], ITEMS: [], CLERKS: []}
    for number in range(1, 6):
        shop.commit({SALES: {(number,): 1}})
        told[SALES].append(Counter({(number,): 1}))
        changes = {(number,): 2, **({(number - 1,): -1} if number > 1 else {})}
        items.apply(changes)
        items.optimize()
        told[ITEMS].append(Counter(changes))
        if number != 3:
            crm.executemany("INSERT INTO clerks VALUES (?)", [(number,), (number,), (None,)])
            crm.execute("DELETE FROM clerks WHERE id = ?", [number - 1])
            gone = {(number - 1,): -2} if number not in (1, 4) else {}
            told[CLERKS].append(Counter({(number,): 2, (None,): 1, **gone}))
        log = follow(tmp_path, shop)
    told[CLERKS][-2:] = [Counter({(4,): 2, (None,): 1}), Counter({(5,): 2, (None,): 1, (4,): -2})]
    last = log.last_tick
    assert last == 5 + 5 + 4, "neither OPTIMIZE nor a poll without a difference is a transaction"
    for name, expected in told.items():
        changes_by_tick: dict[int, Counter[Any]] = {}
        for row in log.rows(name, ("id",), Tick(0), last).to_pylist():
            changes_by_tick.setdefault(row[TICK], Counter())[(row["id"],)] += row[COUNT]
        assert [changes_by_tick[tick] for tick in sorted(changes_by_tick)] == expected
