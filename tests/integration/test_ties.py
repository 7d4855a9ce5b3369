"""Views that leave an order open, live: one answer at birth, in batches, in `check`, and by the judge's DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from audited import AuditedWorld, assert_exact, audited_world
from pyspark.sql import SparkSession
from writers import write

from headwater.model.guarantee import Guarantee
from headwater.project.file import load
from headwater.project.plan import Kept, make_plan
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

NEWEST = """
    SELECT id, at, val FROM (
        SELECT e.id, e.at, e.val, row_number() OVER (PARTITION BY e.id ORDER BY e.at DESC) AS rn FROM crm.e
    ) AS q WHERE rn = 1
"""
VIEWS = {
    "newest": NEWEST,
    "first_e": "SELECT e.val FROM crm.e ORDER BY e.at LIMIT 1",
}
AUDITED = {
    "last_visit": """
        SELECT customer, place FROM (
            SELECT v.customer, v.place, row_number() OVER (PARTITION BY v.customer ORDER BY v.at DESC) AS rn
            FROM crm.visits v
        ) AS q WHERE rn = 1
    """,
    "some_visits": "SELECT v.customer, v.at FROM crm.visits v ORDER BY v.at DESC LIMIT 5",
    "before": """
        SELECT v.customer, v.place, lag(v.place) OVER w AS before,
            sum(v.place) OVER (PARTITION BY v.customer ORDER BY v.at ROWS 1 PRECEDING) AS two
        FROM crm.visits v WINDOW w AS (PARTITION BY v.customer ORDER BY v.at)
    """,
    "ends": """
        SELECT v.customer, v.at, first_value(v.place) OVER (PARTITION BY v.customer ORDER BY v.at) AS first,
            last_value(v.place) OVER (PARTITION BY v.customer ORDER BY v.at) AS last
        FROM crm.visits v
    """,
}


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def test_ties_are_broken_alike_at_birth_in_batches_and_by_every_judge(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project(AUDITED, settings="[maintenance]\nbatch_ticks = 30\n")
    world.open().run(until_idle=True)
    world.note_before()
    write(dict(world.servers), world.database, transactions=120, seed=14)
    world.open().run(until_idle=True)
    judgement = assert_exact(world, spark)
    assert set(judgement.verdicts) == set(AUDITED)
    checked = world.open().check(ticks=3)
    assert {one.verdict.guarantee for one in checked.views} == {Guarantee.COMPLETE}


def test_the_newest_row_is_another_once_it_is_deleted(world: AuditedWorld, spark: SparkSession) -> None:
    world.execute("crm", "CREATE TABLE e (id int, at date, val text)")
    world.execute("crm", "ALTER TABLE e REPLICA IDENTITY FULL")
    world.execute("crm", "INSERT INTO e VALUES (1, '2024-01-01', 'zed'), (1, '2024-01-01', 'amy')")
    world.write_project(VIEWS)
    shown = []
    for change in ("", "INSERT INTO e VALUES (1, '2024-01-01', 'bob')", "DELETE FROM e WHERE val IN ('zed', 'amy')"):
        if change:
            world.execute("crm", change)
        session = world.open()
        session.run(until_idle=True)
        shown.append([session.query(f"SELECT val FROM {name}").table["val"].to_pylist() for name in VIEWS])
    assert shown == [[["amy"], ["amy"]], [["amy"], ["amy"]], [["bob"], ["bob"]]]
    checked = world.open().check()
    assert [one.verdict.guarantee for one in checked.views] == [Guarantee.COMPLETE, Guarantee.COMPLETE]

    project = load(world.folder)
    resolved = resolve_project(project, spark)
    entries = Warehouse.open(project.warehouse).catalog().views
    old = {name: replace(entry, completed="") for name, entry in entries.items()}  # as an older version wrote them
    plan = make_plan(resolved, Kept(views=old, replicas={}))
    assert set(plan.changed) == set(VIEWS)
    assert plan.reasons["newest"] == "its SQL leaves an order open, which all columns of the row complete now"
    assert make_plan(resolved, Kept(views=entries, replicas={})).changed == ()
