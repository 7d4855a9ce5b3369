"""Grade a history against *some* order of the sources' transactions, and not only the one in which they were delivered.

Papers about maintenance allow this: sources commit on their own, so any interleaving that keeps each source's own order
is as right as the one the warehouse happened to see. What the sources can have been together is a lattice: one point
for each vector (how many transactions of source 1, of source 2, ...), and an interleaving is a path through it.

    (0,2) ─ (1,2) ─ (2,2)  end           path  (0,0) (1,0) (1,1) (2,1) (2,2)
      │       │       │
    (0,1) ─ (1,1) ─ (2,1)                complete     the path's states are those shown
      │       │       │                  strong       those shown are on one path, in its order, ending at the end
    (0,0) ─ (1,0) ─ (2,0)                weak         each state shown is the state of some point
 start                                   convergent   the last one is that of the end

Stuttering is ignored on both sides, as in `grade`. The lattice is as large as the product of its sides, so there is a
limit to what is judged; past it the answer is None, and delivery order has to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from headwater.deltas.compare import Bag, RowKey, bag_key
from headwater.model.guarantee import Guarantee

LARGEST_LATTICE = 4_000

Vector: TypeAlias = tuple[int, ...]
_StateKey: TypeAlias = frozenset[tuple[RowKey, int]]


def grade_any_order(
    lengths: Sequence[int],
    right: Callable[[Vector], Bag],
    observed: Sequence[Bag],
    *,
    largest_lattice: int = LARGEST_LATTICE,
) -> Guarantee | None:
    """Return the best guarantee that the states shown keep in any order, or None if there are too many orders.

    `lengths` are how many transactions each source has; `right` gives the view's right state after a number of each.

    >>> def right(vector):
    ...     return {("a",): vector[0], ("b",): vector[1]}
    >>> grade_any_order((1, 1), right, [{}, {("b",): 1}, {("a",): 1, ("b",): 1}])
    <Guarantee.COMPLETE: 'complete'>
    >>> grade_any_order((1, 1), right, [{}, {("b",): 1}, {("a",): 1}, {("a",): 1, ("b",): 1}])
    <Guarantee.WEAK: 'weak'>
    >>> grade_any_order((99, 99), right, [{}]) is None
    True
    """
    if prod(length + 1 for length in lengths) > largest_lattice:
        return None
    points = tuple(product(*(range(length + 1) for length in lengths)))
    states = {point: bag_key(right(point)) for point in points}
    keys = [bag_key(state) for state in observed]
    seen = [key for place, key in enumerate(keys) if place == 0 or key != keys[place - 1]]
    if _is_a_path(points, states, seen):
        return Guarantee.COMPLETE
    if _is_on_a_path(points, states, seen):
        return Guarantee.STRONG
    if seen and set(seen) <= set(states.values()):
        return Guarantee.WEAK
    return Guarantee.CONVERGENT if seen and seen[-1] == states[points[-1]] else Guarantee.NONE


def _is_a_path(points: Sequence[Vector], states: dict[Vector, _StateKey], seen: Sequence[_StateKey]) -> bool:
    """Tell whether some path shows exactly these states: at each point, which of them a path may have come to."""
    come_to: dict[Vector, set[int]] = {}
    for point in points:
        places = {place for before in _before(point) for earlier in come_to[before] for place in (earlier, earlier + 1)}
        if not any(point):
            places = {0}
        come_to[point] = {place for place in places if place < len(seen) and seen[place] == states[point]}
    return len(seen) - 1 in come_to[points[-1]]


def _is_on_a_path(points: Sequence[Vector], states: dict[Vector, _StateKey], seen: Sequence[_StateKey]) -> bool:
    """Tell whether some path shows these states and others: at each point, how many of them a path can have shown."""
    if not seen or seen[-1] != states[points[-1]]:
        return False
    shown: dict[Vector, int] = {}
    for point in points:
        count = max((shown[before] for before in _before(point)), default=0)
        shown[point] = count + 1 if count < len(seen) and seen[count] == states[point] else count
    return shown[points[-1]] == len(seen)


def _before(point: Vector) -> list[Vector]:
    """Return the points right before one: one transaction less of one source."""
    return [(*point[:place], number - 1, *point[place + 1 :]) for place, number in enumerate(point) if number > 0]
