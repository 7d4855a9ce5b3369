from __future__ import annotations

import pytest

from headwater.deltas.compare import Bag, difference
from headwater.judge.grade import Observation, Verdict, grade, grade_sequence
from headwater.judge.grade_changes import History, grade_changes
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick

A: Bag = {("a",): 1}
B: Bag = {("b",): 1}
C: Bag = {("c",): 1}
NEVER: Bag = {("x",): 1}
RIGHT = {Tick(5): A, Tick(6): B, Tick(7): B, Tick(8): C}


def claims(*pairs: tuple[int, Bag]) -> list[Observation]:
    return [Observation(tick=Tick(tick), state=state) for tick, state in pairs]


@pytest.mark.parametrize(
    ("seen", "level", "bad_tick"),
    [
        (claims((5, A), (6, B), (7, B), (8, C)), Guarantee.COMPLETE, None),
        (claims((5, A), (7, B), (8, C)), Guarantee.COMPLETE, None),  # tick 7 did not change the view
        (claims((5, A), (6, B), (6, B), (8, C)), Guarantee.COMPLETE, None),  # a reader looked twice
        (claims((5, A), (8, C)), Guarantee.STRONG, 6),
        (claims((8, C)), Guarantee.STRONG, 5),
        (claims((5, A), (6, B)), Guarantee.WEAK, 8),  # not at the end
        (claims((5, A), (8, C), (6, B), (8, C)), Guarantee.WEAK, 6),  # time went backwards
        (claims((5, A), (6, A), (7, B), (8, C)), Guarantee.WEAK, 6),  # right states under wrong ticks
        (claims((5, A), (6, NEVER), (8, C)), Guarantee.CONVERGENT, 6),
        (claims((5, A), (6, B), (8, NEVER)), Guarantee.NONE, 8),
        (claims((5, A), (6, B), (8, C), (9, NEVER)), Guarantee.NONE, 9),  # past the end
        (claims((4, NEVER), (8, C)), Guarantee.CONVERGENT, 4),  # before the birth
        ([], Guarantee.NONE, 5),
    ],
)
def test_claimed_ticks(seen: list[Observation], level: Guarantee, bad_tick: int | None) -> None:
    verdict = grade(RIGHT, seen)
    assert (verdict.guarantee, verdict.first_bad_tick) == (level, bad_tick)
    assert verdict.states_checked == len(seen)


@pytest.mark.parametrize(
    ("seen", "level", "bad_tick"),
    [
        ([A, B, C], Guarantee.COMPLETE, None),
        ([A, A, B, B, C, C], Guarantee.COMPLETE, None),
        ([A, C], Guarantee.STRONG, 6),
        ([B, C], Guarantee.STRONG, 5),
        ([A, C, B, C], Guarantee.WEAK, 6),
        ([A, B], Guarantee.WEAK, 8),
        ([A, B, C, B], Guarantee.WEAK, 8),
        ([A, NEVER, C], Guarantee.CONVERGENT, 6),
        ([A, B, NEVER], Guarantee.NONE, 8),
        ([], Guarantee.NONE, 5),
    ],
)
def test_sequences(seen: list[Bag], level: Guarantee, bad_tick: int | None) -> None:
    verdict = grade_sequence(list(RIGHT.values()), seen, birth=Tick(5))
    assert (verdict.guarantee, verdict.first_bad_tick) == (level, bad_tick)


def test_a_state_seen_again_needs_a_right_state_again() -> None:
    assert grade_sequence([A, B, A, C], [A, B, A, C]).guarantee is Guarantee.COMPLETE
    assert grade_sequence([A, B, C], [A, B, A, C]).guarantee is Guarantee.WEAK


def test_an_invented_state_is_compared_with_the_nearest_right_one() -> None:
    near = {("c",): 1, ("d",): 1}
    verdict = grade_sequence([A, B, {("c",): 1, ("d",): 2}], [A, near])
    assert verdict.first_bad_tick == 2
    assert str(verdict.difference) == "missing 1 × ('d')"


def test_the_difference_is_that_of_the_first_bad_tick() -> None:
    verdict = grade(RIGHT, claims((5, A), (8, NEVER), (6, {("b",): 3})))
    assert verdict.first_bad_tick == 6
    assert verdict.difference == difference(B, {("b",): 3})
    assert str(verdict).splitlines() == ["none, 3 states checked", "  tick 6 differs", "  surplus 2 × ('b')"]


def test_changes_agree_with_states() -> None:
    right = History(birth=Tick(5), start=A, changes={Tick(6): {("a",): -1, ("b",): 1}, Tick(8): {("b",): 1}})
    merged = History(birth=Tick(5), start=A, changes={Tick(8): {("a",): -1, ("b",): 2}})
    short = History(birth=Tick(5), start=A, changes={Tick(6): {("a",): -1, ("b",): 1}})
    assert grade_changes(right, right, through=Tick(8)) == Verdict(guarantee=Guarantee.COMPLETE, states_checked=4)
    convergent = grade_changes(right, merged, through=Tick(8))
    assert (convergent.guarantee, convergent.first_bad_tick) == (Guarantee.CONVERGENT, 6)
    none = grade_changes(right, short, through=Tick(8))
    assert (none.guarantee, none.first_bad_tick) == (Guarantee.NONE, 8)
    assert str(none.difference) == "missing 1 × ('b')"
    assert grade_changes(right, short, through=Tick(7)).guarantee is Guarantee.COMPLETE
    never = History(birth=Tick(5), start=A, changes={})
    assert grade_changes(right, never, through=Tick(8)).first_bad_tick == 6


def test_a_wrong_start_is_noticed() -> None:
    verdict = grade_changes(
        History(birth=Tick(0), start=A, changes={}), History(birth=Tick(0), start=B, changes={}), through=Tick(0)
    )
    assert (verdict.guarantee, verdict.first_bad_tick) == (Guarantee.NONE, 0)
