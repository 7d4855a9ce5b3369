"""Batched SWEEP in the in-memory world: every change at every tick equals recomputation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from world import CATALOG, COLUMNS, RELATIONS, Oracle, World, random_sql, random_view, random_world

from headwater.deltas.extent import EVERYTHING, NOTHING, Extent
from headwater.deltas.lookup import RowRequest, RowResult
from headwater.deltas.selection import Selection
from headwater.maintenance import batched_sweep as sweep_module
from headwater.maintenance.batched_sweep import batched_sweep
from headwater.maintenance.probe_plan import plan_visits
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory import law as law_in_memory
from headwater_lab.in_memory.bag import InMemoryBag, Row
from headwater_lab.in_memory.law import change_in_memory
from headwater_lab.one_join import declare

ORACLE = Oracle()
TICKS = 10


def maintain(
    world: World, view: JoinView, random: Random, cuts: list[int], earliest: int = 0
) -> tuple[dict[int, Counter[Row]], list[int]]:
    """Maintain a view batch by batch; return its change at every tick, and the visits of every batch."""
    changes: dict[int, Counter[Row]] = {}
    visits = []
    lo = 0
    for hi in [*cuts, TICKS]:
        batch = {name: world.changes(name, columns, lo, hi) for name, columns in view.relations.items()}
        running = batched_sweep(view, Tick(lo), batch, world)
        count = 0
        try:
            ask = next(running)
            while True:
                count += len({probe.relation for probe in ask})
                ask = running.send(world.perform(random, ask, max(lo, earliest)))
        except StopIteration as finished:
            bags: dict[object, InMemoryBag] = finished.value
        visits.append(count)
        if isinstance(world, PartlyHeld):
            world.check_old_rows(bags, lo)
        for (tick, row), times in change_in_memory(view, bags, Tick(lo)).entries.items():
            changes.setdefault(tick, Counter())[row] += times
        lo = hi
    return changes, visits


def wrong_ticks(world: World, view: JoinView, changes: dict[int, Counter[Row]]) -> list[int]:
    wrong = []
    before = ORACLE.state(world, view, 0)
    for tick in range(1, TICKS + 1):
        after = ORACLE.state(world, view, tick)
        expected = Counter(after)
        expected.subtract(before)
        if {row: n for row, n in expected.items() if n} != dict(changes.get(tick, {})):
            wrong.append(tick)
        before = after
    return wrong


@dataclass
class PartlyHeld(World):
    """A world whose answers come from replicas that hold some rows only, tested by columns that nobody may ask for."""

    held: Mapping[RelationName, Extent] = field(default_factory=dict)

    def check_old_rows(self, bags: Mapping[object, InMemoryBag], lo: int) -> None:
        """Refuse what a maintainer refuses: rows that the log takes away and the replica never had."""
        old = [count for bag in bags.values() for (tick, _), count in bag.entries.items() if tick == lo]
        assert min(old, default=1) > 0, "a row would be there less than zero times"

    def rows(self, name: RelationName, ticks: frozenset[int] | range) -> Counter[Row]:
        rows, held = super().rows(name, ticks), self.held.get(name, EVERYTHING)
        return Counter({row: count for row, count in rows.items() if held.passes(dict(zip(COLUMNS, row, strict=True)))})


def selective_view(random: Random) -> JoinView:
    """Return a view with selections of some of its occurrences."""
    sql = random_sql(random)
    aliases = [occurrence.alias for occurrence in declare("v", sql, CATALOG).occurrences]
    chosen = [alias for alias in aliases if random.random() < 0.8]
    tests = [f"{alias}.{random.choice(COLUMNS)} {random.choice(('<', '=', '<>'))} 1" for alias in chosen]
    return declare("v", " AND ".join([sql if " WHERE " in sql else f"{sql} WHERE true", *tests]), CATALOG)


def others_need(random: Random) -> Extent:
    """Return rows that other views need."""
    column, compare = random.choice(COLUMNS), random.choice(("equal", "greater"))
    return random.choice((NOTHING, Extent.of([Selection(column=column, compare=compare, values=(1,))])))


def play_partly(seed: int) -> list[int]:
    random = Random(seed)
    world, view = random_world(random, TICKS), selective_view(random)
    held = {name: extent.plus(others_need(random)) for name, extent in view.extents.items()}
    cuts = sorted(random.sample(range(1, TICKS), random.randint(0, 4)))
    partly = PartlyHeld(history=world.history, source_of=world.source_of, held=held)
    changes, _ = maintain(partly, view, random, cuts)
    return wrong_ticks(world, view, changes)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_oracle_answers_without_rows_that_join_nothing_change_nothing(seed: int) -> None:
    assert play_partly(seed) == []


def play(seed: int) -> list[int]:
    random = Random(seed)
    world = random_world(random, TICKS)
    view = random_view(random)
    cuts = sorted(random.sample(range(1, TICKS), random.randint(0, 4)))
    changes, _ = maintain(world, view, random, cuts)
    return wrong_ticks(world, view, changes)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_oracle_every_change_at_every_tick(seed: int) -> None:
    assert play(seed) == []


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**9))
def test_visits_stay_within_the_plan_however_many_transactions(seed: int) -> None:
    random = Random(seed)
    world = random_world(random, TICKS)
    view = random_view(random)
    trees = plan_visits([o.alias for o in view.occurrences], [(e.left, e.right) for e in view.edges])
    _, visits = maintain(world, view, random, [])
    most = trees[0].visit_count if len(trees) == 1 else len(view.occurrences)
    assert visits[0] <= most


MUTANTS = {
    "at most instead of before: combinations count twice": (
        law_in_memory, "meets", lambda other, _index, s, _p: other <= s,
    ),
    "before instead of at most: combinations are lost": (
        law_in_memory, "meets", lambda other, index, s, p: other < s,  # noqa: ARG005
    ),
    "no rebase": (
        sweep_module, "rebase", lambda _probe, answer, _log, tick: answer.rows.restamped(tick).net(),
    ),
    "rebase to the wrong tick": (
        sweep_module, "rebase",
        lambda probe, answer, log, tick, right=sweep_module.rebase: right(probe, answer, log, tick + 1).restamped(tick),
    ),
    "rebase forgets what the answer did not see": (
        sweep_module, "rebase",
        lambda probe, answer, log, tick: answer.rows.plus(
            log.seen_after(probe.relation, probe.wanted, answer.sight, tick).negated()
        ).matching(probe.columns, probe.keys).restamped(tick).net()
        if probe.keys is not None
        else answer.rows.restamped(tick).net(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=list(MUTANTS))
def test_a_mutation_of_the_law_is_caught(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, broken = MUTANTS[mutant]
    monkeypatch.setattr(module, name, broken)
    caught = sum(bool(play(seed)) for seed in range(60))
    assert caught > 0


def deleted_on_the_way() -> tuple[World, JoinView]:
    """A row of the middle relation is deleted after the batch, but before the question reaches it (PAPERS.md 3.2)."""
    view = declare("v", "SELECT t.a AS x, u.c AS y FROM s1.t t, s0.r r, s2.u u WHERE t.b = r.a AND r.b = u.a", CATALOG)
    names = {one.name.name: one.name for one in RELATIONS}
    steps = [("r", (0, 1, 0), 1), ("u", (1, 0, 7), 1), ("t", (5, 0, 0), 1), ("r", (0, 1, 0), -1)]
    world = World()
    for tick, (name, row, count) in enumerate(steps, 1):
        world.source_of[tick] = names[name].source
        world.history[tick] = {names[name]: Counter({row: count})}
    return world, view


def test_a_row_deleted_on_the_way_still_leads_on() -> None:
    world, view = deleted_on_the_way()
    changes, _ = maintain(world, view, Random(0), [2, 3, 4], earliest=4)
    assert changes == {3: Counter({(5, 7): 1}), 4: Counter({(5, 7): -1})}
    assert wrong_ticks(world, view, changes) == []


def test_onward_keys_from_raw_answers_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    world, view = deleted_on_the_way()
    right = sweep_module.rebase

    def visit(self: sweep_module._Reach, visits: list[tuple[str, str]]) -> sweep_module._Steps:
        raw: dict[object, InMemoryBag] = {}

        def remember(probe: RowRequest, answer: RowResult, log: World, tick: Tick) -> InMemoryBag:
            raw[probe.relation] = answer.rows
            return right(probe, answer, log, tick)

        with monkeypatch.context() as patched:
            patched.setattr(sweep_module, "rebase", remember)
            yield from original(self, visits)
        for node, neighbour in visits:
            if self._relation[node] in raw:
                self._through[node, neighbour] = raw[self._relation[node]]

    original = sweep_module._Reach._visit
    monkeypatch.setattr(sweep_module._Reach, "_visit", visit)
    changes, _ = maintain(world, view, Random(0), [2, 3, 4], earliest=4)
    assert wrong_ticks(world, view, changes) == [3]  # the row is lost at 3, and cannot leave at 4
