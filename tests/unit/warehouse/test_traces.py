"""Traces are counted per hour, and forgotten after a week."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from headwater.warehouse.traces import note_trace, traces_per_hour

NOON = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)


def test_traces_per_hour_since_the_first(tmp_path: Path) -> None:
    warehouse = str(tmp_path)
    assert traces_per_hour(warehouse, "sales", NOON) is None
    for minutes in (0, 1, 2, 60, 119, 120):
        note_trace(warehouse, "sales", NOON + timedelta(minutes=minutes))
    assert traces_per_hour(warehouse, "sales", NOON + timedelta(hours=2.5)) == 6 / 3
    assert traces_per_hour(warehouse, "others", NOON) is None


def test_what_is_older_than_a_week_is_forgotten(tmp_path: Path) -> None:
    warehouse = str(tmp_path)
    note_trace(warehouse, "sales", NOON)
    note_trace(warehouse, "sales", NOON + timedelta(days=7, hours=1))
    assert traces_per_hour(warehouse, "sales", NOON + timedelta(days=7, hours=1)) == 1.0
    assert traces_per_hour(warehouse, "sales", NOON + timedelta(days=15)) is None
