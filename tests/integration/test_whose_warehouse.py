"""A warehouse belongs to one project, and what can be read of its views is deleted only if somebody agrees."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from running import Beside

from headwater.api.session import Headwater, open_project
from headwater.engine.service.project_run import ProjectRun
from headwater.errors import ConfirmationNeeded, HeadwaterError
from headwater.model.position import Tick
from headwater.observe.events import Event, ProjectRefused, ViewBorn, ViewDropped, WarehouseAdopted
from headwater.project.plan import Consent
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

ALL = {"a": "SELECT s.no FROM shop.sales s", "b": "SELECT s.no, s.amount FROM shop.sales s"}


@dataclass(frozen=True)
class Shop:
    """A database with one table, and projects over it that say they have the same warehouse."""

    server: EmbeddedServer
    database: str
    folder: Path

    @property
    def warehouse(self) -> str:
        return str(self.folder / "kept")

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        return self.server.execute(sql, database=self.database)

    def project(self, name: str, views: dict[str, str], heard: list[Event] | None = None) -> Headwater:
        folder = self.folder / name
        (folder / "views").mkdir(parents=True, exist_ok=True)
        (folder / "headwater.toml").write_text(
            f'[project]\nname = "{name}"\n[warehouse]\npath = "{self.warehouse}"\n'
            '[sources.shop]\nurl = "${SHOP_HW}"\n'
        )
        for old in (folder / "views").glob("*.sql"):
            old.unlink()
        for view, sql in views.items():
            (folder / "views" / f"{view}.sql").write_text(sql)
        os.environ["SHOP_HW"] = self.server.url(self.database)
        return open_project(folder, listener=([] if heard is None else heard).append)

    def kept(self) -> tuple[object, ...]:
        """Return what a verb that was refused must not have changed."""
        files = sorted(str(file) for file in Path(self.warehouse).glob("*"))
        warehouse = Warehouse.open(self.warehouse)
        return warehouse.head(), sorted(warehouse.catalog().views), warehouse.log.last_tick, files


@pytest.fixture
def shop(postgres_server: EmbeddedServer, postgres_database: Callable[[], str], tmp_path: Path) -> Iterator[Shop]:
    made = Shop(postgres_server, postgres_database(), tmp_path)
    made.execute(
        "CREATE TABLE sales (no int PRIMARY KEY, amount int NOT NULL); INSERT INTO sales VALUES (1, 1), (2, 5)"
    )
    yield made
    for folder in made.folder.glob("*/headwater.toml"):
        (Path(made.warehouse) / "project.json").unlink(missing_ok=True)
        open_project(folder.parent).teardown()


def with_history(shop: Shop) -> None:
    """Fill the warehouse, and let it have two states."""
    shop.project("ours", ALL).run(until_idle=True)
    shop.execute("INSERT INTO sales SELECT max(no) + 1, 7 FROM sales")
    shop.project("ours", ALL).run(until_idle=True)


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(HeadwaterError) as refused:
        act()
    return refused.value.code


def test_another_project_is_refused(shop: Shop, spark: SparkSession) -> None:
    del spark
    with_history(shop)
    before = shop.kept()
    theirs = shop.project("theirs", {"m": ALL["a"]})
    verbs: list[Callable[[], object]] = [
        theirs.plan,
        partial(theirs.run, until_idle=True, yes=True),
        theirs.status,
        partial(theirs.query, "SELECT * FROM a"),
        partial(theirs.history, "a"),
        partial(theirs.check, "m"),
        partial(theirs.refresh, "m"),
        partial(theirs.trace, "m"),
        theirs.teardown,
    ]
    assert [refusal(verb) for verb in verbs] == ["HW-431"] * len(verbs)
    assert shop.kept() == before
    assert shop.execute("SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE '%theirs%'") == [(0,)]

    (Path(shop.warehouse) / "project.json").unlink()  # as it was made before warehouses knew their project
    unnamed = shop.kept()
    assert refusal(partial(theirs.run, until_idle=True)) == "HW-156"
    assert shop.kept() == unnamed, "a refused run adopts nothing"
    heard: list[Event] = []
    shop.project("ours", ALL, heard).run(until_idle=True)
    shop.project("ours", ALL, heard).run(until_idle=True)
    assert [event for event in heard if isinstance(event, WarehouseAdopted)] == [
        WarehouseAdopted(project="ours", warehouse=shop.warehouse)
    ]
    assert refusal(theirs.plan) == "HW-431"


def test_history_is_deleted_only_by_agreement(shop: Shop, spark: SparkSession) -> None:
    del spark
    shop.project("ours", ALL).run(until_idle=True)
    shop.project("ours", {"a": ALL["a"]}).run(until_idle=True)  # one state of "b": nothing is lost that is not there
    with_history(shop)
    before = shop.kept()
    for views, lost in (
        ({"a": ALL["a"]}, ("b",)),
        ({"a": ALL["a"], "b": ALL["b"] + " WHERE s.amount > 1"}, ("b",)),
        ({}, ("a", "b")),
    ):
        changed = shop.project("ours", {**views, "c": ALL["a"]})
        with pytest.raises(ConfirmationNeeded) as refused:
            changed.run(until_idle=True)
        assert (refused.value.code, refused.value.views, changed.plan().lost_history) == ("HW-156", lost, lost)
        assert refusal(partial(changed.refresh, "c")) in ("HW-156", "HW-416")
        assert shop.kept() == before
    assert not shop.project("ours", ALL).plan(rebuild=("a",)).lost_history, "it was asked for by name"
    with pytest.raises(ConfirmationNeeded):
        shop.project("ours", {"c": ALL["a"]}).run(until_idle=True, yes=("a",))
    shop.project("ours", {"c": ALL["a"]}).run(until_idle=True, yes=("a", "b"))
    assert list(Warehouse.open(shop.warehouse).catalog().views) == ["c"]


@pytest.mark.parametrize("agreed", [False, True])
def test_a_view_is_removed_while_the_project_runs(shop: Shop, spark: SparkSession, agreed: bool) -> None:
    with_history(shop)
    heard: list[Event] = []
    going = ProjectRun(spark, shop.project("ours", ALL).project, heard.append)
    run = partial(going.run, until_idle=False, ticks=None, rebuild=(), consent=Consent.of(yes=agreed))
    beside = Beside(shop.warehouse, heard, run, going.stop)
    try:
        shop.project("ours", {"a": ALL["a"], "c": ALL["a"]})
        beside.wait_until(lambda: beside.heard(ViewDropped if agreed else ProjectRefused))
        if agreed:
            beside.wait_until(lambda: beside.heard(ViewBorn))
        else:
            shop.execute("INSERT INTO sales VALUES (90, 1)")
            beside.wait_until(lambda: beside.frontier("b") >= Tick(2))  # what ran goes on, and it is told once
            [told] = beside.heard(ProjectRefused)
            assert isinstance(told, ProjectRefused)
            assert told.error.code == "HW-156"
            shop.project("ours", {**ALL, "c": ALL["a"]})
            beside.wait_until(lambda: beside.heard(ViewBorn))
    finally:
        beside.stop()
    assert sorted(Warehouse.open(shop.warehouse).catalog().views) == (["a", "c"] if agreed else ["a", "b", "c"])
