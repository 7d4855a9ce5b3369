"""Only one maintainer moves a warehouse; new views come in while the others go on."""

from __future__ import annotations

import threading

import pytest
from scripted_world import SALES, SOLD, TOTALS, FailPoints, ScriptedWorld, wait_until
from test_stopped import stopped

from headwater.engine.service.maintainer import Maintainer
from headwater.errors import LeaseLost, WarehouseRefused
from headwater.project.plan import Consent
from headwater.warehouse import checkpoint, lease


def test_a_second_maintainer_fences_the_first(world: ScriptedWorld) -> None:
    started: list[Maintainer] = []

    def overtaken() -> None:
        with world.running() as first:
            world.sell(16)
            wait_until(lambda: first.frontier() == 8)
            started.append(world.start())
            world.sell(17)
            wait_until(lambda: first.acceptor.threads()["shop"].has_ended)

    with pytest.raises(LeaseLost):
        overtaken()
    [second] = started
    try:
        world.sell(18)
        second.run(until_idle=True, ticks=None)
    finally:
        second.release()
    assert world.assert_exact("sold", "totals") == 10


def test_a_maintainer_elsewhere_that_is_alive_is_left_alone(
    world: ScriptedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(lease, "own_name", lambda: "elsewhere:7")
        lease.renew_lease(str(world.folder / "warehouse"), 99)
    with pytest.raises(WarehouseRefused, match='"elsewhere:7" is maintaining') as refused:
        world.start()
    assert refused.value.code == "HW-405"


def test_what_is_held_and_not_acknowledged_has_its_tick_once(world: ScriptedWorld, points: FailPoints) -> None:
    world.sell(*range(16, 20))
    stopped(world, points, "after log append")
    [slot] = world.shop.slots.values()
    assert world.warehouse.log.positions()["shop"].offset > slot.forgotten_to[""], "the source may tell it again"
    world.run()
    assert world.assert_exact("sold", "totals") == 11
    assert slot.forgotten_to == {"": 19}


def test_a_new_view_comes_in_while_the_others_go_on(world: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    again = SOLD.replace("SELECT s.id", "SELECT s.id + 0 AS id")
    world.write_project({"sold": SOLD, "totals": TOTALS, "sold_again": again})
    may_go_on = threading.Event()

    def reach(name: str) -> None:
        if name == "before checkpoint write" and threading.current_thread().name.startswith(("bootstrap", "birth")):
            assert may_go_on.wait(60)

    monkeypatch.setattr(checkpoint, "reach", reach)
    with world.running() as maintainer:
        world.sell(*range(16, 20))
        world.price(1, 77)
        wait_until(lambda: maintainer.frontier() == 12)
        assert "sold_again" not in maintainer.views
        may_go_on.set()
        wait_until(lambda: "sold_again" in maintainer.views)
        world.sell(20)
        wait_until(lambda: {view.frontier for view in maintainer.views.values()} == {13})
    assert world.assert_exact("sold", "totals", "sold_again") == 13


def test_a_view_that_is_gone_from_the_project_is_dropped(world: ScriptedWorld) -> None:
    world.write_project({"sold": SOLD})
    world.sell(16)
    world.run(Consent(is_given=True))
    assert set(world.warehouse.catalog().views) == {"sold"}
    assert world.assert_exact("sold") == 8


def test_many_transactions_are_cut_into_batches(world: ScriptedWorld) -> None:
    world.write_project({"sold": SOLD, "totals": TOTALS}, "[maintenance]\nbatch_ticks = 100\n")
    for number in range(16, 340):
        world.shop.commit({SALES: {(number, number % 4, number % 3): 1}})
    result = world.run()
    assert result.commit_count >= 4
    assert world.assert_exact("sold", "totals") == 7 + 324
