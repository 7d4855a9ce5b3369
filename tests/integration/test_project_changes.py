"""A project is edited while it runs: what can be taken up is, what cannot is told once, and the others go on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from audited import VIEWS, AuditedWorld, assert_exact, audited_world
from pyspark.sql import SparkSession
from running import Beside

from headwater.engine.service.project_run import ProjectRun
from headwater.observe.events import Event, ProjectChanged, ProjectRefused, ViewBorn, ViewDropped
from headwater.project.plan import Consent
from headwater.project.plan_result import RunEnd
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

CHANGED = VIEWS["probing"].replace("s.amount > 1", "s.amount > 3")


class Editing(Beside):
    """A project that runs while it is edited."""

    def __init__(self, world: AuditedWorld, spark: SparkSession) -> None:
        events: list[Event] = []
        going = ProjectRun(spark, world.open().project, events.append)
        run = partial(going.run, until_idle=False, ticks=None, rebuild=(), consent=Consent.of(yes=True))
        super().__init__(str(world.open().project.warehouse), events, run, going.stop)

    def born(self) -> list[str]:
        return [event.view for event in self.heard(ViewBorn) if isinstance(event, ViewBorn)]


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.note_before()
        made.write_project({"probing": VIEWS["probing"], "replicated": VIEWS["replicated"]})
        yield made


def test_a_project_is_edited_while_it_runs(world: AuditedWorld, spark: SparkSession) -> None:
    editing = Editing(world, spark)
    try:
        editing.wait_until(lambda: len(editing.born()) == 2)
        birth = Warehouse.open(editing.path).view("replicated").birth

        (world.folder / "views" / "lately.sql").write_text("SELECT s.no, s.colour FROM shop.sales s")
        editing.wait_until(lambda: editing.heard(ProjectRefused))
        world.execute("geo", "UPDATE places SET label = label || '!' WHERE id < 4")
        editing.wait_until(lambda: editing.frontier("replicated") >= 1)  # what ran goes on
        (world.folder / "headwater.toml").write_text("[project]\nname = ")
        editing.wait_until(lambda: len(editing.heard(ProjectRefused)) == 2)
        [colour, toml] = [event.error for event in editing.heard(ProjectRefused) if isinstance(event, ProjectRefused)]
        assert "colour" in str(colour)
        assert colour.hint
        assert colour.code != toml.code
        assert not editing.heard(ProjectChanged)

        world.write_project({"probing": CHANGED, "replicated": VIEWS["replicated"], "lately": VIEWS["lately"]})
        editing.wait_until(lambda: sorted(editing.born()) == ["lately", "probing", "probing", "replicated"])
        [taken] = [event for event in editing.heard(ProjectChanged) if isinstance(event, ProjectChanged)]
        assert set(taken.steps) >= {"create view lately", "change view probing"}
        world.execute("shop", "UPDATE sales SET amount = amount + 1 WHERE no < 9")
        editing.wait_until(lambda: editing.frontier("lately") >= 2)

        world.write_project({"probing": CHANGED, "replicated": VIEWS["replicated"]})
        editing.wait_until(lambda: editing.heard(ViewDropped))
        world.execute("shop", "UPDATE sales SET amount = amount + 1 WHERE no < 9")
        editing.wait_until(lambda: editing.frontier("probing") >= 3)
    finally:
        editing.stop()
    assert editing.result is not None
    assert editing.result.ended is RunEnd.INTERRUPTED
    assert len(editing.heard(ProjectRefused)) == 2, "told once each"
    assert Warehouse.open(editing.path).view("replicated").birth == birth, "it never noticed"
    judgement = assert_exact(world, spark)
    assert set(judgement.verdicts) == {"probing", "replicated"}
