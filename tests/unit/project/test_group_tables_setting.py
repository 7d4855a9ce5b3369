"""What `group_tables` of a view may say."""

from pathlib import Path

import pytest

from headwater.errors import InvalidProject
from headwater.model.keeping import AllGroupTables, GroupTables, TheseGroupTables
from headwater.project.file import load


def said(folder: Path, line: str) -> GroupTables:
    (folder / "views").mkdir()
    (folder / "views/orders.sql").write_text("SELECT 1")
    (folder / "headwater.toml").write_text(f'[project]\nname = "shop"\n[views.orders]\n{line}\n')
    return load(folder).view("orders").group_tables


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("", AllGroupTables()),
        ('group_tables = "all"', AllGroupTables()),
        ('group_tables = "none"', TheseGroupTables(())),
        ('group_tables = ["group_1", "join_2"]', TheseGroupTables(("group_1", "join_2"))),
        ("group_tables = []", TheseGroupTables(())),
    ],
)
def test_all_none_or_some(tmp_path: Path, line: str, meant: GroupTables) -> None:
    assert said(tmp_path, line) == meant


@pytest.mark.parametrize("line", ['group_tables = "some"', "group_tables = 1", "group_tables = [1]"])
def test_anything_else_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidProject) as refused:
        said(tmp_path, line)
    assert "headwater.toml:4" in refused.value.summary
