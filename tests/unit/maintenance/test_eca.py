"""ECA: what its queries hold, and when it installs."""

from __future__ import annotations

from math import prod

import pytest
from small_worlds import answer, arrive, chain, finish, grade_of, installs

from headwater.maintenance.published.eca import eca
from headwater.model.guarantee import Guarantee
from headwater_lab.world import Sent, World


def one_source(relation_count: int) -> World:
    return World(chain(*[[(0, 0)]] * relation_count, sources=[1] * relation_count), eca)


def term_counts(world: World) -> list[int]:
    return [len(event.query.parts) for event in world.events if isinstance(event, Sent)]


@pytest.mark.parametrize("relation_count", [2, 3, 4])
def test_a_query_has_a_term_for_every_combination_of_open_changes(relation_count: int) -> None:
    world = one_source(relation_count)
    expected = []
    opened = [0] * relation_count
    for number in range(13 if relation_count < 4 else 9):
        changed = number % relation_count
        expected.append(prod(1 + count for place, count in enumerate(opened) if place != changed))
        arrive(world, changed + 1, (0, 0))
        opened[changed] += 1
    assert term_counts(world) == expected
    finish(world)
    assert grade_of(world) >= Guarantee.STRONG


def test_the_size_of_a_query_is_quadratic_for_three_relations_only() -> None:
    """Paper 000, Table 1, says quadratic; this is the thirteenth query of a round robin, by the number of relations."""
    thirteenth = {}
    for relation_count in (2, 3, 4, 5):
        world = one_source(relation_count)
        for number in range(13):
            arrive(world, number % relation_count + 1, (0, 0))
        thirteenth[relation_count] = term_counts(world)[-1]
    assert thirteenth == {2: 7, 3: 25, 4: 64, 5: 144}


def test_answered_queries_need_no_compensation() -> None:
    world = one_source(2)
    for place in (1, 2, 1):
        arrive(world, place, (0, 0))
        finish(world)
    assert term_counts(world) == [1, 1, 1]
    assert grade_of(world) == Guarantee.COMPLETE


def test_nothing_is_installed_while_a_query_is_open() -> None:
    world = one_source(2)
    arrive(world, 1, (0, 0))
    arrive(world, 2, (0, 0))
    answer(world, "s1")
    assert not installs(world)
    answer(world, "s1")
    assert [install.upto for install in installs(world)] == [2]
    assert world.state == {(0, 0, 0, 0): 4}


def test_a_relation_that_appears_twice_is_substituted_in_all_combinations() -> None:
    """One change of r1 in r1 join r1 join r2: at the first, at the second, less the one at both."""
    world = World(chain([(0, 0)], [(0, 0)], sources=[1, 1], appearances="112"), eca)
    arrive(world, 1, (0, 0))
    assert term_counts(world) == [3]
    arrive(world, 2, (0, 0))
    arrive(world, 1, (0, 0), -1)
    finish(world)
    assert grade_of(world) >= Guarantee.STRONG
    assert world.state == {(0, 0, 0, 0, 0, 0): 2}
