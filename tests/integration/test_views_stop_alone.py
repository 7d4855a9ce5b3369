"""A view stops alone, whatever its SQL does: in a batch, at its birth, and while the project is understood."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import AuditedWorld, audited_world, rows_of

from headwater.deltas.compare import bag_of
from headwater.errors import HeadwaterError
from headwater.project import resolve as resolve_project
from headwater.project.plan_result import Action
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

HEALTHY = "SELECT p.id, p.price FROM shop.products p WHERE p.price > 0"
ONE_SALE = (
    "SELECT p.id, (SELECT s.amount FROM shop.sales s WHERE s.customer = p.id + 9000) AS amount FROM shop.products p"
)
UNREAD = """
    WITH unused AS (SELECT v.customer FROM crm.visits v)
    SELECT p.id, p.price FROM shop.products p WHERE EXISTS (SELECT COUNT(*) FROM geo.places g WHERE g.city = p.kind)
    ORDER BY (SELECT MAX(c.id) FROM crm.customers c)
"""


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def assert_healthy(world: AuditedWorld, view: str = "healthy") -> None:
    """See to it that a view shows what its source holds now."""
    warehouse = Warehouse.open(str(world.open().project.warehouse))
    assert warehouse.frontier(view) == warehouse.log.last_tick
    right = world.execute("shop", "SELECT p.id, p.price FROM products p WHERE p.price > 0")
    assert bag_of(rows_of(world.open().view(view).arrow())) == bag_of(right)


def test_a_sub_query_that_finds_two_rows(world: AuditedWorld) -> None:
    world.write_project({"healthy": HEALTHY, "one_sale": ONE_SALE, "unread": UNREAD}, probed=())
    world.open().run(until_idle=True)
    assert_healthy(world, "unread")  # relations that make no difference are named, and read by nobody
    world.execute("shop", "INSERT INTO sales VALUES (5000, 9001, 1, 3)")
    world.execute("shop", "INSERT INTO sales VALUES (5001, 9001, 1, 4)")  # now there are two for product 1
    world.execute("shop", "UPDATE products SET price = price + 1 WHERE id = 2")
    world.open().run(until_idle=True)
    [stopped] = [view for view in world.open().status().views if view.name == "one_sale"]
    assert stopped.stopped is not None
    assert stopped.stopped.code == "HW-520"
    assert "several rows" in stopped.stopped.summary
    assert (1, 3) in rows_of(world.open().view("one_sale").arrow()), "what it showed before is there"
    assert_healthy(world)

    with pytest.raises(HeadwaterError, match="HW-522"):  # told when all else is done
        world.open().run(until_idle=True, rebuild=("one_sale", "healthy"))
    assert_healthy(world)


def test_a_view_over_which_headwater_fails(world: AuditedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    other = "SELECT s.no FROM shop.sales s WHERE s.amount > 8"
    world.write_project({"healthy": HEALTHY, "other": other}, probed=())
    world.open().run(until_idle=True)
    sound = resolve_project.view_readings

    def broken(file: object, *others: object) -> object:
        if getattr(file, "name", "") in {"other", "new"}:
            raise KeyError("o7.c3")
        return sound(file, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(resolve_project, "view_readings", broken)
    world.write_project({"healthy": HEALTHY, "other": other, "new": other}, probed=())
    left = [step for step in world.open().plan().steps if step.action is Action.LEAVE]
    assert sorted(step.name for step in left) == ["new", "other"]
    assert all("HW-281" in step.reason for step in left)
    world.execute("shop", "UPDATE products SET price = price + 1 WHERE id = 2")
    with pytest.raises(HeadwaterError, match="HW-281"):
        world.open().run(until_idle=True)
    assert_healthy(world)
    found = {view.name: view for view in world.open().status().views}
    assert found["other"].stopped is not None, "what is there stays readable, and is not dropped"
    assert world.open().view("other").arrow().num_rows >= 0
    with pytest.raises(HeadwaterError, match="HW-281"):
        world.open().explain("new")
