"""The lab's judge shares nothing with what installs: whatever is broken there, it sees."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from small_views import relation, setting

from headwater.judge.grade import grade_sequence
from headwater.model.guarantee import Guarantee
from headwater_lab.chance import Chances, play
from headwater_lab.entrants import entrant
from headwater_lab.in_memory import install


def test_the_text_is_what_counts() -> None:
    r, s = relation("one.r(k, a)", key=("k",)), relation("two.s(k, a)", key=("k",))
    sql = "SELECT x.k, y.k AS other FROM one.r x JOIN two.s y ON x.a <=> y.a WHERE x.k < y.k OR x.a IS NULL"
    world = setting(sql, {r: [(1, 5), (2, None), (3, 5)], s: [(2, 5), (9, None)]})  # type: ignore[list-item]
    assert world.recomputed(world.rows) == {(1, 2): 1, (2, 9): 1}


def test_threads_ask_at_the_same_time() -> None:
    """The console plays scenarios in threads of its own."""
    world = setting("SELECT x.k FROM one.r x", {relation("one.r(k, a)", key=("k",)): [(1, 5)]})  # type: ignore[list-item]
    here = world.recomputed(world.rows)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: world.recomputed(world.rows), range(40))) == [here] * 40


@pytest.mark.parametrize("broken", ["conditions", "counts"])
def test_a_mistake_in_what_installs_is_seen(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = entrant("sweep").run
    assert run is not None
    summed: Callable[..., Any] = install.sum_of_terms

    def wrong(view: Any, terms: Any) -> Any:
        found = summed(view, terms)
        if broken == "counts":
            return type(found)({row: 1 if count > 0 else -1 for row, count in found.items() if count})
        return type(found)(dict(list(found.items())[1:]))

    monkeypatch.setattr(install, "sum_of_terms", wrong)
    levels = []
    for seed in range(30):
        try:
            world = play(seed, run, Chances())
        except AssertionError:
            levels.append(Guarantee.NONE)
            continue
        levels.append(grade_sequence(world.right_states(), world.shown_states()).guarantee)
    assert levels.count(Guarantee.COMPLETE) < len(levels)
