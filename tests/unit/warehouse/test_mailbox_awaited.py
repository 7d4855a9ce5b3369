"""Positions that somebody waits for, as the maintainer finds them."""

from __future__ import annotations

from pathlib import Path

from headwater.model.position import Position, by_log
from headwater.warehouse.mailbox import awaited_positions, note_awaited


def test_the_last_one_of_a_source_is_found(tmp_path: Path) -> None:
    warehouse = str(tmp_path)
    assert awaited_positions(warehouse, "shop") == {}
    for offset in (7, 9):
        note_awaited(warehouse, by_log([Position(source="shop", history="1:1", offset=offset)]))
    assert awaited_positions(warehouse, "shop") == by_log([Position(source="shop", history="1:1", offset=9)])
    assert awaited_positions(warehouse, "staff") == {}
