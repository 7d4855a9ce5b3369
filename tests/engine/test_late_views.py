"""What goes on beside a view that is late: whoever reads the same tables, what ends a run, a kill, an error."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from scripted_world import EACH, SOLD, TOTALS, Bag, FailPoints, ScriptedWorld, totals_of, wait_until
from test_stopped import stopped

from headwater.engine.batch import round as batch_round
from headwater.engine.batch.round import Outcome, Round, free_beside
from headwater.engine.state.live_view import LiveView
from headwater.observe.events import BatchCommitted, BatchStarted

QUICK = '[settings.batch]\nslow_view_wait = "20 ms"\n'
WHOLE = "SELECT COUNT(*) AS stores, SUM(t.paid) AS paid FROM totals t"


pytestmark = pytest.mark.filterwarnings("ignore:Exception in thread upkeep")  # it died, as it was told


def whole_of(sales: Bag, products: Bag) -> Bag:
    totals = totals_of(sales, products)
    return Counter({(len(totals), sum(paid for _, _, paid in totals)): 1})


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def held_up(monkeypatch: pytest.MonkeyPatch, name: str, may_end: Callable[[], object]) -> None:
    """Let a view wait once it knows what it looks rows up in, before it does."""
    compute = batch_round.compute_view_delta

    def slow(runner: Any, view: Any, *others: Any) -> Any:
        if view.name == name:
            may_end()
        return compute(runner, view, *others)

    monkeypatch.setattr(batch_round, "compute_view_delta", slow)


def test_who_shares_a_table_with_a_late_view_waits_for_it(
    fresh: ScriptedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = fresh
    world.oracles["whole"] = whole_of
    world.write_project({"sold": SOLD, "totals": TOTALS, "whole": WHOLE}, QUICK)
    world.run()
    catalog = world.warehouse.catalog()
    assert set(catalog.views["whole"].segments) & set(catalog.views["totals"].segments), "they share a table"
    may_end, begun = threading.Event(), threading.Event()
    held_up(monkeypatch, "totals", lambda: (begun.set(), may_end.wait(30)))
    with world.running() as maintainer:
        before = world.warehouse.frontier("totals")
        world.sell(16)
        wait_until(begun.is_set)
        world.price(1, 77)
        wait_until(lambda: world.warehouse.frontier("sold") == before + 2)
        assert world.warehouse.frontier("totals") == before
        assert [view.name for view in free_beside(maintainer.views, {"totals"})] == ["sold"]
        may_end.set()
        wait_until(lambda: world.warehouse.frontier("totals") == before + 2)
        wait_until(lambda: world.warehouse.frontier("whole") == before + 2)
        world.price(2, 5)
        wait_until(lambda: world.warehouse.frontier("whole") == before + 3)
    world.assert_exact("sold", "totals", "whole")


def test_a_run_of_some_ticks_ends_although_views_are_late_in_turns(
    world: ScriptedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And replicas are brought forward now and then: there is a moment at which no view is late."""
    world.write_project({"sold": SOLD, "totals": TOTALS, "each": EACH}, QUICK)
    world.run()
    compute, number = Round._outcome, iter(range(100))
    lately: list[bool] = []

    def slow(self: Round, view: LiveView, *others: Any) -> Outcome:
        if view.name != "sold":
            time.sleep(0.2 + 0.15 * (next(number) % 2))
        return compute(self, view, *others)

    monkeypatch.setattr(Round, "_outcome", slow)
    maintainer = world.start()
    begun = len([one for one in world.events if isinstance(one, (BatchStarted, BatchCommitted))])
    first, stop = maintainer.frontier(), threading.Event()
    absorb = maintainer._absorb
    monkeypatch.setattr(maintainer, "_absorb", lambda: (lately.append(bool(maintainer._beside.late)), absorb()))

    def sell() -> None:
        for one in range(16, 400):
            if stop.wait(0.03):
                return
            world.sell(one)

    seller = threading.Thread(target=sell)
    seller.start()
    try:
        ended = maintainer.run(until_idle=False, ticks=5)
    finally:
        stop.set()
        seller.join()
        maintainer.release()
    batches = [one for one in world.events if isinstance(one, (BatchStarted, BatchCommitted))][begun:]
    reached = next(n for n, one in enumerate(batches) if isinstance(one, BatchCommitted) and one.hi - first >= 5)
    assert ended.hi - first >= 5
    assert not [one for one in batches[reached:] if isinstance(one, BatchStarted)], "no further batch is begun"
    assert lately, "replicas were brought forward"
    assert not any(lately)
    world.run()
    world.assert_exact("sold", "totals", "each")


def test_a_maintainer_that_dies_while_a_view_is_late(
    world: ScriptedWorld, points: FailPoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write_project({"sold": SOLD, "totals": TOTALS}, QUICK)
    with monkeypatch.context() as slowly:
        held_up(slowly, "totals", lambda: time.sleep(1.0))
        world.sell(16, 17)
        stopped(world, points, "after commit")
    warehouse = world.warehouse
    assert warehouse.frontier("sold") > warehouse.frontier("totals"), "it died when one was committed"
    world.sell(18)
    world.run()
    world.assert_exact("sold", "totals")


def test_a_late_view_that_cannot_go_on_stops_alone(world: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = "SELECT s.id, 1000 DIV (s.id - 17) AS r FROM shop.sales s JOIN stock.products p ON p.id = s.product"
    world.write_project({"sold": SOLD, "totals": TOTALS, "failing": failing}, QUICK)
    world.run()
    may_end = threading.Event()
    held_up(monkeypatch, "failing", lambda: may_end.wait(30))
    with world.running():
        before = world.warehouse.frontier("sold")
        for one in (16, 17, 18):
            world.sell(one)
            wait_until(lambda: world.warehouse.frontier("sold") == before + one - 15)  # noqa: B023 - called here
        assert world.warehouse.frontier("failing") == before
        may_end.set()
        wait_until(lambda: "failing" in world.warehouse.head().record.stopped)
        world.sell(19)
        wait_until(lambda: world.warehouse.frontier("sold") == before + 4)
    record = world.warehouse.head().record
    assert record.frontiers["failing"] == before + 1, "the tick before the one that divides by zero"
    assert "division by zero" in record.stopped["failing"].summary.lower()
    world.assert_exact("sold")
