"""The shapes tell algorithms apart: their rows differ where they do, and every literal reading fails in some shape."""

from __future__ import annotations

from itertools import product

import pytest
from small_worlds import finish, query_count

from headwater.judge.grade import grade_sequence
from headwater.maintenance.published.algorithms import DescribedAlgorithm, algorithm
from headwater.maintenance.visit_plan import round_count
from headwater.maintenance.visits import layout_of
from headwater_lab.compare import ComparePlan, Comparison, compare_all
from headwater_lab.entrants import literal, published
from headwater_lab.grading import right_in_delivery_order, states_by_vector
from headwater_lab.measure import MeasuredAlgorithm, rounds_per_update
from headwater_lab.shapes import SHAPES
from headwater_lab.timed import Conditions, at_one_source, play_recording, record
from headwater_lab.world import World

PLAN = ComparePlan(seed=1, source_counts=(3,), intervals=(0.5,), deletes=(0.3,), transaction_count=30)


@pytest.fixture(scope="module")
def compared() -> Comparison:
    """Compare as the verb does by default, without the literal readings."""
    return compare_all(PLAN, published(), lambda _: None)[0]


def row(comparison: Comparison, shape: str, name: str) -> MeasuredAlgorithm:
    [cell] = [one for one in comparison.tables if one.conditions.shape == shape]
    return next(one for one in cell.measured if one.algorithm == name)


def test_every_algorithm_keeps_its_guarantee_in_every_shape(compared: Comparison) -> None:
    assert [cell.conditions.shape for cell in compared.tables] == list(SHAPES)
    for cell in compared.tables:
        assert {one.algorithm for one in cell.measured} == {one.name for one in published()}
        assert not [one.algorithm for one in cell.measured if not one.kept], cell.conditions


def test_rows_differ_where_algorithms_do(compared: Comparison) -> None:
    def queries(shape: str, name: str) -> float:
        return row(compared, shape, name).queries_per_update

    def rounds(shape: str, name: str) -> float:
        return row(compared, shape, name).rounds_per_update

    assert queries("star", "version-numbers-from-view") < queries("star", "version-numbers")
    assert queries("self-join", "multi-appearance") < queries("self-join", "sweep")
    assert queries("shared", "version-numbers") < queries("shared", "multi-appearance")
    assert rounds("star", "parallel-sweep") < rounds("star", "sweep")
    assert rounds("star", "multi-appearance") < queries("star", "multi-appearance")
    assert row(compared, "chain", "strobe").queries_per_update < queries("chain", "sweep")
    for shape in SHAPES:
        assert rounds(shape, "multi-appearance") <= rounds(shape, "sweep")


@pytest.mark.parametrize("described", literal(), ids=lambda described: described.name)
def test_a_literal_reading_fails_in_some_shape(described: DescribedAlgorithm) -> None:
    assert described.run is not None
    for seed, shape in product(range(1, 40), SHAPES):
        conditions = Conditions(source_count=4, interval=0.5, deletes=0.3, transaction_count=20, shape=shape)
        recording = record(conditions, seed)
        if described.missing(recording.setting.view):
            recording = at_one_source(recording)
        world = play_recording(recording, described.run, most_queries=5_000).world
        states = states_by_vector(recording.setting, ((t.source, t.changes) for t in recording.transactions))
        reached = grade_sequence(right_in_delivery_order(world, states), world.shown_states()).guarantee
        if reached < described.guarantee:
            return
    pytest.fail(f"{described.name} kept its claim in every shape")


@pytest.mark.parametrize("name", ["version-numbers", "multi-appearance"])
def test_a_star_with_three_dimensions_takes_one_round(name: str) -> None:
    run = algorithm(name).run
    assert run is not None
    setting = SHAPES["star"].setting(4)
    rows = {one: {(1, *(1 for _ in relation.columns[1:])): 1} for one, relation in setting.catalog.items()}
    rows = {one: {(1, 1, 2): 1} if one.name == "d1" else held for one, held in rows.items()}
    world = World(type(setting)(view=setting.view, catalog=setting.catalog, rows=rows), run)
    fact = next(one for one in setting.catalog if one.name == "f")
    world.commit("s1", {fact: {(2, 1, 1, 1): 1}})
    world.deliver("s1")
    assert [len(waiting) for waiting in world.queries.values()] == [0, 1, 1, 1], "all three go out at once"
    finish(world)
    assert query_count(world) == 3
    assert len(world.state) == 2
    layout = layout_of(setting.view, closure=False)
    assert round_count(layout, [frozenset({"f"})]) == 1
    assert round_count(layout, [frozenset({"d1"})]) == 2


def test_measured_rounds_are_what_is_predicted_where_every_step_finds_rows() -> None:
    conditions = Conditions(source_count=4, interval=1, deletes=0, transaction_count=10, shape="star")
    recording = record(conditions, 7)
    for described in published():
        if described.run is None or described.missing(recording.setting.view):
            continue
        rounds = described.cost(recording.setting.view).rounds
        assert rounds_per_update(recording, described.run) <= rounds, described.name
