"""Choose the states that a judge recomputes where recomputing all would take too long, and narrow down a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.model.position import Tick

STATES = 8
"""How many states of a view are recomputed by default."""


def spread(ticks: Sequence[Tick], count: int | None) -> list[Tick]:
    """Return `count` of the ticks, spread evenly, the first and the last among them. None means all.

    >>> spread([Tick(tick) for tick in range(10, 111)], 5)
    [10, 35, 60, 85, 110]
    >>> spread([Tick(3), Tick(7)], 8), spread([Tick(3), Tick(7)], 1), spread([], 8)
    ([3, 7], [7], [])
    """
    if count is None or count >= len(ticks):
        return list(ticks)
    if count == 1:
        return [ticks[-1]]
    return [ticks[index * (len(ticks) - 1) // (count - 1)] for index in range(count)]


def first_wrong(ticks: Sequence[Tick], good: Tick | None, bad: Tick, is_right: Callable[[Tick], bool]) -> Tick:
    """Return a wrong tick whose predecessor is right, between one that is known to be right and a wrong one.

    `good` is None if nothing before `bad` is known to be right; then `bad` is the answer. A mistake stays until
    something undoes it, so halving finds where it came from.

    >>> first_wrong([Tick(tick) for tick in range(3, 40)], Tick(5), Tick(30), lambda tick: tick < 17)
    17
    """
    if good is None:
        return bad
    low, high = ticks.index(good), ticks.index(bad)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_right(ticks[middle]) else (low, middle)
    return ticks[high]
