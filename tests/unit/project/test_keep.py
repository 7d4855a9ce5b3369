"""What `keep` of a view may say."""

from pathlib import Path

import pytest

from headwater.errors import InvalidProject
from headwater.model.keeping import LineageKind, LineageWish
from headwater.project.file import load


def keep(folder: Path, said: str) -> tuple[LineageWish, ...]:
    (folder / "views").mkdir()
    (folder / "views/orders.sql").write_text("SELECT 1")
    (folder / "headwater.toml").write_text(f'[project]\nname = "shop"\n[views.orders]\nkeep = {said}\n')
    return load(folder).view("orders").keep


def test_lineage_by_segment_each_once(tmp_path: Path) -> None:
    wishes = keep(tmp_path, '["lineage:join_1", "split:group_2", "lineage:join_1"]')
    assert wishes == (
        LineageWish(kind=LineageKind.VIEW, of="join_1"),
        LineageWish(kind=LineageKind.SPLIT, of="group_2"),
    )
    assert [str(wish) for wish in wishes] == ["lineage:join_1", "split:group_2"]


@pytest.mark.parametrize("said", ['["everything:join_1"]', '["lineage"]', '["lineage:"]', '"lineage:join_1"'])
def test_what_does_not_say_what_to_keep_is_refused(tmp_path: Path, said: str) -> None:
    with pytest.raises(InvalidProject) as refused:
        keep(tmp_path, said)
    assert refused.value.code == "HW-103"
    assert "headwater.toml:4" in refused.value.summary
