"""`headwater lab papers`: what the experiments find, and the page and pictures they become."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headwater.cli.app import app
from headwater_lab.cli import papers as papers_verb
from headwater_lab.papers.advice import LITERAL, AdviceExperiments, run_advice
from headwater_lab.papers.charts import draw_pictures
from headwater_lab.papers.report import write_papers

SMALL = partial(run_advice, most_fan_out=3, most_levels=3, random_count=5)


@pytest.fixture(scope="module")
def advice() -> AdviceExperiments:
    return SMALL(tell=lambda _: None)


def choices(advice: AdviceExperiments) -> list[tuple[object, ...]]:
    groups = (advice.tpc_d, advice.synthetic, advice.failing, advice.by_fan_out, advice.by_levels)
    return [
        (tried.view, ran.algorithm, ran.kept, ran.moves, ran.priced_count, ran.optimality)
        for tried in (advice.high_profit, *(one for group in groups for one in group))
        for ran in tried.ran
    ]


def test_nothing_but_seconds_differs_from_run_to_run(advice: AdviceExperiments) -> None:
    again = SMALL(tell=lambda _: None)
    assert choices(again) == choices(advice)
    assert again.random == advice.random


def test_nothing_is_cheaper_than_exact(advice: AdviceExperiments) -> None:
    for tried in (advice.high_profit, *advice.tpc_d, *advice.synthetic, *advice.failing):
        assert tried.of("exact").optimality == pytest.approx(1)
        assert all(ran.optimality <= 1 + 1e-12 for ran in tried.ran)


def test_what_the_paper_says_of_its_views(advice: AdviceExperiments) -> None:
    for tried in advice.tpc_d:
        assert tried.of("greedy").optimality == tried.of("three-step").optimality == pytest.approx(1)
        assert tried.of("none").optimality < tried.of("naive").optimality
    synthetic = {tried.view: tried for tried in advice.synthetic}
    assert all(tried.of("three-step").optimality > 0.99 for tried in advice.synthetic)
    assert synthetic["v3"].of("none").optimality > synthetic["v1"].of("none").optimality
    assert synthetic["v5"].of("none").optimality < 0.5
    assert all(tried.of(LITERAL).optimality <= tried.of("three-step").optimality for tried in advice.tpc_d)


def test_what_depends_on_the_statistics_that_were_picked(advice: AdviceExperiments) -> None:
    groups = dict(advice.by_group_size)
    assert groups[3][4].of("none").optimality > groups[3][0].of("none").optimality
    for rows in (10, 100, 1_000):
        assert groups[rows][4].of("none").optimality < groups[rows][0].of("none").optimality
    greedy = [tried.of("greedy").optimality for rows in (10, 100, 1_000) for tried in groups[rows]]
    assert min(greedy) < 0.9
    assert all(tried.of("three-step").optimality > 0.99 for tried_ones in groups.values() for tried in tried_ones)


def test_searches_that_would_take_long_are_left_out(advice: AdviceExperiments) -> None:
    synthetic = {tried.view: tried for tried in advice.synthetic}
    assert not synthetic["v7"].has("exhaustive")
    assert advice.by_fan_out[1].has("exhaustive")
    assert not advice.by_fan_out[2].has("exhaustive")


def test_the_page_shows_every_picture_and_fills_every_gap(advice: AdviceExperiments, tmp_path: Path) -> None:
    report = write_papers(advice, tmp_path / "papers", draw_pictures)
    page, *pictures = report.files
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r'<img src="([^"]+)"', text)) == {picture.name for picture in pictures}
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    assert len(pictures) == 7
    assert "$" not in text
    for number in ("576", "0.5422", "0.6391", "9.25e+06", "6.07e+07", "8.28e+18", "5.44e+13", "2411.68, not run"):
        assert number in text


def test_the_verb_tells_what_it_wrote(
    advice: AdviceExperiments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(**_: object) -> AdviceExperiments:
        return advice

    monkeypatch.setattr(papers_verb, "run_advice", at_once)
    shown = CliRunner().invoke(app, ["lab", "papers", "--to", str(tmp_path / "shown")])
    assert shown.exit_code == 0
    assert f"wrote {tmp_path / 'shown' / 'index.html'}" in shown.stdout
    document = json.loads(CliRunner().invoke(app, ["lab", "papers", "--json", "--to", str(tmp_path)]).stdout)
    assert document["advice"]["high_profit"]["set_count"] == 576
    assert {one["case"] for one in document["kinds"]} == {"best", "average", "worst"}
