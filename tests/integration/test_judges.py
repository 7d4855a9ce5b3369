"""`check` names the engine that judged: DuckDB where it gives what the warehouse shows, else Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from one_relation_world import R, resolved, settle, started_source, stepped, write
from pyspark.sql import SparkSession

from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.stored_bag import Bag, held
from headwater.judge import check as checking
from headwater.judge.check import check_views
from headwater.judge.result import ViewCheck
from headwater.model.position import Tick
from headwater.observe.events import CheckEstimated, CheckProgress, Event
from headwater.project.resolve import ResolvedProject
from headwater.warehouse.journal import TableChange
from headwater.warehouse.kept_table import KeptTable

TEXTS = {
    "tops": "SELECT x, max(y) AS top FROM shop.r GROUP BY x",
    "hashed": "SELECT k, xxhash64(x) AS h FROM shop.r",  # a function that DuckDB has not
}
BAD = Tick(4)


@pytest.fixture
def meant(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ResolvedProject]:
    """Return a maintained project whose view "tops" lost what changed at one tick."""
    change = KeptTable.change

    def forgetful(table: KeptTable, rows: Bag, upto: Tick, after: Tick | None = None) -> TableChange | None:
        added = rows if "/tops/" not in table.folder else ArrowBag(held(rows).table.slice(0, 0))
        return change(table, added, upto, after)

    source = started_source()
    made = resolved(spark, tmp_path, source, TEXTS)
    with stepped(spark, made) as maintainer:
        settle(maintainer)
        write(source, Random(1), 2)
        settle(maintainer)
        with monkeypatch.context() as broken:
            broken.setattr(KeptTable, "change", forgetful)
            source.commit({R: {(100, 77, 5): 1}})
            settle(maintainer)
        yield made


def judged(spark: SparkSession, meant: ResolvedProject) -> dict[str, ViewCheck]:
    heard: list[Event] = []
    found = {one.view: one for one in check_views(spark, meant, None, None, heard.append).views}
    estimated = [place for place, event in enumerate(heard) if isinstance(event, CheckEstimated)]
    for view, one in found.items():
        told = [place for place, event in enumerate(heard) if isinstance(event, CheckProgress) and event.view == view]
        last = heard[told[-1]]
        assert isinstance(last, CheckProgress)
        assert last.states_checked == last.states_expected == one.verdict.states_checked
        assert any(place < told[-1] for place in estimated), "how long it takes is said before the end"
    return found


def test_the_certificate_names_the_engines(
    spark: SparkSession, meant: ResolvedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = judged(spark, meant)
    assert found["hashed"].kept
    assert found["hashed"].judged_by == {"Spark": 4}, "DuckDB cannot run it"
    assert (found["tops"].verdict.first_bad_tick, found["tops"].judged_by) == (BAD, {"DuckDB": 3, "Spark": 1})
    monkeypatch.setattr(checking, "find_spec", lambda _: None)
    without = judged(spark, meant)
    assert without["tops"].judged_by == {"Spark": 4}, "DuckDB is not installed"
    assert without["tops"].verdict == found["tops"].verdict
