"""Literal readings of paper 000 fail where PAPERS.md §2.2 says so; the corrected algorithms do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from small_worlds import answer, arrive, chain, commit, finish, grade_of

from headwater.maintenance.published.algorithms import algorithm
from headwater.maintenance.published.messages import Algorithm
from headwater.model.guarantee import Guarantee
from headwater_lab.chance import chances_for, play
from headwater_lab.literal.nested_depth_limit import NESTED_DEPTH_LIMIT
from headwater_lab.literal.nested_single import NESTED_SINGLE
from headwater_lab.literal.sweep_no_compensation import SWEEP_NO_COMPENSATION
from headwater_lab.literal.sweep_parallel_literal import SWEEP_PARALLEL_LITERAL
from headwater_lab.literal.sweep_queue_pipelined import SWEEP_QUEUE_PIPELINED
from headwater_lab.literal.sweep_race import SWEEP_RACE
from headwater_lab.literal.sweep_single import SWEEP_SINGLE
from headwater_lab.literal.variant import Variant
from headwater_lab.world import World


def two_changes_in_one_answer(run: Algorithm) -> World:
    world = World(chain((), ()), run)
    arrive(world, 2, (1, 0))
    arrive(world, 1, (1, 0))
    arrive(world, 1, (0, 1))
    return world


def a_delete_at_the_end_of_a_chain(run: Algorithm) -> World:
    world = World(chain([(1, 0)], [(0, 1)], [(1, 0)]), run)
    arrive(world, 3, (1, 0), -1)
    return world


def a_change_after_the_answer(run: Algorithm) -> World:
    world = World(chain((), ()), run)
    arrive(world, 2, (0, 0))
    answer(world, "s1")
    arrive(world, 1, (0, 0))
    return world


def two_sweeps_at_once(run: Algorithm) -> World:
    world = World(chain((), ()), run)
    arrive(world, 1, (0, 1))
    arrive(world, 2, (1, 1))
    return world


def a_change_that_meets_one_too_deep(run: Algorithm) -> World:
    """R1 and R3 are at one source, which executes R3 +(0,0), R3 -(0,0), R1 +(0,0)."""
    world = World(chain([(1, 0)], [(0, 0)], (), sources=(0, 2, 0)), run)
    arrive(world, 3, (0, 0))
    answer(world, "s2")
    commit(world, 3, (0, 0), -1)
    commit(world, 1, (0, 0))
    return world


RUNS: list[tuple[Callable[[Algorithm], World], Variant, Guarantee]] = [
    (two_changes_in_one_answer, SWEEP_SINGLE, Guarantee.NONE),
    (two_changes_in_one_answer, NESTED_SINGLE, Guarantee.NONE),
    (a_delete_at_the_end_of_a_chain, SWEEP_PARALLEL_LITERAL, Guarantee.NONE),
    (a_change_after_the_answer, SWEEP_RACE, Guarantee.NONE),
    (two_sweeps_at_once, SWEEP_QUEUE_PIPELINED, Guarantee.NONE),
    (two_sweeps_at_once, SWEEP_NO_COMPENSATION, Guarantee.NONE),
    (a_change_that_meets_one_too_deep, NESTED_DEPTH_LIMIT, Guarantee.CONVERGENT),
]


@pytest.mark.parametrize(
    ("begin", "variant", "reached"), RUNS, ids=[f"{begin.__name__}-{variant.name}" for begin, variant, _ in RUNS]
)
def test_the_literal_reading_fails_and_ours_does_not(
    begin: Callable[[Algorithm], World], variant: Variant, reached: Guarantee
) -> None:
    literal = begin(variant.run)
    finish(literal)
    assert grade_of(literal) == reached < variant.described.guarantee
    ours = algorithm(variant.of)
    assert ours.run is not None
    world = begin(ours.run)
    finish(world)
    assert grade_of(world) >= ours.guarantee


def test_one_change_left_in_counts_twice() -> None:
    world = two_changes_in_one_answer(SWEEP_SINGLE.run)
    finish(world)
    assert world.state == {(0, 1, 1, 0): 2}


def test_two_halves_turn_a_delete_into_an_insert() -> None:
    world = a_delete_at_the_end_of_a_chain(SWEEP_PARALLEL_LITERAL.run)
    finish(world)
    assert world.state == {(1, 0, 0, 1, 1, 0): 2}


def test_a_change_taken_out_of_an_answer_without_it() -> None:
    world = a_change_after_the_answer(SWEEP_RACE.run)
    answer(world, "s1")
    assert world.state == {(0, 0, 0, 0): -1}


def test_a_state_that_no_source_ever_had() -> None:
    world = a_change_that_meets_one_too_deep(NESTED_DEPTH_LIMIT.run)
    finish(world)
    never = {(1, 0, 0, 0, 0, 0): 1, (0, 0, 0, 0, 0, 0): 1}
    assert never in world.shown_states()
    assert never not in world.right_states()


SEEDS = 60


@pytest.mark.parametrize("variant", sorted({variant.name for _, variant, _ in RUNS}))
def test_random_interleavings_find_it_too(variant: str) -> None:
    (literal,) = {variant_.name: variant_ for _, variant_, _ in RUNS if variant_.name == variant}.values()
    grades = [grade_of(play(seed, literal.run, chances_for(literal.described))) for seed in range(SEEDS)]
    assert any(grade < literal.described.guarantee for grade in grades)
    assert any(grade >= literal.described.guarantee for grade in grades)
