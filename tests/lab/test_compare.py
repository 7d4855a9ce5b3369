"""Comparing: the same recording for everybody, measures that add up, and misses that can be replayed."""

from __future__ import annotations

from random import Random

import pytest

from headwater.judge.grade import grade_sequence
from headwater.model.guarantee import Guarantee
from headwater_lab.batched import batched
from headwater_lab.chance import Chances, play
from headwater_lab.compare import ComparePlan, Comparison, compare_all
from headwater_lab.entrants import entrant, literal, published
from headwater_lab.grading import grade_in_any_order, right_in_delivery_order, states_by_vector
from headwater_lab.replay import replay
from headwater_lab.report import page_of
from headwater_lab.scenario import Scenario, ScenarioBlock, moves_of
from headwater_lab.scenario_text import format_scenario, parse_scenario
from headwater_lab.timed import Conditions, at_one_source, play_recording, record
from headwater_lab.world import Committed, Received

CONDITIONS = Conditions(source_count=3, interval=1.0, deletes=0.4, transaction_count=12)
PLAN = ComparePlan(seed=3, source_counts=(2, 3), intervals=(1.0, 0.3), deletes=(0.4,), transaction_count=12)


@pytest.fixture(scope="module")
def compared() -> tuple[Comparison, tuple[Scenario, ...]]:
    return compare_all(PLAN, (*published(), *literal()), lambda _: None)


def test_batched_sweep_on_messages_is_complete_in_every_interleaving() -> None:
    for seed in range(100):
        world = play(seed, batched, Chances())
        verdict = grade_sequence(world.right_states(), world.shown_states())
        assert verdict.guarantee is Guarantee.COMPLETE, f"seed {seed}: {verdict}"


def test_everybody_gets_the_same_transactions() -> None:
    recording = record(CONDITIONS, 5)
    committed = []
    for described in published():
        if described.missing(recording.setting.view):
            continue
        assert described.run is not None
        world = play_recording(recording, described.run, most_queries=1_000).world
        committed.append([event for event in world.events if isinstance(event, Committed)])
        assert sum(isinstance(event, Received) for event in world.events) == CONDITIONS.transaction_count
    assert len(committed) > 1
    assert all(one == committed[0] for one in committed)


def test_a_recording_comes_from_its_seed_alone() -> None:
    assert record(CONDITIONS, 5).transactions == record(CONDITIONS, 5).transactions
    assert record(CONDITIONS, 5).transactions != record(CONDITIONS, 6).transactions


def test_the_same_transactions_at_one_source() -> None:
    recording = record(CONDITIONS, 5)
    together = at_one_source(recording)
    assert together.setting.sources == ("s",)
    assert [one.at for one in together.transactions] == [one.at for one in recording.transactions]
    rows = recording.setting.recomputed(recording.setting.rows)
    assert together.setting.recomputed(together.setting.rows) == rows


def test_every_published_algorithm_keeps_its_guarantee(compared: tuple[Comparison, tuple[Scenario, ...]]) -> None:
    comparison, _ = compared
    names = {described.name for described in published()}
    assert comparison.left_out == ()
    for cell in comparison.cells:
        assert names <= {one.algorithm for one in cell.measured}
        assert all(one.kept for one in cell.measured if one.algorithm in names)


def test_measures_add_up(compared: tuple[Comparison, tuple[Scenario, ...]]) -> None:
    for cell in compared[0].cells:
        for one in cell.measured:
            assert one.messages_per_update == pytest.approx(2 * one.queries_per_update)
            assert one.installs_before_last_delivery <= one.install_count
            assert one.behind[0] == (0.0, 0)
            assert one.behind[-1][1] == 0, "in the end everything is shown"
            assert one.largest_query_bytes <= one.bytes_per_update * cell.conditions.transaction_count


def test_comparing_again_measures_the_same(compared: tuple[Comparison, tuple[Scenario, ...]]) -> None:
    again, _ = compare_all(PLAN, published(), lambda _: None)
    names = {described.name for described in published()}
    for cell, other in zip(compared[0].cells, again.cells, strict=True):
        assert tuple(one for one in cell.measured if one.algorithm in names) == other.measured


def test_a_run_that_missed_can_be_replayed(compared: tuple[Comparison, tuple[Scenario, ...]]) -> None:
    comparison, missed = compared
    assert missed, "some literal reading fails here"
    measured = {(cell.conditions, one.algorithm): one.guarantee for cell in comparison.cells for one in cell.measured}
    for scenario in missed:
        read = parse_scenario(format_scenario(scenario), name=scenario.name)
        played = replay(read, entrant(scenario.teller))
        assert played.verdict.guarantee < played.claim
        assert not played.as_expected
        assert played.verdict.guarantee in measured.values()


def test_any_world_can_be_written_and_replayed() -> None:
    described = entrant("sweep")
    assert described.run is not None
    for seed in range(20):
        world = play(seed, described.run, Chances(self_join=0, theta=0))
        scenario = Scenario(
            name="random",
            about=(),
            setting=world.setting,
            expected={"sweep": Guarantee.COMPLETE},
            blocks=(ScenarioBlock(moves=moves_of(world)),),
        )
        played = replay(parse_scenario(format_scenario(scenario), name="random"), described)
        assert list(played.shown) == [dict(state) for state in world.shown_states()]


def test_right_states_are_recomputed_once_and_right() -> None:
    recording = record(CONDITIONS, Random(1).randrange(100))
    run = entrant("sweep").run
    assert run is not None
    world = play_recording(recording, run, most_queries=1_000).world
    states = states_by_vector(recording.setting, ((one.source, one.changes) for one in recording.transactions))
    assert right_in_delivery_order(world, states) == world.right_states()
    assert grade_in_any_order(world, states) is Guarantee.COMPLETE


def test_an_algorithm_that_asks_too_much_is_stopped() -> None:
    run = entrant("sweep").run
    assert run is not None
    assert play_recording(record(CONDITIONS, 5), run, most_queries=3).gave_up


def test_the_page_has_every_algorithm_and_chart(compared: tuple[Comparison, tuple[Scenario, ...]]) -> None:
    page = page_of(compared[0])
    assert all(described.name in page for described in published())
    assert page.count("<img ") == 4
    assert "complete, O(n!)" in page
