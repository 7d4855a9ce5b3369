"""Views are due by the clock, when somebody asks, or always."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from headwater.engine.batch import timetable as timetable_module
from headwater.engine.batch.timetable import Timetable
from headwater.engine.state.live_view import LiveView
from headwater.model.keeping import Continuous, Every, OnDemand, Refresh
from headwater.model.position import Tick
from headwater.warehouse.mailbox import note_refresh, requested_refreshes

HOURLY = Every(seconds=3600, text="1 h")


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timetable_module, "_LOOK_SECONDS", 0.0)


def view(refresh: Refresh, frontier: int = 5) -> LiveView:
    made = SimpleNamespace(name="v", frontier=Tick(frontier), resolved=SimpleNamespace(refresh=refresh))
    return cast("LiveView", made)


def ago(**length: float) -> dict[str, datetime]:
    return {"v": datetime.now(UTC) - timedelta(**length)}


def test_a_continuous_view_is_always_due(tmp_path: Path) -> None:
    assert Timetable(str(tmp_path), {}).is_due(view(Continuous()), Tick(9))
    assert Timetable(str(tmp_path), ago(seconds=1)).refreshed_at([view(Continuous())]) == {}


def test_a_view_by_the_clock_is_due_after_so_long_and_until_it_has_come_to_where_the_log_was(tmp_path: Path) -> None:
    assert not Timetable(str(tmp_path), ago(minutes=59)).is_due(view(HOURLY), Tick(9))
    timetable = Timetable(str(tmp_path), ago(minutes=61))
    assert timetable.is_due(view(HOURLY), Tick(9))
    timetable.note(view(HOURLY, 7))
    assert timetable.is_due(view(HOURLY, 7), Tick(12)), "it is on its way to tick 9"
    timetable.note(view(HOURLY, 9))
    assert not timetable.is_due(view(HOURLY, 9), Tick(12))
    assert timetable.refreshed_at([view(HOURLY)])["v"] > datetime.now(UTC) - timedelta(minutes=1)


def test_a_view_whose_last_time_is_not_known_is_due(tmp_path: Path) -> None:
    assert Timetable(str(tmp_path), {}).is_due(view(HOURLY), Tick(9))


def test_a_view_on_demand_is_due_until_it_has_come_to_what_was_asked_for(tmp_path: Path) -> None:
    timetable = Timetable(str(tmp_path), ago(days=9))
    assert not timetable.is_due(view(OnDemand()), Tick(9))
    note_refresh(str(tmp_path), "v", Tick(8))
    note_refresh(str(tmp_path), "v", Tick(9))
    note_refresh(str(tmp_path), "w", Tick(12))
    assert requested_refreshes(str(tmp_path)) == {"v": 9, "w": 12}
    assert timetable.is_due(view(OnDemand(), 8), Tick(20))
    assert not timetable.is_due(view(OnDemand(), 9), Tick(20))
    timetable.demand(["v"])
    assert timetable.is_due(view(OnDemand(), 9), Tick(20)), "as long as this maintainer runs"
