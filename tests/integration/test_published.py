"""Every published algorithm, on three live databases with writers at work, keeps the guarantee it claims."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import AuditedWorld, audited_world, judge
from pyspark.sql import SparkSession
from volume import volume
from writers import busy_writers

from headwater.engine.service.start import start_maintainer
from headwater.maintenance.published.algorithms import ALGORITHMS, ONE_SOURCE, DescribedAlgorithm
from headwater.observe.events import BatchCommitted, Event, ProbeAnswered, SourceConnected, ViewBorn
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

TRANSACTIONS = volume(12, 60)
PROBED = ("crm.customers", "shop.sales", "shop.products", "geo.places")
AT_ONE_SOURCE = """
    SELECT s.no, p.id, s.amount, p.price FROM shop.sales s JOIN shop.products p ON s.product = p.id WHERE s.amount > 1
"""
AT_THREE = """
    SELECT s.no, c.id, c.city, g.id AS place, c.score FROM shop.sales s JOIN crm.customers c ON s.customer = c.id
    JOIN geo.places g ON g.city = c.city
"""


def view_name(described: DescribedAlgorithm) -> str:
    return "by_" + described.name.replace("-", "_")


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


STAR = """
    SELECT s.no, s.customer, s.product, c.city, p.price FROM shop.sales s JOIN crm.customers c ON s.customer = c.id
    JOIN shop.products p ON s.product = p.id JOIN geo.places g ON s.amount = g.id
"""


def test_version_numbers_ask_several_sources_at_once(world: AuditedWorld, spark: SparkSession) -> None:
    """The dimensions of a star are asked in one round, and rows that the view shows under other names not at all."""
    names = ("version-numbers", "version-numbers-from-view")
    chosen = "\n".join(f'[views.by_{name.replace("-", "_")}]\nalgorithm = "{name}"\n' for name in names)
    views = {f"by_{name.replace('-', '_')}": STAR for name in names}
    world.note_before()
    world.write_project(views, probed=PROBED, settings=chosen)
    world.open().run(until_idle=True)
    world.execute(
        "shop", "INSERT INTO sales SELECT g, 1 + g % 5, 1 + g % 3, 1 + g % 4 FROM generate_series(900, 905) g"
    )
    world.execute("crm", "UPDATE customers SET city = 77 WHERE id = 2")
    world.execute("shop", "DELETE FROM sales WHERE no = 901")
    world.execute("shop", "INSERT INTO sales VALUES (910, 2, 1, 2)")
    world.open().run(until_idle=True)
    judgement = judge(world, spark)
    assert judgement.wrong == {}
    assert judgement.tick_count == 4
    told = str(world.open().explain("by_version_numbers_from_view").text)
    assert "rows found in the view" in told
    assert "rounds predicted" in told


@pytest.mark.thorough
def test_every_algorithm_keeps_its_guarantee_on_live_sources(
    world: AuditedWorld, three_servers: dict[str, EmbeddedServer], spark: SparkSession
) -> None:
    views = {view_name(one): AT_ONE_SOURCE if ONE_SOURCE in one.requirements else AT_THREE for one in ALGORITHMS}
    chosen = "\n".join(f'[views.{view_name(one)}]\nalgorithm = "{one.name}"\n' for one in ALGORITHMS)
    world.write_project(views, probed=PROBED, settings=chosen)
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, SourceConnected):
            world.note_before(event.source)

    maintainer = start_maintainer(spark, resolve_project(world.open().project, spark), listen)
    writers = busy_writers(three_servers, world.database, transactions=TRANSACTIONS, pause_seconds=0.1)
    running = threading.Thread(target=maintainer.run, kwargs={"until_idle": False, "ticks": None})
    running.start()
    while not any(isinstance(event, ViewBorn) for event in events):
        assert running.is_alive(), "the maintainer runs"
        time.sleep(0.02)
    writers.start()
    writers.finish()
    maintainer.stop()
    running.join(timeout=120)
    world.open(listen).run(until_idle=True)

    judgement = judge(world, spark)
    warehouse = Warehouse.open(str(world.open().project.warehouse))
    for one in ALGORITHMS:
        verdict = judgement.verdicts[view_name(one)]
        assert verdict.guarantee >= one.guarantee, f"{one.name}: {verdict}"
        assert warehouse.frontier(view_name(one)) == judgement.tick_count
    probes: Counter[str] = Counter()
    corrected: Counter[str] = Counter()
    for event in events:
        if isinstance(event, ProbeAnswered):
            probes[event.view] += event.probe_count
            corrected[event.view] += event.corrected_row_count
    told = [commit.record.statistics for commit in warehouse.commits.read() if commit.record.statistics is not None]
    asked = sum(statistics.probe_count for statistics in told)
    assert probes["by_batched_sweep"] < asked <= probes.total(), "history counts what published algorithms asked, too"
    for one in ALGORITHMS:
        asked_by = [count for entry in world.open().history(view_name(one)).commits for count in entry.asked]
        assert 0 < sum(count.probe_count for count in asked_by) <= probes[view_name(one)], one.name
        assert all(count.row_count or not count.byte_count for count in asked_by), one.name
    assert corrected["by_sweep"] > 0, "answers saw what was not due yet"
    logging.getLogger(__name__).info(
        "%s ticks, %s commits; probes: %s; rows rebased: %s",
        judgement.tick_count,
        sum(isinstance(event, BatchCommitted) for event in events),
        dict(probes),
        dict(corrected),
    )
