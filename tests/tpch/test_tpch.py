"""TPC-H queries as views over three databases: every state of every view is right, while writers write."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import tpch_queries
from audited import AuditedWorld, assert_exact
from pyspark.sql import SparkSession
from recomputed import assert_spark_agrees
from running import running
from tpch_world import PROBED, small_views, tpch_world
from tpch_writers import tpch_writers
from volume import THOROUGH, volume

from headwater.observe.events import BatchCommitted, Event, SourceConnected, ViewBorn
from headwater.sources.embedded import EmbeddedServer

TRANSACTIONS = volume(30, 200)
QUICK = ("q13", "q22")
"""What every build plays: outer joins, MAX, NOT EXISTS; `make thorough` plays all 22."""
LEAST_TICKS = volume(8, 160)
"""A transaction of a relation that no view reads makes no tick: two queries read two of eight relations."""
SETTINGS = "[maintenance]\nbatch_ticks = 1000\n"
CHECKED_BY_SPARK = 2
"""So many states of every view are recomputed by Spark itself: it is the authority, DuckDB only carries the bulk."""


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    servers = dict(zip(("crm", "sales", "supply"), three_servers.values(), strict=True))
    with tpch_world(servers, tmp_path / "tpch") as made:
        yield made


def test_every_tick_of_every_query_is_exact_while_sources_change(world: AuditedWorld, spark: SparkSession) -> None:
    views = {name: sql for name, sql in small_views().items() if THOROUGH or name in QUICK}
    world.write_project(views, probed=PROBED, settings=SETTINGS)

    def listen(event: Event) -> None:
        if isinstance(event, SourceConnected):
            world.note_before(event.source)

    with running(world, spark, listen) as maintainer:
        maintainer.wait_until(lambda: {event.view for event in maintainer.heard(ViewBorn)} == set(views))
        writers = tpch_writers(world.servers, world.database, transactions=TRANSACTIONS, pause_seconds=0.05)
        writers.start()
        done = writers.finish()
        maintainer.wait_until(lambda: len(maintainer.heard(BatchCommitted)) > 1)
    world.open().run(until_idle=True)

    judgement = assert_exact(world, spark, tpch_queries.as_spark)
    assert set(judgement.verdicts) == set(views)
    assert judgement.tick_count >= LEAST_TICKS
    idle = {name for name, right in judgement.expected.items() if not right.changes}
    assert len(idle) <= 3, f"nothing changes in {idle}"
    assert assert_spark_agrees(world, spark, CHECKED_BY_SPARK) == CHECKED_BY_SPARK * len(views)
    logging.getLogger(__name__).info(
        "%s ticks, %s states of %s views, changed at so many ticks: %s; writers: %s",
        judgement.tick_count,
        sum(verdict.states_checked for verdict in judgement.verdicts.values()),
        len(views),
        {name: len(right.changes) for name, right in judgement.expected.items()},
        dict(done),
    )
