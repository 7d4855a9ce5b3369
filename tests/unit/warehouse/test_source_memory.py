"""What is remembered of a source: written once, and refused by its name if it is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import WarehouseRefused
from headwater.warehouse.source_memory import SourceMemory


def test_what_was_written_is_read(tmp_path: Path) -> None:
    memory = SourceMemory(str(tmp_path), "shop")
    assert memory.read() is None
    memory.write('{"partitions": []}')
    assert SourceMemory(str(tmp_path), "shop").read() == '{"partitions": []}'


@pytest.mark.parametrize("damaged", ["", "not json", '{"partitions": [', "[1]"])
def test_a_damaged_file_is_named_with_the_way_out(tmp_path: Path, damaged: str) -> None:
    memory = SourceMemory(str(tmp_path), "shop")
    memory.write("{}")
    (tmp_path / "sources" / "shop.json").write_text(damaged)
    with pytest.raises(WarehouseRefused) as refused:
        memory.read()
    assert (refused.value.code, str(tmp_path / "sources/shop.json") in refused.value.summary) == ("HW-432", True)
    assert "headwater teardown --source shop" in refused.value.hint
    memory.write("{}")  # what is read again is written again
    assert memory.read() == "{}"
