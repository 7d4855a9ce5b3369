"""Views of two levels without group tables: exact at every tick, from replicas and by asking, and after `kill -9`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from audited import AuditedWorld, assert_exact, audited_world
from pyspark.sql import SparkSession
from running import running
from test_kept_lineage import found
from test_kill import Killable
from volume import THOROUGH, volume
from writers import busy_writers, write

from headwater.deltas.lookup import Origin
from headwater.observe.events import BatchCommitted, Event, ProbeAnswered, SourceConnected, ViewBorn
from headwater.project.file import load
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

TICKS = volume(40, 500)
BATCH = "[maintenance]\nbatch_ticks = 150\n"
SQL = """
    SELECT c.city, q.paid, q.sold, v.visits
    FROM (SELECT s.customer, SUM(s.amount * p.price) AS paid, COUNT(*) AS sold
          FROM shop.sales s JOIN shop.products p ON p.id = s.product WHERE s.amount > 1 GROUP BY s.customer) AS q
    JOIN (SELECT w.customer, COUNT(*) AS visits FROM crm.visits w GROUP BY w.customer) AS v ON v.customer = q.customer
    JOIN crm.customers c ON c.id = q.customer
    WHERE q.paid > v.visits
"""
EXTREMES = """
    SELECT s.customer, MIN(p.price) AS lowest, COUNT(DISTINCT p.kind) AS kinds
    FROM shop.sales s JOIN shop.products p ON p.id = s.product GROUP BY s.customer
"""
OTHERS = """
    SELECT c.id, c.city FROM crm.customers c WHERE NOT EXISTS (SELECT 1 FROM crm.visits v WHERE v.customer = c.id)
"""
VIEWS = {
    "kept": SQL,
    "copied": SQL,
    "asking": SQL.replace("s.amount > 1", "s.amount > 0"),
    "extremes": EXTREMES,
    "deciding": SQL.replace("s.amount > 1", "s.amount > 2"),
    "at_once": SQL,
    "others": OTHERS,
}
"""What `kept` and `copied` have in common is computed once; the others have segments of their own."""
WITHOUT = {
    "copied": "",
    "asking": 'maintenance = "probe"\n',
    "extremes": 'maintenance = "probe"\n',
    "deciding": 'maintenance = "runtime"\n',
    "at_once": 'guarantee = "strong"\n',
    "others": "",
}
QUICK = ("kept", "copied", "asking")


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def settings(views: Collection[str]) -> str:
    """Return what lets all views but the first do without group tables."""
    return "".join(f'[views.{name}]\ngroup_tables = "none"\n{more}' for name, more in WITHOUT.items() if name in views)


def auxiliary_tables(world: AuditedWorld) -> dict[str, tuple[str, ...]]:
    """Return the auxiliary tables of every view."""
    catalog = Warehouse.open(str(load(world.folder).warehouse)).catalog()
    return {name: entry.segments for name, entry in catalog.views.items()}


@pytest.mark.thorough
def test_every_tick_is_exact_without_group_tables_while_sources_change(
    world: AuditedWorld, spark: SparkSession
) -> None:
    views = VIEWS if THOROUGH else {name: VIEWS[name] for name in QUICK}
    world.write_project(views, probed=(), settings=BATCH + settings(views))
    heard: list[Event] = []

    def listen(event: Event) -> None:
        heard.append(event)
        if isinstance(event, SourceConnected):
            world.note_before(event.source)

    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=0.5, seed=33)
    with running(world, spark, listen) as maintainer:
        maintainer.wait_until(lambda: maintainer.heard(ViewBorn))
        writers.start()
        maintainer.wait_until(
            lambda: maintainer.maintainer.log.last_tick >= TICKS and len(maintainer.heard(BatchCommitted)) > 1
        )
        writers.finish(stop=True)
    world.open().run(until_idle=True)
    assert assert_exact(world, spark).tick_count >= TICKS
    tables = auxiliary_tables(world)
    assert len(tables["kept"]) == 2
    assert [name for name in WITHOUT if tables.get(name)] == [], "nothing is kept beside the views"
    asked = {(event.view, str(event.relation)) for event in heard if isinstance(event, ProbeAnswered)}
    assert {("asking", "shop.sales"), ("asking", "crm.visits")} <= asked, "the operands of touched groups"
    assert not [view for view, _ in asked if view in ("kept", "copied", "others")], "they read replicas"

    project = world.open()
    traces = {name: project.trace(name) for name in ("kept", "copied")}
    assert found(traces["copied"]) == found(traces["kept"])
    assert {one.origin for one in traces["kept"].tree} == {Origin.AUXILIARY_TABLE, Origin.REPLICA}
    assert {one.origin for one in traces["copied"].tree} == {Origin.COMPUTED, Origin.REPLICA}
    told = {name: project.explain(name) for name in ("kept", "asking")}
    kept = [[one["kept"] for one in one.data["segments"] if one["step"] == "group"] for one in told.values()]
    assert kept == [["auxiliary table"] * 2, ["computed"] * 2]
    assert "computed from its operands" in told["asking"].text


def test_killed_and_going_on_without_group_tables(world: AuditedWorld, spark: SparkSession) -> None:
    views = {name: VIEWS[name] for name in ("copied", "asking")}
    world.write_project(views, probed=(), settings="[maintenance]\nbatch_ticks = 20\n" + settings(views))
    world.open().run(until_idle=True)
    world.note_before()
    killable = Killable(world, spark)
    try:
        write(dict(world.servers), world.database, transactions=60, seed=8)
        killable.start("after changes append")
        assert killable.wait_for("ended") == "ended -9"
    finally:
        killable.close()
    world.open().run(until_idle=True)
    assert assert_exact(world, spark).tick_count > 30


@pytest.mark.thorough
def test_a_choice_that_is_changed_builds_the_view_anew(world: AuditedWorld, spark: SparkSession) -> None:
    """None, then one of two, then none beside a lineage view, from which old groups are computed."""
    world.write_project({"copied": SQL}, probed=(), settings=BATCH)
    world.open().run(until_idle=True)
    world.note_before()
    one, _ = (name.partition("/")[0] for name in auxiliary_tables(world)["copied"])
    segments = world.open().explain("copied").data["segments"]
    assert isinstance(segments, list)
    [join] = (told["name"] for told in segments if told["step"] == "join" and "shop.sales" in told["inputs"])
    for seed, (said, kept) in enumerate(
        {
            'group_tables = "none"': [],
            f'group_tables = ["{one}"]': [one],
            f'group_tables = "none"\nkeep = ["lineage:{join}"]': ["lineage"],
        }.items()
    ):
        world.write_project({"copied": SQL}, probed=(), settings=f"{BATCH}[views.copied]\n{said}\n")
        assert "copied" in {step.name for step in world.open().plan().changes}
        world.open().run(until_idle=True, yes=True)
        write(dict(world.servers), world.database, transactions=25, seed=seed)
        world.open().run(until_idle=True)
        assert_exact(world, spark)
        found_now = [name.partition("/")[0] for name in auxiliary_tables(world)["copied"]]
        assert [name for name in found_now if not name.startswith(tuple(kept) or "none")] == []
        assert len(found_now) == len(kept)
