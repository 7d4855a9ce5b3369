"""Acceptance: once, in order, and nothing is waited for that nobody asks for again."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from headwater_lab.acceptance import (
    Accept,
    Acceptance,
    Alive,
    AskAgain,
    Notified,
    Outcome,
    Replied,
    SendAgain,
    Use,
)


def told(version: int) -> Notified[str]:
    return Notified(source="s", version=version, transaction=f"t{version}")


def answer(number: int, version: int) -> Replied[str]:
    return Replied(source="s", version=version, number=number, answer=f"a{number}@{version}")


def short(outcomes: Sequence[Outcome]) -> list[str]:
    return [outcome.transaction if isinstance(outcome, Accept) else outcome.answer for outcome in outcomes]


@given(arrivals=st.lists(st.integers(1, 6)))
def test_transactions_are_accepted_in_order_and_once(arrivals: list[int]) -> None:
    acceptance: Acceptance[str, str] = Acceptance(["s"])
    accepted = [one for version in arrivals for one in short(acceptance.arrived(told(version)))]
    present = next(v for v in range(1, 8) if v not in arrivals) - 1
    assert accepted == [f"t{version}" for version in range(1, present + 1)]
    assert acceptance.accepted("s") == present


def test_an_answer_waits_for_what_it_saw() -> None:
    acceptance: Acceptance[str, str] = Acceptance(["s"])
    acceptance.asked("s", 1)
    assert short(acceptance.arrived(answer(1, 2))) == []
    assert acceptance.overdue() == [SendAgain(source="s", versions=(1, 2))]
    assert short(acceptance.arrived(told(2))) == []
    assert short(acceptance.arrived(told(1))) == ["t1", "t2", "a1@2"]
    assert not acceptance.is_waiting


def test_of_two_answers_to_one_query_the_one_that_saw_less_is_used_and_only_once() -> None:
    acceptance: Acceptance[str, str] = Acceptance(["s"])
    acceptance.asked("s", 1)
    acceptance.arrived(answer(1, 3))
    assert short(acceptance.arrived(answer(1, 0))) == ["a1@0"]
    assert short(acceptance.arrived(answer(1, 0))) == []
    for version in (1, 2, 3):
        assert short(acceptance.arrived(told(version))) == [f"t{version}"]


def test_an_unanswered_query_is_asked_again_until_an_answer_is_there() -> None:
    acceptance: Acceptance[str, str] = Acceptance(["s"])
    acceptance.asked("s", 7)
    assert acceptance.overdue() == [AskAgain(source="s", number=7)]
    acceptance.arrived(answer(7, 1))
    assert acceptance.overdue() == [SendAgain(source="s", versions=(1,))]


def test_a_sign_of_life_tells_of_a_lost_last_notification() -> None:
    acceptance: Acceptance[str, str] = Acceptance(["s"])
    acceptance.arrived(told(1))
    assert acceptance.overdue() == []
    acceptance.arrived(Alive(source="s", version=2))
    assert acceptance.overdue() == [SendAgain(source="s", versions=(2,))]


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    acceptance: Acceptance[str, str] = Acceptance(["s"])
    assert acceptance.arrived(answer(1, 0)) == []
    acceptance.asked("s", 2)
    (use,) = acceptance.arrived(answer(2, 0))
    assert isinstance(use, Use)
