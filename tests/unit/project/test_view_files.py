"""Which files of `views/` are views, and how they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import InvalidProject
from headwater.project.file import load

SQL = "SELECT id FROM shop.sales"
TOML = '[project]\nname = "store"\n[sources.shop]\nurl = "${SHOP_URL}"\n'


def project(folder: Path, *views: str, mark: str = "") -> Path:
    (folder / "headwater.toml").write_text(mark + TOML, encoding="utf-8")
    for view in views:
        file = folder / "views" / view
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(mark + SQL, encoding="utf-8")
    return folder


def test_what_editors_keep_beside_a_file_is_no_view(tmp_path: Path) -> None:
    left = (".#sold.sql", "sold.sql~", ".sold.sql.swp", "#sold.sql#", "~sold.sql", ".git/other.sql", "._sold.sql")
    folder = project(tmp_path, "sold.sql", *left)
    (folder / "views" / ".#open.sql").symlink_to("nobody@nowhere.1234")  # as Emacs locks a file
    assert [view.name for view in load(folder).views] == ["sold"]


def test_views_in_folders_are_read_and_named_with_their_folder(tmp_path: Path) -> None:
    views = load(project(tmp_path, "sold.sql", "daily/bought.sql", "daily/old/gone.sql")).views
    assert {view.name: view.path_text for view in views} == {
        "sold": "views/sold.sql",
        "bought": "views/daily/bought.sql",
        "gone": "views/daily/old/gone.sql",
    }


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidProject, match=r"views/daily/sold.sql and views/sold.sql") as caught:
        load(project(tmp_path, "sold.sql", "daily/sold.sql"))
    assert caught.value.code == "HW-170"


def test_a_name_in_capitals_is_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(InvalidProject, match=r'"Sold" cannot be the name of a view \(views/Sold.SQL\)'):
        load(project(tmp_path, "Sold.SQL"))


def test_a_byte_order_mark_is_not_part_of_a_text(tmp_path: Path) -> None:
    read = load(project(tmp_path, "sold.sql", mark="\ufeff"))
    assert (read.name, [view.sql for view in read.views]) == ("store", [SQL])
