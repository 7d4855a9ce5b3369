"""Grading against some order: paths through the lattice of what the sources can have been together."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from headwater.deltas.compare import Bag
from headwater.judge.grade import grade_sequence
from headwater.model.guarantee import Guarantee
from headwater_lab.any_order import Vector, grade_any_order


def counts(vector: Vector) -> Bag:
    return {("a",): vector[0], ("b",): vector[1]}


NOTHING: Bag = {}
A: Bag = {("a",): 1}
B: Bag = {("b",): 1}
BOTH: Bag = {("a",): 1, ("b",): 1}
NEVER: Bag = {("x",): 1}


@pytest.mark.parametrize(
    ("shown", "guarantee"),
    [
        ([NOTHING, A, BOTH], Guarantee.COMPLETE),
        ([NOTHING, B, BOTH], Guarantee.COMPLETE),
        ([NOTHING, BOTH], Guarantee.STRONG),
        ([NOTHING, A, B, BOTH], Guarantee.WEAK),
        ([NOTHING, A], Guarantee.WEAK),
        ([NOTHING, NEVER, BOTH], Guarantee.CONVERGENT),
        ([NOTHING, NEVER], Guarantee.NONE),
        ([], Guarantee.NONE),
    ],
)
def test_levels(shown: list[Bag], guarantee: Guarantee) -> None:
    assert grade_any_order((1, 1), counts, shown) is guarantee


def test_a_state_repeated_is_one_state() -> None:
    assert grade_any_order((1, 1), counts, [NOTHING, NOTHING, B, B, BOTH]) is Guarantee.COMPLETE


def test_too_many_orders_are_not_judged() -> None:
    assert grade_any_order((3, 3), counts, [NOTHING], largest_lattice=15) is None
    assert grade_any_order((3, 3), counts, [NOTHING], largest_lattice=16) is not None


def test_agrees_with_trying_every_order() -> None:
    """Two sources with two transactions each have six orders: the best grade among them is the grade."""
    random = Random(7)
    for _ in range(300):
        values = {(i, j): {("v",): random.randrange(3)} for i in range(3) for j in range(3)}
        shown = [values[0, 0], *(random.choice(list(values.values())) for _ in range(random.randrange(5)))]
        orders = set(permutations("aabb"))
        paths = [
            [values[order[:step].count("a"), order[:step].count("b")] for step in range(len(order) + 1)]
            for order in orders
        ]
        best = max(grade_sequence(path, shown).guarantee for path in paths)
        found = grade_any_order((2, 2), values.__getitem__, shown)
        assert found is not None
        if best >= Guarantee.STRONG or found >= Guarantee.STRONG:
            assert found is best
        else:
            assert found >= best, "weak needs no single order that holds every state shown"
