"""Views that have nothing in common go their own ways: a slow one holds nobody up, and follows exactly."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from scripted_world import SOLD, TOTALS, ScriptedWorld, wait_until

from headwater.engine.batch.round import Outcome, Round
from headwater.engine.state.live_view import LiveView

QUICK = '[settings.batch]\nslow_view_wait = "20 ms"\n'


@pytest.fixture
def beside(world: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> ScriptedWorld:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    world.write_project({"sold": SOLD, "totals": TOTALS}, QUICK)
    return world


def held_up(monkeypatch: pytest.MonkeyPatch, may_end: Callable[[], object]) -> None:
    compute = Round._outcome

    def slow(self: Round, view: LiveView, *others: Any) -> Outcome:
        if view.name == "totals":
            may_end()
        return compute(self, view, *others)

    monkeypatch.setattr(Round, "_outcome", slow)


def test_a_slow_view_holds_nobody_up(beside: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    held_up(monkeypatch, lambda: may_end.wait(60))
    with beside.running():
        before = beside.warehouse.frontier("totals")
        for number in (16, 17, 18):
            beside.sell(number)
            wait_until(lambda: beside.warehouse.frontier("sold") == before + number - 15)  # noqa: B023 - called here
        assert beside.warehouse.frontier("totals") == before
        may_end.set()
        beside.price(2, 22)
        wait_until(lambda: beside.warehouse.frontier("totals") == before + 4)
    beside.run()
    beside.assert_exact("sold", "totals")


def test_who_is_late_when_the_maintainer_stops_is_computed_again(
    beside: ScriptedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = threading.Event()
    held_up(monkeypatch, lambda: may_end.wait(60))
    with beside.running() as maintainer:
        before = beside.warehouse.frontier("totals")
        beside.sell(16, 17)
        wait_until(lambda: beside.warehouse.frontier("sold") > before)
        maintainer.stop()
        may_end.set()
    beside.run()
    beside.assert_exact("sold", "totals")


def test_a_run_until_idle_waits_for_the_slow_one(beside: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    pause = threading.Event()
    held_up(monkeypatch, lambda: pause.wait(0.3))
    beside.sell(16, 17, 18)
    beside.price(1, 5)
    beside.run()
    beside.assert_exact("sold", "totals")
