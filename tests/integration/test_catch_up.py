"""Views that stand at different ticks are brought together in as few batches as can be, and many are born together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from one_relation_world import R, resolved, settle, started_source, stepped, write
from pyspark.sql import DataFrame, SparkSession

from headwater.demo.recompute import stored_history
from headwater.model.position import Tick
from headwater.model.settings import DEFAULTS
from headwater.model.transaction import SeenUpTo
from headwater.sources.scripted import ScriptedSource, Values
from headwater.warehouse.checkpoint import Checkpoint
from headwater.warehouse.commit_record import CommitKind
from headwater.warehouse.query import Warehouse

Rows = Counter[Values]


def _extremes(rows: Rows) -> Rows:
    groups: dict[object, list[int]] = {}
    for _, x, y in rows.elements():
        groups.setdefault(x, []).append(int(str(y)))
    return Counter((x, max(values)) for x, values in groups.items())


VIEWS: Mapping[str, tuple[str, Callable[[Rows], Rows]]] = {
    "few": ("SELECT k, y FROM shop.r WHERE x > 1", lambda rows: Counter((k, y) for k, x, y in rows if int(str(x)) > 1)),
    "extremes": ("SELECT x, max(y) AS top FROM shop.r GROUP BY x", _extremes),
    "recomputed": ("SELECT x, max(y) AS top FROM shop.r GROUP BY x ORDER BY x", _extremes),
    "pairs": (
        "SELECT a.k, b.k AS other FROM shop.r AS a JOIN shop.r AS b ON a.x = b.x AND a.y > b.y",
        lambda rows: Counter(
            (a[0], b[0]) for a in rows for b in rows if a[1] == b[1] and int(str(a[2])) > int(str(b[2]))
        ),
    ),
}
"""The texts of views, and what they should be, computed from the relation's rows."""


TEXTS = {name: sql for name, (sql, _) in VIEWS.items()}


def check_every_tick(spark: SparkSession, folder: Path, source: ScriptedSource) -> None:
    """Compare what readers see of every view at every tick with what its rows should be; tick n is transaction n."""
    warehouse = Warehouse.open(str(folder / "warehouse"))
    last = Tick(len(source.database.transactions))
    for name, (_, expected) in VIEWS.items():
        assert warehouse.frontier(name) == last
        shown = stored_history(spark, warehouse, name, last)
        state = Counter(shown.start)
        for tick in range(shown.birth, last + 1):
            if tick > shown.birth:
                state.update(shown.changes.get(Tick(tick), {}))
            assert +state == expected(+source.database.state(R, SeenUpTo(last=tick))), f"{name} at tick {tick}"
            assert all(count >= 0 for count in state.values())


def batches(folder: Path, after: int) -> list[tuple[Tick, Tick]]:
    commits = [one for one in Warehouse.open(str(folder / "warehouse")).commits.read() if one.kind is CommitKind.BATCH]
    told = [one.record.statistics for one in commits if one.record.statistics is not None]
    return [(one.lo, one.hi) for one in told][after:]


@pytest.mark.parametrize(("batch_ticks", "least"), [(1_000, 1), (20, 2)])
def test_views_that_stand_at_different_ticks_catch_up_in_as_few_batches_as_can_be(
    spark: SparkSession, tmp_path: Path, batch_ticks: int, least: int
) -> None:
    source, rng = started_source(), Random(3)
    with stepped(spark, resolved(spark, tmp_path, source, TEXTS, batch_ticks)) as maintainer:
        settle(maintainer)
        left = list(VIEWS)
        is_due = maintainer.timetable.is_due
        while left:  # one view after the other stands still
            maintainer.timetable.is_due = lambda view, last: view.name in left and is_due(view, last)
            write(source, rng, 3)
            settle(maintainer)
            left.pop()
        frontiers = {view.frontier for view in maintainer.views.values()}
        assert len(frontiers) == len(VIEWS), "all stand at different ticks"
    before = len(batches(tmp_path, 0))
    write(source, rng, 25)
    with stepped(spark, resolved(spark, tmp_path, source, TEXTS, batch_ticks)) as maintainer:
        settle(maintainer)
    found = batches(tmp_path, before)
    assert len(found) == least, found
    check_every_tick(spark, tmp_path, source)


def test_views_are_born_the_same_whether_their_rows_are_few_or_many(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, rng = started_source(), Random(4)
    written: list[str] = []
    write_from_dataframe = Checkpoint.write_from_dataframe

    def noted(checkpoint: Checkpoint, frame: DataFrame, at: Tick) -> bool:
        written.append(checkpoint.table.path)
        return write_from_dataframe(checkpoint, frame, at)

    monkeypatch.setattr(Checkpoint, "write_from_dataframe", noted)
    for few in (20_000, 20, 0):  # all in memory; inputs there, results too many; all written by Spark
        settings = replace(DEFAULTS, bootstrap=replace(DEFAULTS.bootstrap, small_rows=few))
        folder = tmp_path / str(few)
        with stepped(spark, resolved(spark, folder, source, TEXTS, settings=settings)) as maintainer:
            settle(maintainer)
            assert bool(written) == (few < 100), "few rows take no job of Spark's to be written"
            write(source, rng, 3)
            settle(maintainer)
        check_every_tick(spark, folder, source)
