"""What goes wrong at a source stops only the views that need it, exactly where it went wrong, with the reason."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import VIEWS, AuditedWorld, assert_exact, audited_world
from pyspark.sql import SparkSession
from running import running

from headwater.deltas.extent import WHOLE
from headwater.engine.bootstrap.staging import stage_relation
from headwater.errors import HeadwaterError
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.settings import BootstrapSettings
from headwater.observe.events import Event, SourceGone, ViewStopped, ignore_event
from headwater.observe.status import ViewStatus
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.postgres import PostgresSource
from headwater.warehouse.query import Warehouse


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.note_before()
        yield made


def views(*names: str) -> dict[str, str]:
    return {name: VIEWS[name] for name in names}


def status(world: AuditedWorld, name: str) -> ViewStatus:
    return next(view for view in world.open().status().views if view.name == name)


def warehouse(world: AuditedWorld) -> Warehouse:
    return Warehouse.open(str(world.open().project.warehouse))


def last_tick(world: AuditedWorld) -> Tick:
    return warehouse(world).log.last_tick


def test_truncate_is_exact_for_replicas_and_stops_views_that_probe(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project(views("replicated", "thefts", "probing"))
    world.open().run(until_idle=True)
    world.execute("shop", "UPDATE products SET price = price + 1 WHERE id < 5")
    world.execute(
        "shop",
        "INSERT INTO products VALUES (700, 1, 1, 1); TRUNCATE products; INSERT INTO products VALUES (1, 1, 2.5, 1)",
    )
    world.execute("crm", "INSERT INTO visits VALUES (1, 1, '2024-02-02'), (1, 1, '2024-02-02')")
    before = last_tick(world)
    world.execute("crm", "TRUNCATE visits")
    world.execute("shop", "TRUNCATE products")
    world.execute("shop", "INSERT INTO products VALUES (2, 2, 2.5, 1)")
    world.execute("crm", "INSERT INTO visits VALUES (3, 1, '2024-02-02')")
    world.execute("crm", "UPDATE customers SET score = score + 1 WHERE id < 9")
    heard: list[Event] = []
    world.open(heard.append).run(until_idle=True)

    stopped = status(world, "thefts").stopped
    assert stopped is not None
    assert stopped.code == "HW-521"
    assert "crm.visits was truncated" in stopped.summary
    assert "--rebuild thefts" in stopped.hint
    assert [event.view for event in heard if isinstance(event, ViewStopped)] == ["thefts"]
    assert before <= status(world, "thefts").frontier < last_tick(world)  # type: ignore[operator]
    for name in ("replicated", "probing"):
        assert status(world, name).frontier == last_tick(world)
        assert status(world, name).stopped is None
    assert_exact(world, spark)
    assert all(view.verdict.guarantee.value == "complete" for view in world.open().check().views)

    world.open().run(until_idle=True, rebuild=("thefts",))
    world.execute("crm", "INSERT INTO visits VALUES (4, 2, '2024-02-02')")
    world.open().run(until_idle=True)
    assert status(world, "thefts").stopped is None
    assert status(world, "thefts").frontier == last_tick(world)
    assert_exact(world, spark)


def test_a_division_by_zero_stops_its_view_at_its_tick(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project(views("shares", "lately", "probing"))
    world.open().run(until_idle=True)
    for number in range(4):
        world.execute("shop", f"UPDATE sales SET amount = amount + 1 WHERE no = {number + 1}")
    world.open().run(until_idle=True)
    good = last_tick(world)
    world.execute("crm", "UPDATE customers SET score = 0 WHERE id = 1")
    world.execute("shop", "UPDATE products SET divisor = 0 WHERE id = 3")
    [(position,)] = world.execute("shop", "SELECT pg_current_wal_lsn()::text")
    world.execute("shop", "UPDATE sales SET amount = amount + 1 WHERE no < 40")
    world.open().run(until_idle=True)

    view = status(world, "shares")
    transactions = Warehouse.open(str(world.open().project.warehouse)).log.transactions(None, good, last_tick(world))
    [bad] = [tick for tick, one in transactions if one.source == "shop"][:1]
    assert view.frontier == bad - 1, "every state before the division is there"
    assert view.stopped is not None
    assert view.stopped.code == "HW-520"
    assert f"from tick {bad} on" in view.stopped.summary
    assert str(dict(transactions)[bad].position) in view.stopped.summary
    del position
    assert status(world, "lately").frontier == last_tick(world)
    with pytest.raises(HeadwaterError, match="cannot be read at tick"):
        world.open().view("shares").at(bad).arrow()
    assert_exact(world, spark)

    with pytest.raises(HeadwaterError, match="has no state at tick") as unborn:
        world.open().run(until_idle=True, rebuild=("shares",))
    assert unborn.value.code == "HW-522"
    assert status(world, "shares").frontier == bad - 1, "readers keep what they had"
    world.execute("shop", "UPDATE products SET divisor = 2 WHERE id = 3")
    world.open().run(until_idle=True, rebuild=("shares",))
    assert status(world, "shares").stopped is None
    assert status(world, "lately").birth == Tick(0), "the others never noticed"
    assert_exact(world, spark)


def test_a_column_in_use_is_dropped(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project(views("probing", "replicated"))
    world.open().run(until_idle=True)
    with running(world, spark) as maintainer:
        world.execute("crm", "ALTER TABLE customers DROP COLUMN score")
        world.execute("crm", "UPDATE customers SET city = 1 WHERE id = 3")
        maintainer.wait_until(lambda: maintainer.heard(SourceGone))
        [gone] = [event for event in maintainer.heard(SourceGone) if isinstance(event, SourceGone)]
        assert "crm.customers" in str(gone.error)
        assert "score" in str(gone.error)
        world.execute("geo", "UPDATE places SET label = label || '!' WHERE id < 4")
        maintainer.wait_until(lambda: maintainer.frontier("replicated") >= 1)
    with pytest.raises(HeadwaterError, match="score"):
        world.open().run(until_idle=True)


@pytest.mark.thorough
def test_a_value_that_cannot_be_held_is_left_behind_by_reading_one_source_anew(world: AuditedWorld) -> None:
    world.write_project(views("replicated", "probing", "twins"))
    world.open().run(until_idle=True)
    world.execute("shop", "UPDATE products SET price = 'NaN' WHERE id = 3")
    with pytest.raises(HeadwaterError, match="cannot be kept exactly") as unfit:
        world.open().run(until_idle=True)
    assert "teardown --source shop" in unfit.value.hint
    world.execute("shop", "UPDATE products SET price = 3 WHERE id = 3")
    with pytest.raises(HeadwaterError, match="cannot be kept exactly"):
        world.open().run(until_idle=True)  # it is in the log all the same

    dropped = world.open().teardown(sources=("shop",)).dropped
    assert {one.source for one in dropped} == {"shop"}
    world.execute("crm", "UPDATE customers SET city = 2 WHERE id < 9")
    world.open().run(until_idle=True)
    generations = {name: one.generation for name, one in warehouse(world).catalog().views.items()}
    assert generations == {"replicated": 2, "probing": 2, "twins": 1}, "only what reads shop was built anew"
    world.execute("shop", "UPDATE products SET price = 4 WHERE id = 3")
    checked = world.open().check(ticks=3)
    assert {one.view: one.verdict.guarantee.value for one in checked.views} == dict.fromkeys(
        ("replicated", "probing", "twins"), "complete"
    )


def test_chunks_of_a_server_that_crashed_are_read_again(tmp_path: Path) -> None:
    """A chunk shows a transaction that was not yet in the log when the server died: the log will never tell of it."""
    settings = BootstrapSettings(chunk_rows=3)
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    directory.chmod(0o711)
    try:
        with EmbeddedServer(directory / "crm", settings={"fsync": "off", "wal_writer_delay": "10s"}) as server:
            server.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 9); ANALYZE t")
            source = PostgresSource(name="crm", url=server.url(), project="p")
            name = RelationName(source="crm", name="t")
            [relation] = source.inspect([name]).relations
            server.execute("CHECKPOINT")
            server.execute("SET synchronous_commit = off; INSERT INTO t VALUES (10)")
            with source.snapshot() as snapshot:
                before = stage_relation(
                    str(tmp_path), source, snapshot, relation, ("id",), WHOLE, ignore_event, settings
                )
            server.kill()
            server.start()
            with source.snapshot() as snapshot:
                after = stage_relation(
                    str(tmp_path), source, snapshot, relation, ("id",), WHOLE, ignore_event, settings
                )
            assert len(before.chunks) > 1
            assert sum(chunk.row_count for chunk in before.chunks) == 10
            assert server.execute("SELECT count(*) FROM t") == [(9,)], "the server has lost it"
            assert sum(chunk.row_count for chunk in after.chunks) == 9
            source.close()
    finally:
        shutil.rmtree(directory)
