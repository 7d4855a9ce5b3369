from __future__ import annotations

from pathlib import Path

from headwater.warehouse.mailbox import Releases, note_release


def test_each_release_is_heard_of_once_by_whoever_looks_and_never_forgotten(tmp_path: Path) -> None:
    warehouse = str(tmp_path)
    running = Releases(warehouse)
    assert running.look() == []
    note_release(warehouse, "transfer/7: ü")
    note_release(warehouse, "transfer/7: ü")
    assert running.look() == ["transfer/7: ü"]
    note_release(warehouse, "8")
    assert running.look() == ["8"]
    assert sorted(Releases(warehouse).look()) == ["8", "transfer/7: ü"], "the next maintainer"
