"""The JSON schema of the project file knows what its reader knows, and refuses what it refuses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from headwater.errors import InvalidProject
from headwater.project.file import load
from headwater.project.schema import project_schema

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = project_schema()
BEGINNING = '[project]\nname = "shop"\n[sources.a]\nurl = "scripted://a"\n[sources.b]\nurl = "scripted://b"\n'
PROJECTS = sorted([*(ROOT / "examples").rglob("headwater.toml")])
BLOCKS = [
    block
    for page in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    for block in re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    if re.search(r"^\[(project|sources|warehouse|views|settings|maintenance)", block, flags=re.MULTILINE)
]


def accepts(text: str) -> bool:
    try:
        fastjsonschema.compile(SCHEMA)(tomllib.loads(text))
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True


def is_read(folder: Path, text: str) -> bool:
    (folder / "views").mkdir(exist_ok=True)
    (folder / "views" / "v.sql").write_text("SELECT 1 AS one")
    (folder / "headwater.toml").write_text(text)
    try:
        load(folder)
    except InvalidProject:
        return False
    return True


def keys_of_reader(folder: Path, table: str) -> set[str]:
    """Return the keys that the reader says it knows, when it is given one that it does not know."""
    header = f"[{table}]\n" if table else ""
    text = f"{header}no_such_key = 1\n" if not table else f"{BEGINNING}{header}no_such_key = 1\n"
    text = (
        f"no_such_key = 1\n{BEGINNING}"
        if not table
        else text.replace('[project]\nname = "shop"\n[project]', "[project]")
    )
    (folder / "views").mkdir(exist_ok=True)
    (folder / "views" / "v.sql").write_text("SELECT 1 AS one")
    (folder / "headwater.toml").write_text(text)
    with pytest.raises(InvalidProject) as refused:
        load(folder)
    assert refused.value.code == "HW-101", refused.value
    return set(refused.value.detail.partition(" knows ")[2].split(", "))


def table_of(path: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA
    for part in path.split(".") if path else ():
        inner = found.get("properties", {}).get(part)
        found = inner or found.get("additionalProperties") or next(iter(found["patternProperties"].values()))
    return found


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ("", ""),
        ("warehouse", "warehouse"),
        ("maintenance", "maintenance"),
        ("defaults", "defaults"),
        ('relations."a.t"', "relations.any"),
        ("views.v", "views.any"),
        ("global_transactions", "global_transactions"),
        ("settings", "settings"),
        *((f"settings.{name}", f"settings.{name}") for name in SCHEMA["properties"]["settings"]["properties"]),
    ],
)
def test_the_keys_are_those_of_the_reader(tmp_path: Path, table: str, path: str) -> None:
    assert set(table_of(path)["properties"]) == keys_of_reader(tmp_path, table)


@pytest.mark.parametrize("store", ["s3", "gs", "az"])
def test_the_options_of_stores_are_those_of_the_reader(tmp_path: Path, store: str) -> None:
    text = f'{BEGINNING}[warehouse]\npath = "{store}://bucket/shop"\n[warehouse.storage]\nno_such_key = 1\n'
    (tmp_path / "views").mkdir()
    (tmp_path / "headwater.toml").write_text(text)
    with pytest.raises(InvalidProject) as refused:
        load(tmp_path)
    known = set(refused.value.detail.partition(" knows ")[2].split(", "))
    assert known == {
        name for name, one in table_of("warehouse.storage")["properties"].items() if f"{store}://" in one["description"]
    }


@pytest.mark.parametrize("file", PROJECTS, ids=lambda file: file.parent.name)
def test_examples_are_accepted(file: Path) -> None:
    assert accepts(file.read_text())


@pytest.mark.parametrize("block", BLOCKS)
def test_what_the_documents_show_is_accepted(block: str) -> None:
    table = tomllib.loads(block)
    assert accepts(block if "project" in table else f'[project]\nname = "shop"\n{block}')


@pytest.mark.parametrize(
    "text",
    [
        '[views.v]\nrefresh = "every 10 min"\nkeep = ["lineage:v"]\ngroup_tables = ["g"]\npublish = true',
        '[views.v]\nrefresh = "on demand"\ngroup_tables = "none"\nguarantee = "strong"\npublish = "out"',
        '[warehouse]\nretention = "1_000 ticks"',
        '[warehouse]\nretention = "36 hours"',
        '[maintenance]\nmemory = "1.5 GiB"\nbatch_interval = "250ms"',
        '[settings.batch]\nheld_rows = 5\nslow_view_wait = "2 s"',
        '[global_transactions]\nsources = ["a", "b"]\nby = "gid"',
        '[relations."a.t"]\nreading = "probe"',
    ],
)
def test_what_the_reader_takes_is_accepted(tmp_path: Path, text: str) -> None:
    assert is_read(tmp_path, BEGINNING + text)
    assert accepts(BEGINNING + text)


@pytest.mark.parametrize(
    "text",
    [
        '[views.v]\nrefresh = "sometimes"',
        '[views.v]\nguarantee = "perfect"',
        "[views.v]\npublish = 3",
        "[views.v]\nstrict = 1",
        '[views.v]\nmaintenance = "by hand"',
        '[warehouse]\nretention = "7 fortnights"',
        "[maintenance]\nbatch_ticks = 0",
        '[maintenance]\nmemory = "2 s"',
        "[maintenance]\nmemory = 2",
        "[settings.upkeep]\ncheckpoint_time_percent = 101",
        '[settings.batch]\nheld_rows = "5"',
        "[sources.c]\nprobe_connections = 2",
        '[sources.Capital]\nurl = "scripted://c"',
        '[global_transactions]\nsources = ["a"]\nby = "gid"',
        '[relations."a.t"]\nreading = "never"',
        "[setings]\n",
    ],
)
def test_what_the_reader_refuses_is_refused(tmp_path: Path, text: str) -> None:
    assert not is_read(tmp_path, BEGINNING + text)
    assert not accepts(BEGINNING + text)


def test_every_setting_is_described() -> None:
    groups = SCHEMA["properties"]["settings"]["properties"]
    assert all(one["description"] for group in groups.values() for one in (group, *group["properties"].values()))
