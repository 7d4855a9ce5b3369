"""What the papers' algorithms send is what their formulas say."""

from __future__ import annotations

from random import Random

import pytest
from small_worlds import chain, finish, query_count, wander
from volume import volume

from headwater.maintenance.published.algorithms import algorithm
from headwater.maintenance.published.by_key import inserted_terms
from headwater.maintenance.published.messages import changes_of
from headwater.maintenance.published.telescope import telescope
from headwater.maintenance.published.terms import started_terms
from headwater.maintenance.visit_plan import plan
from headwater.maintenance.visits import layout_of
from headwater.model.position import Tick
from headwater_lab.chance import chances_for, play, random_setting, random_transaction
from headwater_lab.world import World

SWEEPS = ["sweep", "parallel-sweep", "pipelined-sweep"]
SEEDS = volume(100, 1_000)
SHAPES = ["12", "123", "1234", "11", "121", "1213"]
"""Chains, by which relation stands at which place."""


def changed_occurrences(world: World) -> list[int]:
    """Return how many occurrences of the view each transaction changed, in the order of delivery."""
    view, ledger = world.setting.view, world.ledger
    ticks = [Tick(tick) for tick in range(1, ledger.last_tick + 1)]
    return [len(started_terms(view, tick, changes_of(view, ledger, Tick(tick - 1), tick))) for tick in ticks]


def full_world(name: str, shape: str, *, one_source: bool = False) -> World:
    """Return a world in which no answer is ever empty."""
    described = algorithm(name)
    assert described.run is not None
    relation_count = int(max(shape))
    sources = [1] * relation_count if one_source else None
    return World(chain(*[[(0, 0)]] * relation_count, sources=sources, appearances=shape), described.run)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SWEEPS)
def test_sweep_asks_every_other_occurrence_once(name: str, shape: str) -> None:
    for seed in range(5):
        world = full_world(name, shape)
        wander(world, Random(seed), 10)
        assert query_count(world) == sum(changed_occurrences(world)) * (len(shape) - 1)


@pytest.mark.parametrize("shape", SHAPES)
def test_nested_sweep_asks_no_more_than_sweep(shape: str) -> None:
    fewer = 0
    for seed in range(5):
        world = full_world("nested-sweep", shape)
        wander(world, Random(seed), 10)
        most = sum(changed_occurrences(world)) * (len(shape) - 1)
        assert query_count(world) <= most
        fewer += query_count(world) < most
    assert fewer


@pytest.mark.parametrize("name", [*SWEEPS, "nested-sweep"])
def test_never_more_than_the_formula(name: str) -> None:
    described = algorithm(name)
    assert described.run is not None
    for seed in range(SEEDS):
        world = play(seed, described.run, chances_for(described))
        others = len(world.setting.view.occurrences) - 1
        assert query_count(world) <= sum(changed_occurrences(world)) * others, f"seed {seed}"


@pytest.mark.parametrize("shape", SHAPES)
def test_eca_asks_once_for_each_transaction(shape: str) -> None:
    for seed in range(5):
        world = full_world("eca", shape, one_source=True)
        wander(world, Random(seed), 8)
        assert query_count(world) == len(changed_occurrences(world))


def test_eca_asks_nothing_for_what_the_view_does_not_read() -> None:
    described = algorithm("eca")
    assert described.run is not None
    for seed in range(SEEDS):
        world = play(seed, described.run, chances_for(described))
        assert query_count(world) == sum(count > 0 for count in changed_occurrences(world)), f"seed {seed}"


def inserted_occurrences(world: World) -> list[int]:
    """Return into how many occurrences of the view each transaction inserted, in the order of delivery."""
    view, ledger = world.setting.view, world.ledger
    ticks = [Tick(tick) for tick in range(1, ledger.last_tick + 1)]
    return [len(inserted_terms(view, tick, changes_of(view, ledger, Tick(tick - 1), tick))) for tick in ticks]


def one_by_one(name: str, seed: int) -> World:
    """Return a random world in which every transaction is over before the next one begins."""
    described, random = algorithm(name), Random(seed)
    assert described.run is not None
    chances = chances_for(described)
    world = World(random_setting(random, chances), described.run)
    for _ in range(chances.transaction_count):
        source = random.choice(world.setting.sources)
        if changes := random_transaction(random, world, source, chances):
            world.commit(source, changes)
            finish(world)
    return world


def test_eca_key_asks_once_for_each_transaction_that_inserts() -> None:
    described = algorithm("eca-key")
    assert described.run is not None
    for seed in range(SEEDS):
        world = play(seed, described.run, chances_for(described))
        assert query_count(world) == sum(count > 0 for count in inserted_occurrences(world)), f"seed {seed}"


def test_strobe_asks_every_other_occurrence_for_what_is_inserted_and_nothing_for_deletes() -> None:
    described, reached = algorithm("strobe"), 0
    assert described.run is not None
    for seed in range(SEEDS):
        world = play(seed, described.run, chances_for(described))
        most = sum(inserted_occurrences(world)) * (len(world.setting.view.occurrences) - 1)
        assert query_count(world) <= most, f"seed {seed}"
        reached += query_count(world) == most > 0
    assert reached


def test_c_strobe_asks_no_more_than_strobe_while_nobody_deletes_meanwhile() -> None:
    for seed in range(SEEDS):
        world = one_by_one("c-strobe", seed)
        others = len(world.setting.view.occurrences) - 1
        assert query_count(world) <= sum(inserted_occurrences(world)) * others, f"seed {seed}"


def test_version_numbers_ask_no_more_than_the_plan_while_nothing_happens_meanwhile() -> None:
    reached = 0
    for seed in range(SEEDS):
        world = one_by_one("version-numbers", seed)
        view, ledger = world.setting.view, world.ledger
        most = 0
        for tick in range(1, ledger.last_tick + 1):
            parts = telescope(view, changes_of(view, ledger, Tick(tick - 1), Tick(tick)))
            most += len(plan(layout_of(view, closure=True), [frozenset({alias}) for alias in parts.computed]))
        assert query_count(world) <= most, f"seed {seed}"
        reached += query_count(world) == most > 0
    assert reached
