"""A change that cannot be: its views stop before it, name the transaction, and show their last good state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import AuditedWorld, audited_world, rows_of

from headwater.deltas.compare import bag_of
from headwater.errors import HeadwaterError, ImpossibleChange
from headwater.observe.status import ViewStatus
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

SOLD = "SELECT s.customer, COUNT(*) AS sold, SUM(s.amount) AS amount FROM shop.sales s GROUP BY s.customer"
VIEWS = {
    "sold": SOLD,
    "busy": "SELECT d.customer FROM sold d WHERE d.sold > 1",
    "large": "SELECT s.no FROM shop.sales s WHERE s.amount > 8",
    "prices": "SELECT p.kind, SUM(p.price) AS price FROM shop.products p GROUP BY p.kind",
}


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def smuggle(world: AuditedWorld, sql: str) -> None:
    """Change sales so that the log does not tell."""
    [(publication,)] = world.execute("shop", "SELECT pubname FROM pg_publication")
    world.execute("shop", f'ALTER PUBLICATION "{publication}" DROP TABLE sales')
    world.execute("shop", sql)
    world.execute("shop", f'ALTER PUBLICATION "{publication}" ADD TABLE sales')


def statuses(world: AuditedWorld) -> dict[str, ViewStatus]:
    return {view.name: view for view in world.open().status().views}


def test_a_group_that_would_have_fewer_than_no_rows(world: AuditedWorld) -> None:
    world.write_project(VIEWS, probed=())
    world.open().run(until_idle=True)
    smuggle(world, "INSERT INTO sales VALUES (5000, 777, 1, 3)")
    world.execute("shop", "UPDATE sales SET amount = amount + 1 WHERE no < 9")
    world.execute("shop", "INSERT INTO sales VALUES (5001, 12, 2, 4)")
    right = world.execute("shop", f"{SOLD.replace('shop.', '')} HAVING s.customer IS DISTINCT FROM 777")
    world.execute("shop", "DELETE FROM sales WHERE no = 5000")
    world.execute("shop", "UPDATE products SET price = price + 1 WHERE id = 1")
    world.execute("shop", "INSERT INTO sales VALUES (5002, 13, 2, 4)")
    world.open().run(until_idle=True)

    warehouse = Warehouse.open(str(world.open().project.warehouse))
    transactions = dict(warehouse.log.transactions(None, 0, warehouse.log.last_tick))  # type: ignore[arg-type]
    bad = warehouse.log.last_tick - 2
    found = statuses(world)
    for name in ("sold", "busy"):
        view = found[name]
        assert view.frontier == bad - 1, "every state before is there"
        assert view.stopped is not None
        assert view.stopped.code == "HW-502"
        assert f'view "{name}" has no state from tick {bad} on' in view.stopped.summary
        assert str(transactions[bad].position) in view.stopped.summary, "the transaction is named"
        assert "teardown --source shop" in view.stopped.hint
        with pytest.raises(HeadwaterError, match="cannot be read at tick"):
            world.open().view(name).at(bad).arrow()
    assert bag_of(rows_of(world.open().view("sold").arrow())) == bag_of(right)
    assert found["prices"].stopped is None
    assert found["prices"].frontier == warehouse.log.last_tick, "the others go on"

    with pytest.raises(ImpossibleChange, match=r"the replica of shop.sales contradicts the change log") as contradicted:
        world.open().run(until_idle=True, rebuild=("sold",))
    assert contradicted.value.code == "HW-503"
    assert "teardown --source` shop, then" in contradicted.value.hint
    assert statuses(world)["sold"].frontier == bad - 1, "readers keep what they had"

    world.write_project({**VIEWS, "products": "SELECT s.no, s.product FROM shop.sales s"}, probed=())
    with pytest.raises(ImpossibleChange, match="HW-503"):
        world.open().run(until_idle=True)
    world.write_project(VIEWS, probed=())

    world.open().teardown(sources=("shop",))
    world.open().run(until_idle=True)
    assert statuses(world)["busy"].stopped is None
    assert bag_of(rows_of(world.open().view("sold").arrow())) == bag_of(
        world.execute("shop", SOLD.replace("shop.", ""))
    )
