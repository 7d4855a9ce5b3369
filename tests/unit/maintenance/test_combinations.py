"""A batch that would blow up is cut into pieces; together they say what the whole says."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from world import CATALOG, TICKS_OF_A_HOT_KEY, Oracle, World, hot_world, random_view, random_world, to_arrow

from headwater.deltas.on_arrow import ArrowBag
from headwater.maintenance import combinations
from headwater.maintenance.batched_sweep import batched_sweep
from headwater.maintenance.combinations import estimate_combinations, pieces
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory.bag import InMemoryBag
from headwater_lab.in_memory.law import change_in_memory
from headwater_lab.one_join import declare

ORACLE = Oracle()
TICKS = 8


def to_memory(bag: ArrowBag) -> InMemoryBag:
    names = tuple(bag.columns)
    rows = bag.table.to_pylist()
    return InMemoryBag.of(names, [(row["_tick"], tuple(row[n] for n in names), row["_count"]) for row in rows])


@pytest.mark.parametrize("seed", range(40))
def test_pieces_together_change_a_view_as_the_whole_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combinations, "_FEW_ROWS", 0)
    random = Random(seed)
    world, view = random_world(random, TICKS), random_view(random)
    bags = {name: to_arrow(world.changes(name, columns, 0, TICKS)) for name, columns in view.relations.items()}
    state: Counter[tuple[Any, ...]] = Counter()
    ends = []
    for piece in pieces(view, bags, Tick(0), Tick(TICKS), estimate_combinations, most=3):
        after, upto, part = piece.after, piece.upto, piece.bags
        change = change_in_memory(view, {name: to_memory(bag) for name, bag in part.items()}, after)
        for tick in range(after + 1, upto + 1):
            for (at, row), count in change.entries.items():
                state[row] += count if at == tick else 0
            state = Counter({row: count for row, count in state.items() if count})
            assert state == ORACLE.state(world, view, tick)
        ends.append(upto)
    assert ends == sorted(set(ends))
    assert ends[-1] == TICKS


def reached(world: World, view: JoinView, random: Random, lo: int) -> dict[RelationName, ArrowBag]:
    """Return the changes after a tick and the old rows that batched SWEEP finds for them, no more."""
    changes = {name: world.changes(name, columns, lo, TICKS) for name, columns in view.relations.items()}
    running = batched_sweep(view, Tick(lo), changes, world)
    try:
        ask = next(running)
        while True:
            ask = running.send(world.perform(random, ask, lo))
    except StopIteration as finished:
        return {name: to_arrow(bag) for name, bag in finished.value.items()}


@pytest.mark.parametrize("seed", range(60))
def test_pieces_of_what_was_reached_need_no_more_than_that(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combinations, "_FEW_ROWS", 0)
    random = Random(seed)
    world, view, lo = random_world(random, TICKS), random_view(random), TICKS // 2
    state = ORACLE.state(world, view, lo)
    bags = reached(world, view, random, lo)
    for piece in pieces(view, bags, Tick(lo), Tick(TICKS), estimate_combinations, most=2):
        after, upto, part = piece.after, piece.upto, piece.bags
        change = change_in_memory(view, {name: to_memory(bag) for name, bag in part.items()}, after)
        for tick in range(after + 1, upto + 1):
            for (at, row), count in change.entries.items():
                state[row] += count if at == tick else 0
            state = Counter({row: count for row, count in state.items() if count})
            assert state == ORACLE.state(world, view, tick)


def test_a_hot_key_on_both_sides_of_a_join_is_cut() -> None:
    view = declare("v", "SELECT r.b AS x, t.b AS y FROM s0.r r JOIN s1.t t ON r.a = t.a", CATALOG)
    world = hot_world()
    bags = {
        name: to_arrow(world.changes(name, columns, 0, TICKS_OF_A_HOT_KEY)) for name, columns in view.relations.items()
    }
    whole = estimate_combinations(view, bags)
    parts = list(pieces(view, bags, Tick(0), Tick(TICKS_OF_A_HOT_KEY), estimate_combinations, most=whole // 20))
    assert whole > 1_000_000
    assert len(parts) > 4
    assert sum(estimate_combinations(view, part.bags) for part in parts) < whole / 4


def test_few_rows_are_never_cut() -> None:
    view = declare("v", "SELECT r.a AS x FROM s0.r r JOIN s1.t t ON r.a = t.a", CATALOG)
    world = random_world(Random(1), TICKS)
    bags = {name: to_arrow(world.changes(name, columns, 0, TICKS)) for name, columns in view.relations.items()}
    parts = pieces(view, bags, Tick(0), Tick(TICKS), estimate_combinations)
    assert [(part.after, part.upto) for part in parts] == [(0, TICKS)]
