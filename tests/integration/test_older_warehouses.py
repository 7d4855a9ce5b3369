"""Warehouses that an older version wrote are opened and go on: one small fixture per format.

A fixture is a story (views and the transactions of scripted sources) and the warehouse that the older version made of
its first batches. The rest is played by this version, and every state is compared with the views' own SQL.
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.prove.play import play_in, sources_of
from headwater.prove.trial import Trial
from headwater.sources.scripted.database import ScriptedSlot
from headwater.warehouse.query import Warehouse

FIXTURES = Path(__file__).parent / "older_warehouses"


@pytest.mark.parametrize("fixture", sorted(one.name for one in FIXTURES.iterdir()))
def test_it_is_opened_and_goes_on(spark: SparkSession, fixture: str, tmp_path: Path) -> None:
    with tarfile.open(FIXTURES / fixture / "warehouse.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    story = Trial.read((FIXTURES / fixture / "story.json").read_text(encoding="utf-8"))
    before = Warehouse.open(str(tmp_path / "warehouse"))
    held, births = before.log.last_tick, {name: entry.birth for name, entry in before.catalog().views.items()}
    sources = sources_of(story, done=held - len(story.before))
    for name, slot in before.log.slots().items():
        database = sources[name].database
        database.history = before.log.positions()[name].history
        database.slots[slot.name] = ScriptedSlot(forgotten_to={"": before.log.positions()[name].offset})
    played = play_in(spark, story, tmp_path, sources, done=held - len(story.before))
    assert not played.wrong
    assert not played.refused
    assert not played.stopped
    after = Warehouse.open(str(tmp_path / "warehouse"))
    assert after.log.last_tick == len(story.before) + len(story.after) > held
    assert {name: entry.birth for name, entry in after.catalog().views.items()} == births
    assert min(played.states.values()) > 1
