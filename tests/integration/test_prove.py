"""A fixed small set of random views on every build, and what happens when the code is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from volume import volume

from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.stored_bag import Bag, held
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.prove.campaign import Campaign
from headwater.prove.result import ProveResult
from headwater.prove.shrink import possible
from headwater.prove.trial import Trial, TrialView, draw_history
from headwater.prove.truth import Truth
from headwater.warehouse.journal import TableChange
from headwater.warehouse.kept_table import KeptTable

TOTALS = TrialView(
    name="totals", sql="SELECT r.x, COUNT(*) AS n, SUM(r.y) AS s FROM a.r GROUP BY r.x", constructs=("group",)
)


def campaign(spark: SparkSession, folder: Path) -> Campaign:
    return Campaign(spark=spark, seed=20, folder=folder, report=lambda _: None)


def test_random_views_are_what_their_sql_gives_at_every_tick(spark: SparkSession, tmp_path: Path) -> None:
    proof = campaign(spark, tmp_path)
    told: list[ProveResult] = []
    proof.report = told.append
    found = proof.run(seconds=volume(1, 300), view_limit=None)
    assert found.is_proved
    assert found.view_count >= 4
    assert found.state_count > 300
    assert told[-1].state_count == found.state_count
    assert not list(tmp_path.iterdir()), "nothing was wrong"


def test_a_wrong_state_is_found_made_small_and_played_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = KeptTable.change

    def forgetful(table: KeptTable, rows: Bag, upto: Tick, after: Tick | None = None) -> TableChange | None:
        """Lose the rows of x = 1, as a wrong law would."""
        entries = held(rows).table
        kept = entries.filter(pc.not_equal(entries["x"], 1).fill_null(True)) if "x" in rows.columns else entries
        return change(table, ArrowBag(kept), upto, after)

    trial = draw_history(5, 40).with_views([TOTALS])
    proof = campaign(spark, tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(KeptTable, "change", forgetful)
        proof.play(trial)
    [wrong] = proof.result().wrong
    assert "(1, " in wrong.difference
    small = Trial.read(Path(wrong.file).read_text())
    assert len(small.after) < len(trial.after)
    assert json.loads(small.text())["views"][0]["sql"] == TOTALS.sql
    again = campaign(spark, tmp_path)
    again.replay(small)
    assert not again.result().wrong, "the code is right again"
    with monkeypatch.context() as broken:
        broken.setattr(KeptTable, "change", forgetful)
        again.replay(small)
    assert again.result().wrong


FOUND = {
    "groups by arrays": "SELECT q.e, COUNT(*) AS n, MAX(q.id) AS m "
    "FROM (SELECT id, ARRAY(x, 1) AS e FROM a.t) AS q GROUP BY q.e",
    "joins on arrays": "SELECT q.e, p.y FROM (SELECT ARRAY(x, y) AS e FROM a.r) AS q "
    "JOIN (SELECT ARRAY(id, y) AS f, y FROM b.u) AS p ON q.e = p.f",
    "arrays among arrays": "SELECT q.e FROM (SELECT ARRAY(x, y) AS e FROM a.r) AS q "
    "WHERE q.e IN (SELECT ARRAY(id, y) FROM b.u)",
    "percentiles": "SELECT r.s, PERCENTILE(r.x, 0.25) AS p FROM a.r GROUP BY r.s",
}
"""Views that `prove` once found wrong, stopped or refused without a reason."""


def test_what_was_found_stays_mended(spark: SparkSession, tmp_path: Path) -> None:
    views = [
        TrialView(name=f"v{number}{'_bare' if bare else ''}", sql=sql, constructs=(name,), group_tables=not bare)
        for number, (name, sql) in enumerate(FOUND.items())
        for bare in (False, True)
    ]
    proof = campaign(spark, tmp_path)
    proof.replay(draw_history(5, 60).with_views(views))
    found = proof.result()
    assert found.is_proved, found
    assert not found.refused
    assert not found.stopped
    assert found.state_count > 30 * len(views)


def test_spark_judges_sums_of_doubles_by_their_definition(spark: SparkSession) -> None:
    """Added one after the other, 1e16, 1, 1 and -1e16 give 0. Their sum is 2."""
    value = "CASE r.x WHEN 1 THEN 1e16D WHEN 2 THEN -1e16D ELSE 1D END"
    rows = {(x, None, None, None): count for x, count in ((1, 1), (3, 2), (2, 1))}
    truth = Truth(transactions=[("a", {RelationName(source="a", name="r"): rows})], ticks=[(Tick(1), "a", 1)])
    found = {}
    for name, sql in {
        "sum": f"SELECT SUM({value}) AS n FROM a.r",
        "window": f"SELECT DISTINCT SUM({value}) OVER () AS n FROM a.r",
        "moments": f"SELECT COVAR_POP({value}, CASE WHEN r.x <> 2 THEN 1D END) AS n FROM a.r",
    }.items():
        [state] = truth.on_spark(spark, TrialView(name=name, sql=sql, constructs=()), [Tick(1)])
        found[name] = list(state.elements())
    assert found == {"sum": [(2.0,)], "window": [(2.0,)], "moments": [(0.0,)]}


def test_a_trial_survives_its_file() -> None:
    trial = draw_history(3, 20).with_views([TOTALS])
    assert Trial.read(trial.text()) == trial


def test_what_is_left_of_a_history_is_possible() -> None:
    trial = draw_history(4, 40)
    left = possible(trial.before, trial.after[::2])
    held: dict[object, int] = {}
    for _, changes in (*trial.before, *left):
        for name, rows in changes.items():
            for row, count in rows.items():
                held[name, row] = held.get((name, row), 0) + count
                assert held[name, row] >= 0
