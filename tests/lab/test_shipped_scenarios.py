"""The scenarios that ship: each goes as it is told, ours keep what they claim, and the literal readings do not."""

from __future__ import annotations

import pytest

from headwater_lab.entrants import entrant, literal, published
from headwater_lab.library import FOLDER, load_scenario, shipped_names
from headwater_lab.replay import replay
from headwater_lab.scenario_text import format_scenario, parse_scenario

NAMES = shipped_names()
LITERAL = {described.name for described in literal()}
WITHOUT_A_FAILING_READING = {"version-numbers-example-2", "key-not-in-the-view"}


@pytest.mark.parametrize("name", NAMES)
def test_goes_as_it_is_told(name: str) -> None:
    scenario = load_scenario(name)
    for algorithm, expected in scenario.expected.items():
        played = replay(scenario, entrant(algorithm))
        assert played.departures == (), algorithm
        assert played.verdict.guarantee is expected, f"{algorithm}: {played.verdict}"


@pytest.mark.parametrize("name", NAMES)
def test_the_literal_reading_fails_and_ours_keeps_its_claim(name: str) -> None:
    scenario = load_scenario(name)
    for algorithm, expected in scenario.expected.items():
        if algorithm in LITERAL:
            assert expected < entrant(algorithm).guarantee, algorithm
        else:
            assert expected >= entrant(algorithm).guarantee, algorithm
    assert bool(LITERAL & set(scenario.expected)) is (name not in WITHOUT_A_FAILING_READING)


@pytest.mark.parametrize("name", NAMES)
def test_every_published_algorithm_keeps_its_guarantee_on_these_moves(name: str) -> None:
    scenario = load_scenario(name)
    for described in published():
        if described.missing(scenario.setting.view):
            continue
        played = replay(scenario, described)
        assert played.verdict.guarantee >= described.guarantee, f"{described.name}: {played.verdict}"
        assert played.any_order is not None
        assert played.any_order >= played.verdict.guarantee, "delivery order is one of the orders"


@pytest.mark.parametrize("name", NAMES)
def test_is_written_as_it_is_printed(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    scenario = parse_scenario(text, name=name)
    assert format_scenario(scenario) == text
    assert parse_scenario(format_scenario(scenario), name=name) == scenario


def test_every_literal_reading_fails_in_some_scenario() -> None:
    shown = {algorithm for name in NAMES for algorithm in load_scenario(name).expected}
    assert shown >= LITERAL


def test_figure_5_shows_the_states_of_the_paper() -> None:
    scenario = load_scenario("figure-5")
    states = [{(7, 8): 2}, {(5, 6): 2, (7, 8): 2}, {(5, 6): 2}, {(5, 6): 1}]
    assert list(replay(scenario, entrant("sweep")).shown) == states
    assert replay(scenario, entrant("sweep-printed-sign")).shown[-1] == {(7, 8): 2, (5, 6): 1}


def test_example_1_counts_one_too_many_without_a_correction() -> None:
    scenario = load_scenario("version-numbers-example-1")
    assert replay(scenario, entrant("sweep-no-compensation")).shown[-1] == {("c1",): 3}
    assert replay(scenario, entrant("version-numbers")).shown[-1] == {("c1",): 2}
