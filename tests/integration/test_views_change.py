"""Views come, change and go while writers write and the others go on; each is exact from its birth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from audited import PROBED, SOURCES, VIEWS, AuditedWorld, assert_exact, audited_world
from pyspark.sql import SparkSession
from running import running
from writers import busy_writers

from headwater.errors import HeadwaterError, UnsupportedView
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.observe.events import (
    BatchCommitted,
    BootstrapProgress,
    Event,
    SourceConnected,
    ViewBorn,
    ViewDropped,
)
from headwater.sources.embedded import EmbeddedServer
from headwater.views.steps.segments import Segment
from headwater.warehouse.query import Warehouse

CHANGED = VIEWS["probing"].replace("s.amount > 1", "s.amount > 3")
NARROW = "SELECT p.id, g.city FROM shop.products p JOIN geo.places g ON p.kind = g.city"


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.note_before()
        yield made


def test_views_are_added_changed_and_dropped_while_others_go_on(world: AuditedWorld, spark: SparkSession) -> None:
    settings = "[maintenance]\nbatch_ticks = 100\n[settings.batch]\nreplica_behind_rows = 5\n"  # as after a big batch
    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=0.6, seed=11)
    phases = (
        ({"kept": VIEWS["twins"], "probing": VIEWS["probing"], "narrow": NARROW}, PROBED),
        (
            {"kept": VIEWS["twins"], "probing": CHANGED, "narrow": NARROW, "mixed": VIEWS["mixed"]},
            PROBED,
        ),  # a wider copy
        ({"kept": VIEWS["twins"], "mixed": VIEWS["mixed"], "lately": VIEWS["lately"]}, ("shop.sales", "crm.visits")),
        ({"kept": VIEWS["twins"], "mixed": VIEWS["mixed"], "lately": VIEWS["lately"]}, (*PROBED, "shop.products")),
    )
    births = []
    for number, (views, probed) in enumerate(phases):
        world.write_project(views, probed=probed, settings=settings)
        with running(world, spark) as maintainer:
            if number == 0:
                maintainer.wait_until(lambda: len(maintainer.heard(SourceConnected)) == len(SOURCES))
                writers.start()
            expected = {0: 3, 1: 2, 2: 1, 3: 0}[number]
            maintainer.wait_until(lambda: len(maintainer.heard(ViewBorn)) >= expected)  # noqa: B023 - awaited here
            seen = len(maintainer.heard(BatchCommitted))
            maintainer.wait_until(lambda: len(maintainer.heard(BatchCommitted)) >= seen + 2)  # noqa: B023 - as above
        births.append(Warehouse.open(maintainer.path).view("kept").birth)
        dropped = {event.view for event in maintainer.heard(ViewDropped) if isinstance(event, ViewDropped)}
        assert dropped == ({"probing", "narrow"} if number == 2 else set())
    writers.finish(stop=True)
    world.open().run(until_idle=True)
    assert len(set(births)) == 1, "the view that was kept was never built anew"
    judgement = assert_exact(world, spark)
    assert set(judgement.verdicts) == {"kept", "mixed", "lately"}
    assert judgement.verdicts["kept"].states_checked > judgement.verdicts["lately"].states_checked
    with pytest.raises(HeadwaterError, match='there is no view "probing"'):
        world.open().view("probing").at(1).arrow()


@pytest.mark.thorough
def test_the_old_view_is_read_until_the_changed_one_is_there(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project({"probing": VIEWS["probing"], "lately": VIEWS["lately"]})
    world.open().run(until_idle=True)
    world.execute("shop", "UPDATE sales SET amount = amount + 1 WHERE no < 30")
    world.open().run(until_idle=True)
    before = world.open().view("probing").arrow().num_rows
    world.write_project({"probing": CHANGED})
    seen: list[tuple[Tick, str]] = []

    def look(event: Event) -> None:
        if isinstance(event, BootstrapProgress):
            warehouse = Warehouse.open(str(world.open().project.warehouse))
            seen.append((warehouse.frontier("probing"), warehouse.view("probing").sql))
            assert warehouse.view_dataframe(spark, "probing", seen[-1][0]).count() == before

    with running(world, spark, also=look) as maintainer:
        maintainer.wait_until(lambda: maintainer.heard(ViewBorn))
    assert set(seen) == {(Tick(1), VIEWS["probing"])}, "another view was dropped meanwhile; this one stood as it was"
    assert world.open().view("probing").arrow().num_rows < before
    assert_exact(world, spark)


def test_a_view_whose_steps_mean_something_else_is_refused_at_birth(
    world: AuditedWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps lose a row and nobody else is wrong: only comparing the two can notice."""
    right = Segment.whole_sql

    def wrong(segment: Segment, tables: Mapping[RelationName, str]) -> str:
        text = right(segment, tables)
        return f"SELECT * FROM ({text}) WHERE id <> 3" if segment.relation.column_names == ("id", "city") else text

    views = {"narrow": NARROW.replace("p.kind = g.city", "p.id = g.id"), "kept": VIEWS["twins"]}
    world.write_project(views)
    with monkeypatch.context() as broken:
        broken.setattr(Segment, "whole_sql", wrong)
        with pytest.raises(UnsupportedView, match="would not be maintained as its SQL says") as refused:
            world.open().run(until_idle=True)
        assert refused.value.code == "HW-251"
        assert "missing 1 × (3, " in refused.value.detail
        warehouse = Warehouse.open(str(world.open().project.warehouse))
        assert warehouse.view("kept").birth == Tick(0), "the others are born"
    world.open().run(until_idle=True)
    world.execute("shop", "UPDATE products SET kind = kind WHERE id < 5")
    assert world.open().check("narrow", steps=True).kept
    with monkeypatch.context() as broken:
        broken.setattr(Segment, "whole_sql", wrong)
        assert world.open().check("narrow").kept, "its rows are right"
        with pytest.raises(UnsupportedView, match="would not be maintained as its SQL says"):
            world.open().check("narrow", steps=True)
        world.write_project(views, settings="[views.narrow]\ncompare_at_birth = false\n")
        world.open().run(until_idle=True, rebuild=("narrow",))
    assert_exact(world, spark)
