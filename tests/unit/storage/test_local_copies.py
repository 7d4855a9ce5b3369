"""Copies on this machine: in a warehouse that is a folder, else in a cache folder, and deleted with their process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.model.memory_budget import Share
from headwater.storage.local_copies import clear_copies, copies_folder, use_cache
from headwater.storage.mapped_rows import MappedFolder, clear_mapped

REMOTE = "s3://headwater-test/elsewhere/shop"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    use_cache(REMOTE, None)
    return tmp_path / "headwater"


def test_a_folder_has_its_copies_in_itself_unless_it_is_said(tmp_path: Path) -> None:
    warehouse = str(tmp_path / "w")
    assert copies_folder(f"{warehouse}/views/v/1") == tmp_path / "w/views/v/1"
    use_cache(warehouse, tmp_path / "fast")
    beside = copies_folder(f"{warehouse}/views/v/1")
    assert beside.is_relative_to(tmp_path / "fast")
    assert beside.parts[-3:] == ("views", "v", "1")
    use_cache(warehouse, None)
    assert copies_folder(warehouse) == tmp_path / "w"


def test_an_object_store_has_its_copies_in_a_cache_folder(cache: Path, tmp_path: Path) -> None:
    for address in (f"{REMOTE}/views/v/1", "s3://headwater-test/unnoted/shop"):
        assert copies_folder(address).is_relative_to(cache)
    assert copies_folder(REMOTE) != copies_folder("s3://headwater-test/another/shop")
    assert copies_folder(REMOTE).parts[-2].startswith("shop-")
    use_cache(REMOTE, tmp_path / "said")
    assert copies_folder(REMOTE).is_relative_to(tmp_path / "said")


def test_what_ended_processes_left_is_deleted_and_nothing_else(cache: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    host = socket.gethostname()
    own, other = copies_folder(REMOTE), cache / "another-1234"
    gone = [own / "views", own.parent / f"{host}-{ended.pid}", other / f"{host}-{ended.pid}", own.parent / f"{host}-x"]
    kept = [own.parent / f"{host}-{os.getppid()}", own.parent / f"another-host-{ended.pid}", other / f"{host}-1"]
    for folder in (*gone, *kept):
        folder.mkdir(parents=True)
    clear_copies(REMOTE)
    assert [folder.exists() for folder in gone] == [False] * 4
    assert [folder.exists() for folder in kept] == [True] * 3


def test_rows_are_mapped_on_this_machine_wherever_their_table_is(cache: Path) -> None:
    folder = MappedFolder.below(f"{REMOTE}/segments/group_1/1", Share(0))
    held = pa.table({"id": [1, 2]})
    rows = folder.place(held.schema, [held])
    assert folder.path.is_relative_to(cache)
    assert rows.table["id"].to_pylist() == [1, 2]
    clear_mapped(REMOTE)
    assert not [file for file in cache.rglob("*") if file.is_file()]
    assert rows.table["id"].to_pylist() == [1, 2], "what is mapped stays readable"
