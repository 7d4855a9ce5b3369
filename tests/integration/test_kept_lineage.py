"""Lineage views and split lineage tables on live servers: exact, readable in the past, and traced alike."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from audited import AuditedWorld, audited_world, judge
from pyspark.sql import SparkSession
from running import running
from volume import volume
from writers import busy_writers

from headwater.deltas.lookup import Origin
from headwater.lineage.result import TraceResult
from headwater.lineage.trace_view import trace_view
from headwater.model.moment import AtTick
from headwater.model.position import Tick
from headwater.observe.events import Event, SourceConnected, ViewBorn
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer

TICKS = volume(40, 300)
TRACES = volume(2, 12)

SQL = """
    SELECT c.city AS city, COUNT(*) AS sold, SUM(s.no + s.amount) AS numbers, MAX(p.kind) AS kind
    FROM shop.sales AS s JOIN shop.products AS p ON s.product = p.id JOIN crm.customers AS c ON c.id = s.customer
    WHERE s.amount > 1 GROUP BY c.city
"""
VIEWS = {"plain": SQL, "whole": SQL, "split": SQL}


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def settings(world: AuditedWorld) -> str:
    """Return what lets one view keep its lineage view, and one its split lineage tables."""
    segments = world.open().explain("plain").data["segments"]
    assert isinstance(segments, list)
    join = next(one["name"] for one in segments if one["step"] == "join")
    return f'[views.whole]\nkeep = ["lineage:{join}"]\n[views.split]\nkeep = ["split:{join}"]\n'


def found(result: TraceResult) -> dict[str, list[tuple[object, ...]]]:
    return {one.relation: _rows(one.rows) for one in result.relations}


def _rows(rows: pa.Table) -> list[tuple[object, ...]]:
    names = sorted(rows.column_names)
    return sorted(zip(*(rows[name].to_pylist() for name in names), strict=True), key=repr)


def test_kept_lineage_is_exact_on_live_tables(world: AuditedWorld, spark: SparkSession) -> None:
    world.note_before()
    world.write_project({"plain": SQL, "split": SQL, "whole": SQL}, probed=("crm.customers",))
    world.write_project(VIEWS, probed=("crm.customers",), settings=settings(world))
    world.open().run(until_idle=True)
    world.execute("shop", "INSERT INTO sales SELECT g, 1 + g % 5, 1 + g % 3, 2 FROM generate_series(900, 905) g")
    world.execute("crm", "UPDATE customers SET city = 77 WHERE id = 2")
    world.execute("shop", "DELETE FROM sales WHERE no = 901")
    world.open().run(until_idle=True)
    judgement = judge(world, spark)
    assert judgement.wrong == {}
    resolved, at = resolve_project(world.open().project, spark), AtTick(tick=Tick(judgement.tick_count))
    traces = {name: trace_view(spark, resolved, name, where=None, at=at, whole_rows=False) for name in VIEWS}
    assert found(traces["whole"]) == found(traces["plain"]) == found(traces["split"])
    assert {one.origin for one in traces["split"].relations} == {Origin.SPLIT_LINEAGE}


@pytest.mark.thorough
def test_kept_lineage_is_exact_and_traces_alike_in_the_past(world: AuditedWorld, spark: SparkSession) -> None:
    """The tables are added to views that are maintained already; every state of every view is judged."""
    batches = "[maintenance]\nbatch_ticks = 20\n"
    world.write_project(VIEWS, probed=("crm.customers",), settings=batches)

    def listen(event: Event) -> None:
        if isinstance(event, SourceConnected):
            world.note_before(event.source)

    with running(world, spark, listen) as maintainer:
        maintainer.wait_until(lambda: maintainer.heard(ViewBorn))
    world.write_project(VIEWS, probed=("crm.customers",), settings=batches + settings(world))
    changes = {step.name: step.reason for step in world.open().plan().changes}
    assert changes.keys() == {"whole", "split"}
    assert all("its settings (keep, " in reason for reason in changes.values())
    writers = busy_writers(dict(world.servers), world.database, transactions=40_000, pause_seconds=0.3, seed=5)
    with running(world, spark, listen) as maintainer:
        maintainer.wait_until(lambda: len(maintainer.heard(ViewBorn)) == 2)
        writers.start()
        maintainer.wait_until(lambda: min(maintainer.frontier(name) for name in VIEWS) >= TICKS)
        writers.finish(stop=True)
        maintainer.wait_until(lambda: len({maintainer.frontier(name) for name in VIEWS}) == 1)
        chance = random.Random(9)
        resolved = resolve_project(world.open().project, spark)
        for _ in range(TRACES):
            at = AtTick(tick=Tick(chance.randint(1, maintainer.frontier("plain"))))
            traces = {name: trace_view(spark, resolved, name, where=None, at=at, whole_rows=False) for name in VIEWS}
            assert found(traces["whole"]) == found(traces["plain"]), at
            assert found(traces["split"]) == found(traces["plain"]), at
            origins = {name: {one.origin for one in result.relations} for name, result in traces.items()}
            assert origins["whole"] == {Origin.LINEAGE_VIEW}
            assert origins["split"] == {Origin.SPLIT_LINEAGE}
            assert Origin.SOURCE in origins["plain"], "customers are probed"
    judgement = judge(world, spark)
    assert judgement.wrong == {}
    assert judgement.tick_count >= TICKS
