"""A modification is one change: −old +new in one tick, asked for together, right whatever column was modified."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_views import change, guarantee, play_out, relation, setting
from volume import volume

from headwater.judge.grade import grade_sequence
from headwater.maintenance.published.algorithms import ALGORITHMS, DescribedAlgorithm, algorithm
from headwater.model.guarantee import Guarantee
from headwater_lab.chance import chances_for, play
from headwater_lab.ledger import Rows
from headwater_lab.world import Sent, World, WorldSetting

PUBLISHED = [described for described in ALGORITHMS if described.run is not None]
SEEDS = volume(100, 1_000)
SQL = """
    SELECT r.k AS rk, s.k AS sk, t.k AS tk, s.free FROM one.r r, two.s s, three.t t
    WHERE r.a = s.a AND s.b = t.b AND s.chosen > 0
"""
OLD = (1, 5, 7, 0, 1)


def world_of(name: str) -> World:
    described = algorithm(name)
    assert described.run is not None
    return World(beginning(), described.run)


def beginning() -> WorldSetting:
    """S joins R by a and T by b, is selected by `chosen`, and has a column that is only shown."""
    r, t = relation("one.r(k, a)", key=("k",)), relation("three.t(k, b)", key=("k",))
    s = relation("two.s(k, a, b, chosen, free)", key=("k",))
    return setting(SQL, {r: [(1, 5), (2, 6)], s: [OLD, (2, 5, 7, 1, 2)], t: [(1, 7), (2, 8)]})


def modified(old: tuple[int, ...], new: tuple[int, ...]) -> Rows:
    return {name: {old: -1, new: 1} for name in change("two.s", new)}


@pytest.mark.parametrize("described", PUBLISHED, ids=lambda described: described.name)
def test_every_algorithm_keeps_its_guarantee_where_most_changes_are_modifications(
    described: DescribedAlgorithm,
) -> None:
    assert described.run is not None
    chances = replace(chances_for(described), modify=0.8, delete=0.1)
    for seed in range(SEEDS):
        world = play(seed, described.run, chances)
        verdict = grade_sequence(world.right_states(), world.shown_states())
        assert verdict.guarantee >= described.guarantee, f"seed {seed}: {verdict}\n{world.setting.view.sql}"


@pytest.mark.parametrize("described", [one for one in PUBLISHED if one.name not in {"eca", "eca-key"}])
def test_a_modified_selection_brings_a_row_in_and_takes_it_out(described: DescribedAlgorithm) -> None:
    """Erratum 7 to paper 001: Lemma 3 looks at join attributes only, and misses this."""
    world = world_of(described.name)
    inside = (1, 5, 7, 1, 1)
    for old, new in ((OLD, inside), (inside, OLD)):
        world.commit("two", modified(old, new))
        play_out(world)
    assert [len(state) for state in world.shown_states()] == [1, 2, 1]
    assert guarantee(world) is Guarantee.COMPLETE


@pytest.mark.parametrize("name", ["sweep", "nested-sweep", "multi-appearance", "version-numbers"])
@pytest.mark.parametrize("new", [(2, 5, 7, 1, 9), (2, 6, 8, 1, 2)], ids=["shown only", "join columns"])
def test_a_modification_asks_as_often_as_an_insert(name: str, new: tuple[int, ...]) -> None:
    """Not twice, as a delete and an insert would; keys that both rows have are sent once."""
    old = (2, 5, 7, 1, 2)
    modifying, inserting = world_of(name), world_of(name)
    modifying.commit("two", modified(old, new))
    inserting.commit("two", change("two.s", (9, 5, 7, 1, 2)))
    for world in (modifying, inserting):
        play_out(world)
        assert guarantee(world) is Guarantee.COMPLETE
    queries, expected = ([event for event in w.events if isinstance(event, Sent)] for w in (modifying, inserting))
    if name == "version-numbers" and new[1] == old[1]:
        assert (len(queries), len(expected)) == (0, 2), "what is only shown is modified in the view"
        return
    assert len(queries) == len(expected) == 2
    if name in ("multi-appearance", "version-numbers") and new[1] == old[1]:
        assert [query.row_count for query in queries] == [query.row_count for query in expected]
