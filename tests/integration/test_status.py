"""What `status`, `history` and `plan` say of a warehouse is what is the case there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import SOURCES, VIEWS, AuditedWorld, audited_world
from pyspark.sql import SparkSession
from running import running

from headwater.observe.events import BatchCommitted, Event, ProbeAnswered, SourceConnected
from headwater.observe.status import MessageCount, SourceStatus, ViewStatus
from headwater.project.plan_result import Action
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.write_project({name: VIEWS[name] for name in ("probing", "replicated", "mixed")})
        yield made


def source(world: AuditedWorld, name: str) -> SourceStatus:
    return next(one for one in world.open().status().sources if one.name == name)


def view(world: AuditedWorld, name: str) -> ViewStatus:
    return next(one for one in world.open().status().views if one.name == name)


@pytest.mark.thorough
def test_lag_grows_while_a_source_is_not_followed_and_shrinks_to_nothing(
    world: AuditedWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.open().plan().changes
    world.open().run(until_idle=True)
    away = source(world, "crm")
    assert (away.lag_bytes, away.lag_seconds) == (None, None), "nobody looks while nobody maintains"
    with running(world, spark) as maintainer:
        maintainer.wait_until(lambda: len(maintainer.heard(SourceConnected)) == len(SOURCES))
        maintainer.wait_until(lambda: all(source(world, name).lag_bytes == 0 for name in SOURCES))
        assert source(world, "crm").lag_seconds == 0
        with monkeypatch.context() as held:
            held.setattr(maintainer.maintainer.acceptor, "_take", list)
            world.execute("crm", "UPDATE customers SET note = note(id + 7) WHERE id < 30")
            maintainer.wait_until(lambda: (source(world, "crm").lag_bytes or 0) > 5_000)
            maintainer.wait_until(lambda: (source(world, "crm").lag_seconds or 0) > 1.5)
        maintainer.wait_until(lambda: source(world, "crm").lag_bytes == 0)


def test_rows_messages_and_jobs_are_counted(world: AuditedWorld, spark: SparkSession) -> None:
    world.open().run(until_idle=True)
    counted: list[int] = []
    heard: list[Event] = []
    asked_for_mixed: Counter[str] = Counter()
    for number in range(3):
        world.execute(
            "shop",
            f"UPDATE sales SET amount = amount + 1 WHERE no % 3 = {number}; DELETE FROM sales WHERE no = {number + 1}",
        )
        world.execute("crm", f"INSERT INTO customers VALUES ({900 + number}, 1, 1, 'x')")
        heard.clear()
        world.open(heard.append).run(until_idle=True)
        for event in heard:
            if isinstance(event, ProbeAnswered) and event.view == "mixed":
                asked_for_mixed[event.relation.source] += event.byte_count
        for name in ("probing", "replicated", "mixed"):
            shown = view(world, name)
            assert shown.row_count == world.open().view(name).arrow().num_rows
            counted.append(shown.row_count or 0)
    assert len(set(counted)) > 3, "the views' sizes changed"

    answered = [event for event in heard if isinstance(event, ProbeAnswered)]
    expected: dict[tuple[str, str], int] = {}
    for event in answered:
        key = (event.relation.source, event.view)
        expected[key] = expected.get(key, 0) + event.byte_count
    status = world.open().status()
    assert status.messages_since is not None
    assert {(one.source, one.view): one.byte_count for one in status.messages} == expected
    assert {"probing", "mixed"} == {one.view for one in status.messages}
    assert all(isinstance(one, MessageCount) and one.probe_count > 0 for one in status.messages)

    batches = world.open().history("mixed").commits
    assert len([event for event in heard if isinstance(event, BatchCommitted)]) >= 1
    assert all(1 <= batch.spark_job_count <= 40 for batch in batches)
    by_source: Counter[str] = Counter()
    for count in (count for batch in batches for count in batch.asked):
        by_source[count.source] += count.byte_count
    assert by_source.total() > 0
    assert by_source <= asked_for_mixed, "history tells the same, but for commits that changed nothing"

    warehouse = Warehouse.open(str(world.open().project.warehouse))
    table, frontier = warehouse.kept_table("mixed"), warehouse.frontier("mixed")
    before = table.row_count(frontier)
    assert table.roll_checkpoint(spark, frontier)
    assert table.row_count(frontier) == before
    assert table.row_count(warehouse.view("mixed").birth) == counted_at_birth(warehouse, spark)


def counted_at_birth(warehouse: Warehouse, spark: SparkSession) -> int:
    return warehouse.view_dataframe(spark, "mixed", warehouse.view("mixed").birth).count()


def test_plan_says_what_a_rebuild_would_do(world: AuditedWorld) -> None:
    world.open().run(until_idle=True)
    assert not world.open().plan().changes
    [step] = world.open().plan(rebuild=("mixed",)).changes
    assert (step.action, step.name, step.reason) == (Action.CHANGE, "mixed", "asked for")
