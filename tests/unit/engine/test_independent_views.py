"""Views that have a step or an auxiliary table in common are not computed beside each other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwater.engine.batch.round import independent_groups


def view(name: str, *steps: str, tables: tuple[str, ...] = (), shares: bool = True) -> Any:
    segments = [SimpleNamespace(name=step) for step in (*steps, name)]
    resolved = SimpleNamespace(view=SimpleNamespace(segments=segments), shares=shares)
    return SimpleNamespace(name=name, resolved=resolved, segments={table: table for table in tables})


def groups(*views: Any) -> list[list[str]]:
    return [[one.name for one in some] for some in independent_groups(views)]


def test_views_that_have_nothing_in_common_stand_alone() -> None:
    assert groups(view("a", "s1"), view("b", "s2"), view("c")) == [["a"], ["b"], ["c"]]


def test_common_steps_bring_views_together_over_a_third_one() -> None:
    assert groups(view("a", "s1"), view("b", "s2"), view("c", "s1", "s2"), view("d")) == [["a", "b", "c"], ["d"]]


def test_steps_of_their_own_making_do_not_count_and_tables_do() -> None:
    assert groups(view("a", "s1", shares=False), view("b", "s1")) == [["a"], ["b"]]
    assert groups(view("a", tables=("t",), shares=False), view("b", tables=("t",))) == [["a", "b"]]
