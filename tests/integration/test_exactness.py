"""Every state of every view is the right one, while eight writers change three databases and probes are under way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from audited import VIEWS, AuditedWorld, assert_exact, assert_reads_agree, audited_world
from pyspark.sql import SparkSession
from writers import busy_writers

from headwater.runtime.events import BatchCommitted, Event, ProbeAnswered, SourceConnected, ViewBorn
from headwater.runtime.start import start_maintainer
from headwater.runtime.understand import understand
from headwater.sources.embedded import EmbeddedServer

TRANSACTIONS = 2_500
BUDGET_SECONDS = 240


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def test_every_tick_of_every_view_is_exact_while_sources_change(
    world: AuditedWorld,
    three_servers: dict[str, EmbeddedServer],
    spark: SparkSession,
    record_property: Callable[[str, object], None],
) -> None:
    world.write_project(VIEWS)
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, SourceConnected):
            world.note_before(event.source)  # writers began before the log did: what they did until now needs no tick

    maintainer = start_maintainer(spark, understand(world.open().project, spark), listen)
    early = busy_writers(three_servers, world.database, transactions=TRANSACTIONS // 6, seed=2)
    late = busy_writers(three_servers, world.database, transactions=TRANSACTIONS, pause_seconds=0.03)
    early.start()
    running = threading.Thread(target=maintainer.run, kwargs={"until_idle": False, "ticks": None})
    running.start()
    while running.is_alive() and not any(isinstance(event, ViewBorn) for event in events):
        time.sleep(0.01)
    late.start()
    done = late.finish() + early.finish()
    maintainer.stop()
    running.join(timeout=BUDGET_SECONDS)
    assert not running.is_alive()
    world.open(listen).run(until_idle=True)

    judgement = assert_exact(world, spark)
    assert_reads_agree(world, judgement, spark)
    assert {name for name, _ in judgement.verdicts.items()} == set(VIEWS)
    assert judgement.tick_count >= 2_000
    assert done["committed"] >= 2_000
    assert min(done["rolled back"], done["savepoints undone"], done["asynchronous"]) > 0
    batches = [event for event in events if isinstance(event, BatchCommitted)]
    assert len(batches) > 3, "the views were kept while writers wrote, not afterwards"
    corrected = {event.view for event in events if isinstance(event, ProbeAnswered) and event.corrected_rows}
    assert {"probing", "twins"} <= corrected, "answers saw what was not due yet, and rebasing took it back"
    record_property("ticks", judgement.tick_count)
    record_property("batches", len(batches))
    record_property("states", sum(verdict.states_checked for verdict in judgement.verdicts.values()))
    record_property("corrected rows", sum(e.corrected_rows for e in events if isinstance(e, ProbeAnswered)))
    record_property("writers", dict(done))
