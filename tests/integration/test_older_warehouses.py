"""Warehouses that an older version wrote are opened and go on: one small fixture per format.

The story is views and the transactions of scripted sources; a fixture is the warehouse that the older version made of
its first batches. The rest is played by this version, and every state is compared with the views' own SQL.
`make_format_2.py` and `make_format_3.py` beside the fixtures have made them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from journaled import rows_at
from pyspark.sql import SparkSession

import headwater
from headwater.errors import WarehouseRefused
from headwater.fail_points import VARIABLE
from headwater.observe.events import Event, WarehouseUpgraded
from headwater.prove.play import play_in, sources_of
from headwater.prove.trial import Trial
from headwater.sources.scripted import ScriptedSource
from headwater.sources.scripted.database import ScriptedSlot
from headwater.warehouse.format import FORMAT, check_format
from headwater.warehouse.query import Warehouse
from headwater.warehouse.upgrade import upgrade

FIXTURES = Path(__file__).parent / "older_warehouses"
STORY = Trial.read((FIXTURES / "story.json").read_text(encoding="utf-8"))
FORMATS = (2, 3)
UPGRADE = "import sys; from headwater.warehouse.upgrade import upgrade; upgrade(sys.argv[1], print)"


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The folder of a project whose warehouse has the format that the test names."""
    with tarfile.open(FIXTURES / f"format_{request.param}.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path


def sources_as_left(warehouse: Warehouse) -> dict[str, ScriptedSource]:
    """Return the sources as the older version left them: with its slots, and what they had told."""
    sources = sources_of(STORY, done=warehouse.log.last_tick - len(STORY.before))
    for name, position in warehouse.log.positions().items():
        slot = warehouse.log.slots().get(name)  # before slots were noted, they were named after the project
        sources[name].database.history = position.history
        sources[name].database.slots[slot.name if slot else name] = ScriptedSlot(forgotten_to={"": position.offset})
    return sources


def written(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file of a warehouse with what is in it, and when it was written."""
    return {
        str(file): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in (folder / "warehouse").rglob("*")
        if file.is_file()
    }


@pytest.mark.parametrize("folder", FORMATS, indirect=True)
def test_it_is_opened_and_goes_on(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Warehouse.open(str(folder / "warehouse"))
    written_format = check_format(before.path)
    held, births = before.log.last_tick, {name: entry.birth for name, entry in before.catalog().views.items()}
    story = STORY.with_views(view for view in STORY.views if view.name in births)
    heard: list[Event] = []
    monkeypatch.setattr("headwater.prove.play.ignore_event", heard.append)
    played = play_in(spark, story, folder, sources_as_left(before), done=held - len(STORY.before))
    assert not played.wrong
    assert not played.refused
    assert not played.stopped
    after = Warehouse.open(before.path)
    assert after.log.last_tick == len(STORY.before) + len(STORY.after) > held
    assert {name: entry.birth for name, entry in after.catalog().views.items()} == births
    assert min(played.states.values()) > 1
    told = WarehouseUpgraded(warehouse=before.path, before=written_format, after=FORMAT)
    assert [one for one in heard if isinstance(one, WarehouseUpgraded)] == [told]


@pytest.mark.parametrize("folder", FORMATS, indirect=True)
def test_killed_in_the_upgrade_it_is_upgraded_by_the_next(folder: Path) -> None:
    warehouse = str(folder / "warehouse")
    states, found = shown(warehouse), check_format(warehouse)
    for step in ("format", "table", "journal"):
        for when in ("before", "after"):
            ended = subprocess.run(
                [sys.executable, "-c", UPGRADE, warehouse],
                env={**os.environ, VARIABLE: f"{when} {step} upgrade", "PYTHONUNBUFFERED": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
            before = found if step == "format" else 3
            announced = f"{WarehouseUpgraded(warehouse=warehouse, before=before, after=FORMAT)}\n"
            assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, announced), (when, step)
            assert shown(warehouse) == states
    heard: list[Event] = []
    upgrade(warehouse, heard.append)
    assert not heard
    assert shown(warehouse) == states


def shown(path: str) -> dict[tuple[str, int], Counter[str]]:
    """Return the rows of every view at every tick, and of its auxiliary tables."""
    warehouse = Warehouse.open(path)
    found = {}
    for view, entry in warehouse.catalog().views.items():
        for name, table in {view: warehouse.kept_table(view), **warehouse.kept_segments(view)}.items():
            for tick in range(entry.birth, warehouse.frontier(view) + 1):
                found[f"{view} {name}", tick] = Counter(map(str, rows_at(table, tick).elements()))
    return found


@pytest.mark.parametrize("folder", FORMATS, indirect=True)
def test_readers_read_it_and_write_nothing(spark: SparkSession, folder: Path) -> None:
    del spark  # the one session of these tests
    project_of_readers(folder)
    as_it_was = written(folder)
    with headwater.open(folder) as project:
        kept = Warehouse.open(str(folder / "warehouse")).catalog().views.keys()
        frontiers = {view.name: view.frontier for view in project.status().views if view.name in kept}
        assert frontiers == dict.fromkeys(kept, len(STORY.before) + sum(STORY.cuts[:2]))
        assert project.history("joined").commits
        assert project.query("SELECT COUNT(*) AS n FROM joined").table.num_rows == 1
    assert written(folder) == as_it_was


@pytest.mark.parametrize("unknown", [1, FORMAT + 1])
@pytest.mark.parametrize("folder", [2], indirect=True)
def test_readers_refuse_a_format_that_they_do_not_know(folder: Path, unknown: int) -> None:
    project_of_readers(folder)
    (folder / "warehouse" / "format.json").write_text(f'{{"format": {unknown}}}')
    as_it_was = written(folder)
    with headwater.open(folder) as project:
        for read in (project.status, lambda: project.history("joined"), lambda: project.query("SELECT 1 FROM joined")):
            with pytest.raises(WarehouseRefused, match="HW-404"):
                read()
    assert written(folder) == as_it_was


def project_of_readers(folder: Path) -> None:
    """Write the project's file and views; its sources are not there any more, and no reader needs them."""
    text = '[project]\nname = "prove"\n[warehouse]\npath = "warehouse"\n'
    text += "".join(f'[sources.{name}]\nurl = "postgresql://nobody@localhost:1/none"\n' for name in ("a", "b"))
    (folder / "headwater.toml").write_text(text)
    (folder / "views").mkdir()
    for view in STORY.views:
        (folder / "views" / f"{view.name}.sql").write_text(view.sql)
