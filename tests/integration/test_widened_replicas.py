"""Replicas hold the rows and columns that their views need, and are widened by reading just what lacks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import AuditedWorld, assert_exact, audited_world
from pyspark.sql import SparkSession
from running import running
from writers import busy_writers

from headwater.deltas.lookup import Origin
from headwater.engine.bootstrap import bootstrap as bootstrap_module
from headwater.explain.costs import explain_cost
from headwater.observe.events import (
    BatchCommitted,
    BootstrapProgress,
    Event,
    SourceConnected,
    TransactionsAccepted,
    ViewBorn,
)
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

DEAR = """
    SELECT s.no, s.amount, p.id, p.kind, p.price FROM shop.sales s JOIN shop.products p ON s.product = p.id
    WHERE p.kind < 3 AND s.amount > 5
"""
TWICE = """
    SELECT p.id, q.id AS other, q.price FROM shop.products p JOIN shop.products q ON p.kind = q.kind AND p.id < q.id
    WHERE p.kind IN (2, 4) AND q.kind < 5 AND q.kind > 1
"""
BUYERS = "SELECT s.no, s.customer FROM shop.sales s WHERE s.amount > 5"
SOLD = "SELECT s.no, p.divisor FROM shop.sales s JOIN shop.products p ON s.product = p.id WHERE s.amount < 3"
KINDS = "SELECT p.kind, COUNT(*) AS n FROM shop.products p GROUP BY p.kind"


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.note_before()
        yield made


def held(world: AuditedWorld) -> dict[str, tuple[str, str]]:
    """Return the columns and rows that replicas hold."""
    replicas = Warehouse.open(str(world.open().project.warehouse)).catalog().replicas
    return {str(name): (" ".join(one.columns), str(one.rows)) for name, one in replicas.items()}


def count(world: AuditedWorld, table: str, condition: str) -> int:
    [[found]] = world.execute("shop", f"SELECT count(*) FROM {table} WHERE {condition}")
    assert isinstance(found, int)
    return found


def run(world: AuditedWorld) -> dict[str, int]:
    """Run until idle, and return how many rows of which relations were read for it."""
    heard: list[Event] = []
    world.open(heard.append).run(until_idle=True, yes=True)
    return {str(one.relation): one.rows_read for one in heard if isinstance(one, BootstrapProgress) and one.finished}


def planned(world: AuditedWorld) -> list[tuple[str, str, str]]:
    steps = world.open().plan().steps
    return sorted((one.action.value, one.name, one.reason) for one in steps if one.subject.value == "replica")


def test_explain_knows_how_many_rows_a_view_selects(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project({"dear": DEAR}, probed=())
    world.execute("shop", "ANALYZE")
    unread = explain_cost(resolve_project(world.open().project, spark), "dear")
    assert unread.selected == unread.cost.whole
    run(world)
    told = explain_cost(resolve_project(world.open().project, spark), "dear")
    assert told.selected == count(world, "products", "kind < 3") + count(world, "sales", "amount > 5")
    assert told.selected < told.cost.whole


@pytest.mark.thorough
def test_what_lacks_is_read_and_nothing_else(world: AuditedWorld, spark: SparkSession) -> None:
    views = {"dear": DEAR}
    world.write_project(views, probed=())
    assert planned(world) == [
        ("bootstrap", "shop.products", "copy id, kind, price of rows with kind < 3"),
        ("bootstrap", "shop.sales", "copy no, product, amount of rows with amount > 5"),
    ]
    assert run(world) == {
        "shop.products": count(world, "products", "kind < 3"),
        "shop.sales": count(world, "sales", "amount > 5"),
    }
    first = {"shop.products": ("id kind price", "kind < 3"), "shop.sales": ("no product amount", "amount > 5")}
    assert held(world) == first
    assert "3 of 4 columns, rows with kind < 3" in world.open().explain("dear").text
    for change in (
        "UPDATE products SET kind = 4 WHERE kind = 1 AND id < 8",
        "UPDATE products SET kind = 1 WHERE kind = 5",
        "DELETE FROM products WHERE kind IS NULL",
        "UPDATE sales SET amount = 9 - amount",
        "DELETE FROM sales WHERE amount = 1",
    ):
        world.execute("shop", change)

    views["twice"] = TWICE
    world.write_project(views, probed=())
    lacks = "kind < 3, or kind > 1 and kind < 5; without: kind < 3"
    assert planned(world) == [("widen", "shop.products", f"read rows with {lacks}")]
    assert run(world) == {"shop.products": count(world, "products", "kind IN (3, 4)")}
    world.execute("shop", "UPDATE products SET kind = kind + 1, price = price + 1 WHERE id > 10")
    world.execute("shop", "INSERT INTO products VALUES (700, 1, 1, 1), (701, 5, 1, 1); TRUNCATE products")
    world.execute("shop", "INSERT INTO products SELECT g, nullif(g % 6, 0), g, 1 FROM generate_series(1, 25) g")
    assert run(world) == {}

    views["buyers"] = BUYERS
    world.write_project(views, probed=())
    assert planned(world) == [("widen", "shop.sales", "read no, customer, amount of rows with amount > 5")]
    assert run(world) == {"shop.sales": count(world, "sales", "amount > 5")}
    assert held(world)["shop.sales"] == ("no customer product amount", "amount > 5")

    views["kinds"] = KINDS
    world.write_project(views, probed=())
    outside = count(world, "products", "(kind < 5) IS NOT TRUE")
    assert 0 < outside < count(world, "products", "true")
    assert run(world) == {"shop.products": outside}
    assert held(world)["shop.products"] == ("id kind price", "all rows")
    world.execute("shop", "UPDATE products SET kind = nullif(kind % 5, 0) WHERE id > 5")
    assert run(world) == {}
    judgement = assert_exact(world, spark)
    assert {name: verdict.states_checked > 1 for name, verdict in judgement.verdicts.items()} == dict.fromkeys(
        views, True
    )


@pytest.mark.thorough
def test_who_needs_rows_that_are_not_held_asks_the_source(world: AuditedWorld) -> None:
    world.write_project({"dear": DEAR}, probed=())
    run(world)
    project = world.open()
    [[small], [big]] = [
        world.execute("shop", f"SELECT min(no) FROM sales s JOIN products p ON s.product = p.id WHERE {condition}")[0]
        for condition in ("kind < 3 AND amount = 2", "kind < 3 AND amount > 5")
    ]
    traced = project.trace("dear", where=f"no = {big}").relations
    assert [(one.relation, one.origin, one.rows.num_rows) for one in sorted(traced, key=lambda one: one.relation)] == [
        ("shop.products", Origin.REPLICA, 1),
        ("shop.sales", Origin.REPLICA, 1),
    ]
    [obstacle] = project.why_not("dear", f"no = {small}").obstacles
    assert obstacle.text == "not true: sales.amount > 5 (with sales.amount = 2)"
    [impact] = project.row_impact("shop.sales", f"no = {small}").views
    assert (impact.of.num_rows, impact.rows.num_rows) == (1, 0), "it is there, and nothing derives from it"
    assert all(view.verdict.guarantee.value == "complete" for view in project.check().views)


@pytest.mark.thorough
def test_a_view_that_asks_is_born_beside_replicas_that_lack_what_it_needs(
    world: AuditedWorld, spark: SparkSession
) -> None:
    world.write_project({"dear": DEAR}, probed=())
    run(world)
    before = held(world)
    world.write_project({"dear": DEAR, "sold": SOLD}, probed=(), settings='[views.sold]\nmaintenance = "probe"\n')
    assert planned(world) == [], "its relations are read once, and no copy is kept"
    assert run(world) == {
        "shop.products": count(world, "products", "true"),
        "shop.sales": count(world, "sales", "amount < 3"),
    }
    assert held(world) == before
    world.execute("shop", "UPDATE products SET divisor = divisor + 1, kind = nullif(kind - 1, 0)")
    world.execute("shop", "UPDATE sales SET amount = 9 - amount")
    run(world)
    assert_exact(world, spark)


@pytest.mark.thorough
def test_a_relation_truncated_while_its_replica_is_widened(
    world: AuditedWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The truncate is told by what the old replica held: the wider one, of a tick before, would keep the rest."""
    world.write_project({"dear": DEAR}, probed=())
    run(world)
    heard: list[Event] = []

    def truncate(where: str) -> None:
        if where == "replicas written" and not any(isinstance(one, TransactionsAccepted) for one in heard):
            world.execute("shop", "TRUNCATE products")
            while not any(isinstance(one, TransactionsAccepted) for one in heard):
                time.sleep(0.01)

    monkeypatch.setattr(bootstrap_module, "reach", truncate)
    world.write_project({"dear": DEAR, "kinds": KINDS}, probed=())
    world.open(heard.append).run(until_idle=True)
    assert any(isinstance(one, TransactionsAccepted) for one in heard), "it was truncated"
    world.execute("shop", "INSERT INTO products VALUES (1, 1, 2.5, 1), (2, 5, 2.5, 1)")
    run(world)
    assert_exact(world, spark)


def test_replicas_are_widened_while_writers_write(world: AuditedWorld, spark: SparkSession) -> None:
    settings = "[maintenance]\nbatch_ticks = 100\n[settings.batch]\nreplica_behind_rows = 3\n"  # as after a big batch
    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=0.5, seed=21)
    views: dict[str, str] = {}
    for added in ({"dear": DEAR}, {"twice": TWICE}, {"buyers": BUYERS}, {"kinds": KINDS}):
        views |= added
        world.write_project(views, probed=(), settings=settings)
        with running(world, spark) as maintainer:
            if len(views) == 1:
                maintainer.wait_until(lambda: maintainer.heard(SourceConnected))
                writers.start()
            maintainer.wait_until(lambda: maintainer.heard(ViewBorn))
            seen = len(maintainer.heard(BatchCommitted))
            maintainer.wait_until(lambda: len(maintainer.heard(BatchCommitted)) >= seen + 2)  # noqa: B023 - awaited here
            read = {str(one.relation) for one in maintainer.heard(BootstrapProgress)}
        assert read == {"dear": {"shop.products", "shop.sales"}, "buyers": {"shop.sales"}}.get(
            next(iter(added)), {"shop.products"}
        )
    writers.finish(stop=True)
    world.open().run(until_idle=True)
    births = {name: Warehouse.open(str(world.open().project.warehouse)).view(name).birth for name in views}
    assert sorted(births.values()) == list(births.values())
    assert len(set(births.values())) == len(views), "each was born while the others went on"
    assert held(world) == {
        "shop.products": ("id kind price", "all rows"),
        "shop.sales": ("no customer product amount", "amount > 5"),
    }
    assert_exact(world, spark)
