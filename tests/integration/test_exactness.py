"""Every state of every view is the right one, while eight writers change three databases and probes are under way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from audited import VIEWS, AuditedWorld, assert_exact, assert_reads_agree, audited_world
from pyspark.sql import SparkSession
from recomputed import assert_spark_agrees
from volume import THOROUGH, volume
from writers import busy_writers

from headwater.engine.service.start import start_maintainer
from headwater.observe.events import BatchCommitted, Event, ProbeAnswered, SourceConnected, ViewBorn
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

TICKS = volume(1_000, 2_200)
BUDGET_SECONDS = 240


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def heard(events: list[Event], kind: type) -> list[Event]:
    return [event for event in list(events) if isinstance(event, kind)]


def wait_until(running: threading.Thread, what: Callable[[], object]) -> None:
    while not what():
        assert running.is_alive(), "the maintainer runs"
        time.sleep(0.02)


def test_every_tick_of_every_view_is_exact_while_sources_change(
    world: AuditedWorld, three_servers: dict[str, EmbeddedServer], spark: SparkSession
) -> None:
    world.write_project(VIEWS, settings="[maintenance]\nbatch_ticks = 500\n")
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, SourceConnected):
            world.note_before(event.source)  # writers began before the log did: what they did until now needs no tick

    maintainer = start_maintainer(spark, resolve_project(world.open().project, spark), listen)
    early = busy_writers(three_servers, world.database, transactions=TICKS // 6, seed=2)
    late = busy_writers(three_servers, world.database, transactions=100 * TICKS, pause_seconds=0.06)
    early.start()
    running = threading.Thread(target=maintainer.run, kwargs={"until_idle": False, "ticks": None})
    running.start()
    wait_until(running, lambda: heard(events, ViewBorn))
    late.start()  # so that batches are under way while they write, however slow the machine
    wait_until(running, lambda: maintainer.log.last_tick >= TICKS and len(heard(events, BatchCommitted)) >= 2)
    done = late.finish(stop=True) + early.finish()
    maintainer.stop()
    running.join(timeout=BUDGET_SECONDS)
    assert not running.is_alive()
    world.open(listen).run(until_idle=True)

    judgement = assert_exact(world, spark)
    assert_reads_agree(world, judgement, spark)
    if THOROUGH:
        assert assert_spark_agrees(world, spark, 2) >= len(VIEWS), "Spark's own opinion, at two ticks"
    assert {name for name, _ in judgement.verdicts.items()} == set(VIEWS)
    assert min(judgement.tick_count, done["committed"]) >= TICKS
    assert min(done["rolled back"], done["savepoints undone"], done["asynchronous"]) > 0
    batches = heard(events, BatchCommitted)
    corrected = {event.view for event in events if isinstance(event, ProbeAnswered) and event.corrected_row_count}
    assert {"probing", "twins"} <= corrected, "answers saw what was not due yet, and rebasing took it back"
    logging.getLogger(__name__).info(
        "%s ticks in %s batches, %s states of %s views, %s rows corrected by rebasing; writers: %s",
        judgement.tick_count,
        len(batches),
        sum(verdict.states_checked for verdict in judgement.verdicts.values()),
        len(judgement.verdicts),
        sum(event.corrected_row_count for event in events if isinstance(event, ProbeAnswered)),
        dict(done),
    )


def test_negative_zero_is_the_zero_that_it_equals(world: AuditedWorld, spark: SparkSession) -> None:
    """Answers see what is not due yet, and replicas have changes laid on top: both are netted by value."""
    same = "SELECT a.origin, b.target, a.km FROM geo.routes a JOIN geo.routes b ON a.km = b.km"
    asked = '[views.asked]\nmaintenance = "probe"\n'
    world.write_project({"copied": same, "asked": same}, settings=f"{asked}[maintenance]\nbatch_ticks = 1\n")
    world.execute("geo", "INSERT INTO routes VALUES (1, 2, '-0'), (1, 3, 0), (2, 1, '-0')")
    world.open().run(until_idle=True)
    world.note_before()
    world.execute("geo", "INSERT INTO routes VALUES (3, 4, 0)")
    world.execute("geo", "INSERT INTO routes VALUES (3, 3, '-0')")
    world.execute("geo", "UPDATE routes SET target = 5 WHERE km = 0 AND origin < 3")
    world.execute("geo", "DELETE FROM routes WHERE km = 0 AND target = 3")
    world.execute("geo", "UPDATE routes SET km = -km WHERE km = 0")
    world.open().run(until_idle=True)
    judgement = assert_exact(world, spark)
    warehouse = Warehouse.open(str(world.open().project.warehouse))
    assert [warehouse.frontier(view) for view in ("copied", "asked")] == [5, 5]
    assert_reads_agree(world, judgement, spark)
