"""Visits: as few as the view's shape allows, and every row of docs/theory/visits.md as it is counted."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from small_views import Row, change, guarantee, play_out, relation, sent, setting

from headwater.maintenance.probe_plan import plan_visits
from headwater.maintenance.published.messages import Algorithm
from headwater.maintenance.published.multi_appearance import multi_appearance, multi_appearance_with_closure
from headwater.maintenance.published.sweep import sweep
from headwater.maintenance.visit_plan import Layout, plan
from headwater.maintenance.visits import layout_of
from headwater.model.guarantee import Guarantee
from headwater_lab.chance import Chances, play
from headwater_lab.literal.liang_yu_improved import LIANG_YU_IMPROVED
from headwater_lab.literal.liang_yu_simple import LIANG_YU_SIMPLE
from headwater_lab.world import Sent, World, WorldSetting

PAGE = Path(__file__).parents[3] / "docs" / "theory" / "visits.md"
TABLE = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "-" in line.split("|")[1]
]


def chain(shape: str, changed: str) -> tuple[WorldSetting, list[Row]]:
    """Return a chain of relations (a, b), each at a source of its own, and rows whose change reaches all through it.

    For each appearance of the changed relation there is one such row, which leads through the chain by values that lead
    nowhere else: so nothing is found in the cache by luck.
    """
    names = shape.lower().split("-")
    rows: dict[str, list[Row]] = {name: [] for name in names}
    changing = []
    for path in [place for place, name in enumerate(names) if name == changed.lower()]:
        for place, name in enumerate(names):
            row = (100 * path + place, 100 * path + place + 1)
            rows[name].append(row)
            changing += [row] if place == path else []
    tables = ", ".join(f"at_{name}.{name} x{place}" for place, name in enumerate(names))
    joins = " AND ".join(f"x{place}.b = x{place + 1}.a" for place in range(len(names) - 1))
    sql = f"SELECT x0.a AS first, x{len(names) - 1}.b AS last FROM {tables} WHERE {joins}"
    return setting(sql, {relation(f"at_{name}.{name}(a, b)"): own for name, own in rows.items()}), changing


def visits(shape: str, changed: str, algorithm: Algorithm, count: int) -> int:
    """Return how many queries it costs when rows come a second time, or go."""
    beginning, rows = chain(shape, changed)
    world = World(beginning, algorithm)
    name = changed.lower()
    world.commit(f"at_{name}", change(f"at_{name}.{name}", *rows, count=count))
    play_out(world)
    assert guarantee(world) is Guarantee.COMPLETE
    return sent(world)


def whole_reads(shape: str, changed: str) -> int:
    """Return how many relations there are to read: the changed one only if it appears a second time."""
    names = shape.split("-")
    return len({*names} - ({changed} if names.count(changed) == 1 else set()))


@pytest.mark.parametrize("row", TABLE, ids=" ".join)
def test_the_table_of_visits_is_as_it_is_counted(row: list[str]) -> None:
    shape, changed, *numbers = row
    for count in (1, -1):
        counted = [
            visits(shape, changed, sweep, count),
            len(set(shape.split("-"))),
            visits(shape, changed, multi_appearance, count),
            visits(shape, changed, multi_appearance_with_closure, count),
            whole_reads(shape, changed),
        ]
        assert [int(number) for number in numbers] == counted


def test_the_table_has_every_shape() -> None:
    assert len(TABLE) == 12


def _plan_of(world: World, tick: int, *, closure: bool) -> int:
    view = world.setting.view
    changed = world.ledger.entries[tick - 1].changes
    starts = [frozenset({one.alias}) for one in view.occurrences if one.relation.name in changed]
    return len(plan(layout_of(view, closure=closure), starts)) if starts else 0


def test_a_transaction_never_costs_more_visits_than_its_plan() -> None:
    chances = Chances(self_join=0.5, theta=0.0)
    for seed in range(150):
        world = play(seed, multi_appearance, chances)
        planned = sum(_plan_of(world, tick, closure=False) for tick in range(1, world.ledger.last_tick + 1))
        assert sent(world) <= planned


def test_nothing_is_asked_twice() -> None:
    beginning, rows = chain("R-R-R", "R")
    world = World(beginning, multi_appearance)
    world.commit("at_r", change("at_r.r", *rows))
    play_out(world)
    asked = [
        (step.columns, value)
        for event in world.events
        if isinstance(event, Sent)
        for part in event.query.parts
        for step in part.steps
        for value in getattr(part.keys, "values", ())
    ]
    assert len(asked) == len(set(asked)) > 6


def _random_tree(random: Random, size: int) -> list[tuple[str, str]]:
    return [(str(random.randrange(place)), str(place)) for place in range(1, size)]


def test_differential_the_search_agrees_with_the_formula_when_everything_has_changed() -> None:
    random = Random(0)
    for _ in range(60):
        nodes = [str(place) for place in range(random.randint(2, 6))]
        edges = _random_tree(random, len(nodes))
        layout = Layout.of({node: node for node in nodes}, edges, closure=False)
        (tree,) = plan_visits(nodes, edges)
        assert len(plan(layout, [frozenset({node}) for node in nodes])) == tree.visit_count


def test_an_occurrence_that_no_equality_leads_to_is_read_whole() -> None:
    r, s = relation("one.r(a, b)"), relation("two.s(a, b)")
    for algorithm in (multi_appearance, multi_appearance_with_closure):
        world = World(
            setting("SELECT r.a, s.b FROM one.r r, two.s s WHERE r.b < s.a", {r: [(1, 1)], s: [(2, 2)]}), algorithm
        )
        world.commit("one", change("one.r", (0, 0)))
        world.commit("two", change("two.s", (2, 2), count=-1))
        play_out(world)
        assert guarantee(world) is Guarantee.COMPLETE


def _self_join() -> World:
    """003, Lemma 1: R = {(1,0)}, insert (0,0)."""
    r = relation("at_r.r(a, b)")
    sql = "SELECT x.a AS xa, x.b AS xb, y.a AS ya, y.b AS yb FROM at_r.r x, at_r.r y WHERE x.b = y.a"
    return World(setting(sql, {r: [(1, 0)]}), multi_appearance)


def test_the_change_does_not_take_the_place_of_all_appearances_at_once() -> None:
    ours = _self_join()
    theirs = World(ours.setting, LIANG_YU_SIMPLE.run)
    for world in (ours, theirs):
        world.commit("at_r", change("at_r.r", (0, 0)))
        play_out(world)
    assert ours.state == {(0, 0, 0, 0): 1, (1, 0, 0, 0): 1}
    assert theirs.state == {(0, 0, 0, 0): 1}
    assert guarantee(theirs) is Guarantee.NONE


def test_a_second_appearance_does_not_take_its_rows_from_the_first() -> None:
    s, r = relation("at_s.s(x, y)"), relation("at_r.r(y, z)")
    sql = "SELECT s.x, r.y, q.y AS y2, q.z FROM at_s.s s, at_r.r r, at_r.r q WHERE s.y = r.y AND r.z = q.y"
    ours = World(setting(sql, {s: [], r: [(0, 1), (1, 1)]}), multi_appearance)
    theirs = World(ours.setting, LIANG_YU_IMPROVED.run)
    for world in (ours, theirs):
        world.commit("at_s", change("at_s.s", (0, 0)))
        play_out(world)
    assert ours.state == {(0, 0, 1, 1): 1}
    assert not theirs.state
    assert guarantee(theirs) < Guarantee.COMPLETE


@pytest.mark.parametrize("variant", [LIANG_YU_SIMPLE, LIANG_YU_IMPROVED], ids=lambda variant: variant.name)
def test_the_literal_readings_fail_by_chance_too(variant: object) -> None:
    chances = Chances(self_join=0.6)
    found = [guarantee(play(seed, variant.run, chances)) for seed in range(20)]  # type: ignore[attr-defined]
    assert Guarantee.NONE in found
