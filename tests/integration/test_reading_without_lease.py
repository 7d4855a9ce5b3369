"""Reading never takes the lease: verbs that only read work where nobody maintains, and beside whoever begins to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import VIEWS, AuditedWorld, assert_exact, audited_world
from pyspark.sql import SparkSession

from headwater.api.session import Headwater
from headwater.errors import HeadwaterError, WarehouseRefused
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.lease import own_name, read_lease, renew_lease
from headwater.warehouse.query import Warehouse


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        made.note_before()
        made.write_project({name: VIEWS[name] for name in ("probing", "replicated")})
        yield made


def standing(world: AuditedWorld) -> list[object]:
    """Return what only a maintainer may move: the lease, the commits, the log, and where the slots stand."""
    path = str(world.open().project.warehouse)
    warehouse = Warehouse.open(path)
    slots = [
        world.execute(source, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots ORDER BY slot_name")
        for source in world.names
    ]
    return [read_lease(path), warehouse.head(), warehouse.log.last_tick, warehouse.log.epoch, slots]


def test_what_the_log_lacks_is_looked_up_at_the_sources(world: AuditedWorld, spark: SparkSession) -> None:
    world.open().run(until_idle=True)
    world.execute("shop", "UPDATE sales SET amount = amount + 1 WHERE no < 9")
    world.open().run(until_idle=True)
    traced = {one.relation: one.rows.to_pylist() for one in world.open().trace("probing", where="no = 5").relations}
    before = standing(world)

    world.execute("shop", "UPDATE sales SET amount = amount + 20 WHERE no < 9; DELETE FROM sales WHERE no = 11")
    world.execute("crm", "UPDATE customers SET score = score + 1; DELETE FROM customers WHERE id = 9")
    world.execute("geo", "DELETE FROM places WHERE id = 3")
    checked = world.open().check(ticks=None)
    assert {one.view: str(one.verdict.guarantee.value) for one in checked.views} == {
        "probing": "complete",
        "replicated": "complete",
    }
    assert all(one.verdict.states_checked == 2 and one.tick == 1 for one in checked.views)
    again = {one.relation: one.rows.to_pylist() for one in world.open().trace("probing", where="no = 5").relations}
    assert again == traced, "the rows as they were, although their sources show others now"
    assert world.open().row_impact("shop.sales", "no = 5").views
    assert world.open().why_not("probing", "no = 9999").obstacles
    assert standing(world) == before

    world.open().run(until_idle=True)
    assert_exact(world, spark)
    world.execute("shop", "TRUNCATE sales")
    with pytest.raises(HeadwaterError) as refused:
        world.open().check("probing")
    assert refused.value.code == "HW-429"


def test_the_lease_is_looked_at_before_spark_starts(
    world: AuditedWorld, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark
    path = str(world.open().project.warehouse)
    Warehouse.create(path)
    monkeypatch.setattr("headwater.warehouse.lease.own_name", lambda: "elsewhere:1")
    renew_lease(path, 7)
    monkeypatch.undo()
    monkeypatch.setattr(Headwater, "spark", property(lambda _: pytest.fail("Spark was started")))
    with pytest.raises(WarehouseRefused) as refused:
        world.open().run(until_idle=True)
    assert refused.value.code == "HW-405"
    assert own_name() not in str(refused.value)
