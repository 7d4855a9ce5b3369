from __future__ import annotations

import pytest

from headwater.maintenance.placing import is_half_seen, place, seen_upto
from headwater.model.position import Tick
from headwater.model.transaction import SeenUpTo

LOG = [(Tick(3), 30, ""), (Tick(5), 50, ""), (Tick(6), 60, ""), (Tick(8), 80, "")]
"""A source's ticks; its transactions are known by ten times as much."""
JOINT = [(Tick(3), 30, ""), (Tick(5), 50, ""), (Tick(5), 51, ""), (Tick(6), 60, "")]
"""Two of its transactions share tick 5."""


def saw(*identities: int) -> SeenUpTo:
    return SeenUpTo(last=99, hidden=frozenset(range(100)) - set(identities))


@pytest.mark.parametrize(
    ("seen", "delivered", "expected"),
    [
        ((30, 50, 60), 5, 6),
        ((30, 50), 5, 5),
        ((30, 50), 7, None),
        ((30, 50, 60, 80), 2, 8),
        ((), 2, 1),
        ((), 3, None),
        ((30, 60), 3, None),
        ((30, 60), 5, None),
        ((30, 50, 80), 5, None),
        ((30, 50, 60), 7, 6),
    ],
    ids=[
        "newer than delivered",
        "just what was delivered",
        "forgot what was delivered",
        "everything",
        "nothing, and nothing was delivered",
        "nothing, and something was",
        "a hole in what is not delivered yet",
        "a hole in what was",
        "a hole at the end",
        "ticks of other sources were delivered since",
    ],
)
def test_an_answer_belongs_after_the_last_tick_it_saw_or_nowhere(
    seen: tuple[int, ...], delivered: int, expected: int | None
) -> None:
    assert place(LOG, saw(*seen), Tick(1), Tick(delivered)) == expected


def test_a_tick_of_which_half_was_seen_is_a_hole() -> None:
    assert place(JOINT, saw(30, 50), Tick(1), Tick(3)) is None
    assert place(JOINT, saw(30, 50, 51), Tick(1), Tick(3)) == 5
    assert place(JOINT, saw(30), Tick(1), Tick(3)) == 3
    assert is_half_seen(JOINT, saw(30, 51, 60))
    assert not is_half_seen(JOINT, saw(30, 60)), "a hole is no harm to who goes by versions"


def test_everything_is_seen_up_to_the_first_that_is_not() -> None:
    assert seen_upto(LOG, saw(30, 50, 80), Tick(1)) == 5
    assert seen_upto(LOG, saw(50, 60, 80), Tick(1)) == 1
    assert seen_upto(JOINT, saw(30, 50, 60), Tick(1)) == 3
    assert seen_upto([], saw(), Tick(4)) == 4
