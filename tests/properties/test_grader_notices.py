"""The grader finds every injected fault, and its three ways of grading agree where they overlap."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from headwater.deltas.compare import Bag, bag_key
from headwater.judge.grade import Observation, grade, grade_sequence
from headwater.judge.grade_changes import History, grade_changes
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick

VALUES = st.one_of(st.none(), st.integers(0, 2), st.just(float("nan")), st.sampled_from(["", "a"]))
ROWS = st.tuples(VALUES, VALUES)
BAGS = st.dictionaries(ROWS, st.integers(1, 3), max_size=3)
HISTORIES = st.lists(BAGS, min_size=1, max_size=8)


def observations(states: list[Bag]) -> list[Observation]:
    return [Observation(tick=Tick(tick), state=state) for tick, state in enumerate(states)]


def by_tick(states: list[Bag]) -> dict[Tick, Bag]:
    return {Tick(tick): state for tick, state in enumerate(states)}


def history(states: list[Bag]) -> History:
    changes = {}
    for tick, (before, after) in enumerate(pairwise(states), start=1):
        signed = Counter(after)
        signed.subtract(before)
        changes[Tick(tick)] = signed
    return History(birth=Tick(0), start=states[0], changes=changes)


@given(HISTORIES)
def test_the_right_history_is_complete(states: list[Bag]) -> None:
    assert grade(by_tick(states), observations(states)).guarantee is Guarantee.COMPLETE
    assert grade_sequence(states, states).guarantee is Guarantee.COMPLETE
    assert (
        grade_changes(history(states), history(states), through=Tick(len(states) - 1)).guarantee is Guarantee.COMPLETE
    )


@given(HISTORIES, st.data())
def test_one_row_too_many_or_too_few_is_noticed_at_its_tick(states: list[Bag], data: st.DataObject) -> None:
    tick = data.draw(st.integers(0, len(states) - 1))
    row = data.draw(ROWS)
    broken = Counter(states[tick])
    broken[row] += data.draw(st.sampled_from([-1, 1, 2]))
    seen = [*states[:tick], broken, *states[tick + 1 :]]
    for verdict in (
        grade(by_tick(states), observations(seen)),
        grade_changes(history(states), history(seen), through=Tick(len(states) - 1)),
    ):
        assert verdict.guarantee <= Guarantee.WEAK
        assert verdict.first_bad_tick == tick
        assert verdict.difference is not None
        assert verdict.difference.size <= 2


@given(HISTORIES, st.data())
def test_a_skipped_state_costs_completeness_and_no_more(states: list[Bag], data: st.DataObject) -> None:
    keys = [bag_key(state) for state in states]
    tick = data.draw(st.integers(0, len(states) - 1))
    assume(tick < len(states) - 1)
    assume(keys[tick] != keys[tick + 1] and (tick == 0 or keys[tick] != keys[tick - 1]))
    seen = observations(states)
    del seen[tick]
    verdict = grade(by_tick(states), seen)
    assert (verdict.guarantee, verdict.first_bad_tick) == (Guarantee.STRONG, tick)


@given(HISTORIES, HISTORIES)
def test_levels_mean_what_they_say(right: list[Bag], seen: list[Bag]) -> None:
    level = grade_sequence(right, seen).guarantee
    ends_right = bag_key(seen[-1]) == bag_key(right[-1])
    only_right = {bag_key(state) for state in seen} <= {bag_key(state) for state in right}
    assert (level >= Guarantee.WEAK) == only_right
    assert ends_right or level in (Guarantee.WEAK, Guarantee.NONE)
    assert not ends_right or level is not Guarantee.NONE


@given(HISTORIES, HISTORIES)
def test_claims_are_never_graded_better_than_the_bare_sequence(right: list[Bag], seen: list[Bag]) -> None:
    assert grade(by_tick(right), observations(seen)).guarantee <= grade_sequence(right, seen).guarantee


@given(HISTORIES, st.data())
def test_right_states_in_any_order_are_at_least_weak(states: list[Bag], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(states))
    assert grade_sequence(states, shuffled).guarantee >= Guarantee.WEAK
