"""Nested SWEEP: what an install absorbs, when it ends, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest
from small_worlds import answer, arrive, chain, finish, grade_of, installs, query_count, states

from headwater.judge.grade import Observation, grade
from headwater.maintenance.published.messages import Algorithm, Running, ViewHistory
from headwater.maintenance.published.nested_sweep import absorbs_upto, nested_sweep, run_nested
from headwater.maintenance.published.sweep import parallel_sweep, pipelined_sweep, sweep
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.chance import Chances, play
from headwater_lab.world import World

FIGURE_5 = ([(1, 3), (2, 3)], [(3, 7)], [(5, 6), (7, 8)])
FIGURE_5_STATES = [{(7, 8): 2}, {(5, 6): 2, (7, 8): 2}, {(5, 6): 2}, {(5, 6): 1}]


def cut_off_after(count: int | None) -> Algorithm:
    def run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
        return run_nested(view, lo, log, absorbs_upto(count))

    return run


def figure_5(run: Algorithm) -> World:
    """The three updates are delivered before any answer."""
    world = World(chain(*FIGURE_5, outputs="x2.b x3.b"), run)
    arrive(world, 2, (3, 5))
    arrive(world, 3, (7, 8), -1)
    arrive(world, 1, (2, 3), -1)
    finish(world)
    return world


@pytest.mark.parametrize("run", [sweep, parallel_sweep, pipelined_sweep])
def test_figure_5_of_paper_000_step_by_step(run: Algorithm) -> None:
    assert states(figure_5(run)) == FIGURE_5_STATES


def test_figure_5_in_one_install() -> None:
    world = figure_5(nested_sweep)
    assert states(world) == [FIGURE_5_STATES[0], FIGURE_5_STATES[-1]]
    assert query_count(world) < 3 * 2


def test_figure_5_when_nothing_meets() -> None:
    world = World(chain(*FIGURE_5, outputs="x2.b x3.b"), nested_sweep)
    for place, pair, count in ((2, (3, 5), 1), (3, (7, 8), -1), (1, (2, 3), -1)):
        arrive(world, place, pair, count)
        finish(world)
    assert states(world) == FIGURE_5_STATES
    assert query_count(world) == 3 * 2


def alternate(run: Algorithm, count: int) -> World:
    """Two relations whose changes always meet: each is delivered before the answer to the question for the other."""
    world = World(chain([(0, 0)], [(0, 0)]), run)
    arrive(world, 1, (0, 0))
    for number in range(1, count):
        arrive(world, 1 + number % 2, (0, 0))
        (asked,) = [source for source, waiting in world.queries.items() if waiting]
        answer(world, asked)
    finish(world)
    return world


def test_alternating_changes_end_in_one_install_without_a_cut_off() -> None:
    world = alternate(cut_off_after(None), 40)
    assert [install.upto for install in installs(world)] == [40]
    assert grade_of(world) >= Guarantee.STRONG


def test_alternating_changes_are_installed_in_turn_with_a_cut_off() -> None:
    world = alternate(nested_sweep, 40)
    assert len(installs(world)) >= 4
    assert grade_of(world) >= Guarantee.STRONG


@pytest.mark.parametrize("cut_off", [1, 2, 3, None])
def test_every_install_is_the_right_state_of_its_tick(cut_off: int | None) -> None:
    """So what it absorbed are the next ticks, none left out: any other set would give another state some time."""
    for seed in range(150):
        world = play(seed, cut_off_after(cut_off), Chances())
        right = {Tick(tick): state for tick, state in enumerate(world.right_states())}
        shown = [Observation(tick=Tick(0), state=right[Tick(0)])]
        shown += [Observation(tick=install.upto, state=install.state) for install in installs(world)]
        assert grade(right, shown).guarantee >= Guarantee.STRONG, f"seed {seed}"


def test_changes_that_cancel_out_leave_nothing_behind() -> None:
    """R1's changes 2 and 5 cancel out; R3's change 3 is between them and must not be left for a later install."""
    world = World(chain((), (), ()), cut_off_after(None))
    arrive(world, 2, (0, 0))
    arrive(world, 1, (0, 0))
    arrive(world, 3, (0, 0))
    arrive(world, 3, (0, 1))
    arrive(world, 1, (0, 0), -1)
    arrive(world, 1, (9, 0))
    finish(world)
    assert [install.upto for install in installs(world)] == [6]
    assert grade_of(world) >= Guarantee.STRONG
