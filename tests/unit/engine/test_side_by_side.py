"""A batch does not wait for a group of views that takes much longer than the others, and loses nothing of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence

import pytest

from headwater.engine.batch.side_by_side import SideBySide


@pytest.fixture
def beside() -> Iterator[SideBySide[str]]:
    beside = SideBySide[str](2, 0.05)
    yield beside
    beside.close()


class Slow:
    """Computes at once what has no name of its own, and the others when they may end."""

    def __init__(self, *names: str) -> None:
        self.may_end = {name: threading.Event() for name in names}

    def __call__(self, group: Sequence[str]) -> Mapping[str, str]:
        for name in group:
            if name in self.may_end:
                assert self.may_end[name].wait(20)
        return {name: f"{name} done" for name in group}


def test_who_is_late_is_left_behind_and_collected(beside: SideBySide[str]) -> None:
    compute = Slow("slow")
    found = beside.run([["slow"], ["a"], ["b", "c"]], compute, ())
    assert found == {"a": "a done", "b": "b done", "c": "c done"}
    assert beside.late == {"slow"}
    assert beside.ended() == {}
    assert beside.wait(0.01)
    assert beside.run([["a"], ["b"]], compute, ()) == {"a": "a done", "b": "b done"}
    compute.may_end["slow"].set()
    beside.wait(20)
    assert beside.ended() == {"slow": "slow done"}
    assert not beside.late
    assert not beside.wait(0)


def test_one_thread_is_left_to_the_others(beside: SideBySide[str]) -> None:
    compute = Slow("slow", "other")
    beside.run([["slow"], ["a"]], compute, ())
    threading.Timer(0.3, compute.may_end["other"].set).start()
    assert set(beside.run([["other"], ["a"]], compute, ())) == {"other", "a"}
    assert beside.late == {"slow"}
    compute.may_end["slow"].set()


def test_who_asks_sources_is_waited_for(beside: SideBySide[str]) -> None:
    compute = Slow("asking")
    threading.Timer(0.3, compute.may_end["asking"].set).start()
    assert set(beside.run([["asking"], ["a"]], compute, ["asking"])) == {"asking", "a"}
    assert not beside.late


def test_what_fails_is_raised_once_all_have_ended(beside: SideBySide[str]) -> None:
    ended = []

    def compute(group: Sequence[str]) -> Mapping[str, str]:
        if group == ["bad"]:
            raise ValueError("bad")
        ended.extend(group)
        return {}

    with pytest.raises(ValueError, match="bad"):
        beside.run([["bad"], ["a"], ["b"]], compute, ())
    assert sorted(ended) == ["a", "b"]


def test_what_fails_late_is_raised_when_it_is_collected(beside: SideBySide[str]) -> None:
    may_end = threading.Event()

    def compute(group: Sequence[str]) -> Mapping[str, str]:
        if group == ["bad"]:
            assert may_end.wait(20)
            raise ValueError("bad")
        return dict.fromkeys(group, "")

    assert beside.run([["bad"], ["a"]], compute, ()) == {"a": ""}
    may_end.set()
    beside.wait(20)
    with pytest.raises(ValueError, match="bad"):
        beside.ended()
