"""Strobe, ECA-Key and C-Strobe: what they cost, message by message, and the stories their papers leave out."""

from __future__ import annotations

from collections import Counter
from math import comb
from random import Random

import pytest

from headwater.judge.grade import grade_sequence
from headwater.maintenance.published.c_strobe import c_strobe
from headwater.maintenance.published.eca_key import eca_key
from headwater.maintenance.published.messages import Algorithm, Install
from headwater.maintenance.published.strobe import strobe
from headwater.maintenance.published.terms import Term
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import Column, Relation, RelationName
from headwater_lab.in_memory.bag import InMemoryBag, InMemoryKeys
from headwater_lab.in_memory.install import install_in_memory
from headwater_lab.ledger import Rows
from headwater_lab.literal.c_strobe_key_delete import C_STROBE_KEY_DELETE
from headwater_lab.literal.eca_key_collect_only import ECA_KEY_COLLECT_ONLY
from headwater_lab.one_join import declare
from headwater_lab.world import Installed, Sent, World, WorldSetting

Row = tuple[int, ...]


def name_of(place: int, *, one_source: bool = False) -> RelationName:
    return RelationName(source="s" if one_source else f"s{place}", name=f"r{place}")


def chain(*rows: list[Row], one_source: bool = False, places: tuple[int, ...] | None = None) -> WorldSetting:
    """Return a chain of relations (k, a, b) with these rows, one for each place; a place given twice is a self-join."""
    columns = tuple(Column(name=name, type="int", native="int4") for name in "kab")
    names = [name_of(place, one_source=one_source) for place in range(len(rows))]
    catalog = {name: Relation(name=name, columns=columns, key=("k",)) for name in names}
    mentioned = places or tuple(range(len(rows)))
    outputs = ", ".join(f"x{i}.k AS k{i}" for i in range(len(mentioned)))
    tables = ", ".join(f"{names[place]} x{i}" for i, place in enumerate(mentioned))
    joined = " AND ".join(f"x{i}.b = x{i + 1}.a" for i in range(len(mentioned) - 1))
    view = declare("v", f"SELECT {outputs} FROM {tables} WHERE {joined}", catalog)
    return WorldSetting(
        view=view, catalog=catalog, rows={name: Counter(own) for name, own in zip(names, rows, strict=True)}
    )


def guarantee(world: World) -> Guarantee:
    return grade_sequence(world.right_states(), world.shown_states()).guarantee


def sent(world: World) -> int:
    return sum(isinstance(event, Sent) for event in world.events)


def run_to_the_end(world: World) -> None:
    while not world.is_quiet:
        for source in world.setting.sources:
            if world.queries[source]:
                world.serve(source)
            if world.channels[source]:
                world.deliver(source)


def commit(world: World, place: int, *changes: tuple[Row, int]) -> None:
    name = next(name for name in world.setting.catalog if name.name == f"r{place}")
    world.commit(name.source, {name: dict(changes)})


def busy(random: Random, setting: WorldSetting, algorithm: Algorithm, transactions: list[Rows]) -> World:
    """Play transactions in a random interleaving."""
    world = World(setting, algorithm)
    waiting = list(transactions)
    while waiting or not world.is_quiet:
        moves = [("serve", source) for source, open_ in world.queries.items() if open_]
        moves += [("deliver", source) for source, open_ in world.channels.items() if open_]
        moves += [("commit", "")] if waiting else []
        move, source = random.choice(moves)
        if move == "commit":
            changes = waiting.pop(0)
            world.commit(next(iter(changes)).source, changes)
        else:
            getattr(world, move)(source)
    return world


def transactions(random: Random, setting: WorldSetting, count: int) -> list[Rows]:
    """Return transactions of one source each; rows 1 and 2 of each relation may go, row 0 never: answers hold rows."""
    left = {name: [1, 2] for name in setting.catalog}
    made: list[Rows] = []
    for number in range(count):
        source = random.choice([name.source for name in setting.catalog])
        changes: dict[RelationName, dict[Row, int]] = {}
        for name in (name for name in setting.catalog if name.source == source):
            draw = random.random()
            if draw < 0.4 and left[name]:
                changes[name] = {(left[name].pop(), 0, 0): -1}
            if 0.3 < draw < 0.6:
                changes.setdefault(name, {})[100 + number, 0, 0] = 1
        if changes:
            made.append(changes)
    return made


def inserted_into(setting: WorldSetting, changes: Rows) -> int:
    """Return how many occurrences a transaction inserts into."""
    names = {name for name, change in changes.items() if any(count > 0 for count in change.values())}
    return sum(occurrence.relation.name in names for occurrence in setting.view.occurrences)


THREE = [(key, 0, 0) for key in range(3)]


@pytest.mark.parametrize("places", [(0, 1, 2), (0, 0, 1), (1, 0, 2, 0)])
@pytest.mark.parametrize("seed", range(10))
def test_strobe_asks_n_minus_1_times_for_each_occurrence_inserted_into(seed: int, places: tuple[int, ...]) -> None:
    random = Random(seed)
    setting = chain(*[THREE for _ in set(places)], places=places)
    made = transactions(random, setting, 8)
    world = busy(random, setting, strobe, made)
    assert sent(world) == (len(places) - 1) * sum(inserted_into(setting, changes) for changes in made)
    assert guarantee(world) >= Guarantee.STRONG


@pytest.mark.parametrize("places", [(0, 1, 2), (0, 0, 1)])
@pytest.mark.parametrize("seed", range(10))
def test_eca_key_asks_once_for_each_transaction_that_inserts(seed: int, places: tuple[int, ...]) -> None:
    random = Random(seed)
    setting = chain(*[THREE for _ in set(places)], places=places, one_source=True)
    made = transactions(random, setting, 8)
    world = busy(random, setting, eca_key, made)
    assert sent(world) == sum(inserted_into(setting, changes) > 0 for changes in made)
    assert guarantee(world) >= Guarantee.STRONG


@pytest.mark.parametrize("algorithm", [strobe, eca_key, c_strobe])
def test_deletes_are_handled_without_asking(algorithm: Algorithm) -> None:
    world = World(chain(THREE, THREE, one_source=True), algorithm)
    for place, key in ((0, 1), (1, 2), (1, 1)):
        commit(world, place, ((key, 0, 0), -1))
    run_to_the_end(world)
    assert sent(world) == 0
    assert guarantee(world) is Guarantee.COMPLETE


@pytest.mark.parametrize(("n", "k"), [(2, 3), (3, 1), (3, 4), (4, 2), (5, 1), (5, 3)])
def test_c_strobe_asks_for_every_choice_of_concurrent_deletes(n: int, k: int) -> None:
    kept_and_deleted = [(key, 0, 0) for key in range(k + 1)]
    world = World(chain([], *[kept_and_deleted for _ in range(n - 1)]), c_strobe)
    commit(world, 0, ((7, 0, 0), 1))
    world.deliver("s0")
    for place in range(1, n):
        for key in range(1, k + 1):
            commit(world, place, ((key, 0, 0), -1))
            world.deliver(f"s{place}")
    run_to_the_end(world)
    assert guarantee(world) is Guarantee.COMPLETE

    evaluations = sum(comb(n - 1, d) * k**d for d in range(n - 1))
    assert evaluations == (1 + k) ** (n - 1) - k ** (n - 1)
    assert sent(world) == sum(comb(n - 1, d) * k**d * (n - 1 - d) for d in range(n - 1))
    assert sent(world) == (n - 1) * (1 + k) ** (n - 2)
    insert = next(event.install for event in world.events if isinstance(event, Installed))
    nobody_left_to_ask = k ** (n - 1)
    assert len(insert.terms) == evaluations + nobody_left_to_ask
    if (n, k) == (5, 3):
        assert (evaluations, sent(world)) == (175, 256)


@pytest.mark.parametrize(
    ("algorithm", "state", "kept"),
    [(eca_key, {}, Guarantee.STRONG), (ECA_KEY_COLLECT_ONLY.run, {(3, 0): 1}, Guarantee.WEAK)],
)
def test_a_row_deleted_while_its_own_query_is_open_goes(
    algorithm: Algorithm, state: dict[Row, int], kept: Guarantee
) -> None:
    world = World(chain([], [(0, 0, 0)], one_source=True), algorithm)
    for count in (1, -1):
        commit(world, 0, ((3, 0, 0), count))
        world.deliver("s")
    run_to_the_end(world)
    assert world.state == state
    assert guarantee(world) is kept


@pytest.mark.parametrize(
    ("algorithm", "kept"), [(c_strobe, Guarantee.COMPLETE), (C_STROBE_KEY_DELETE.run, Guarantee.STRONG)]
)
def test_a_key_used_again_does_not_take_out_the_row_before_it(algorithm: Algorithm, kept: Guarantee) -> None:
    world = World(chain([(0, 0, 0)], []), algorithm)
    for count in (1, -1, 1):
        commit(world, 1, ((0, 0, 0), count))
        world.deliver("s1")
    run_to_the_end(world)
    assert world.state == Counter({(0, 0): 1})
    assert guarantee(world) is kept


def test_strobe_counts_a_row_found_by_two_queries_once() -> None:
    world = World(chain([], []), strobe)
    commit(world, 0, ((1, 0, 5), 1))
    commit(world, 1, ((2, 5, 0), 1))
    world.deliver("s0")
    world.deliver("s1")
    run_to_the_end(world)
    assert sent(world) == 2
    assert world.state == Counter({(1, 2): 1})
    assert guarantee(world) is Guarantee.COMPLETE


@pytest.mark.parametrize("algorithm", [strobe, c_strobe])
def test_a_modification_is_a_delete_and_an_insert_under_one_key(algorithm: Algorithm) -> None:
    world = World(chain([(1, 0, 0)], [(2, 0, 0), (3, 5, 0)]), algorithm)
    commit(world, 0, ((1, 0, 0), -1), ((1, 0, 5), 1))
    run_to_the_end(world)
    assert world.state == Counter({(1, 3): 1})
    assert guarantee(world) is Guarantee.COMPLETE


def test_an_install_takes_rows_out_by_key_before_it_adds_each_row_once() -> None:
    setting = chain([(1, 0, 0), (4, 0, 0)], [(2, 0, 0)])
    state = setting.recomputed(setting.rows)
    found = {"x0": [(1, 0, 0), (4, 0, 0)], "x1": [(2, 0, 0)]}
    bound = {alias: InMemoryBag.of(("k", "a", "b"), [(1, row, 1) for row in rows]) for alias, rows in found.items()}
    term = Term(tick=Tick(1), bound=bound)
    removed = {"x0": InMemoryKeys(frozenset({(1,)}))}
    only_removed = install_in_memory(setting.view, state, Install(upto=Tick(1), removed=removed, distinct=True))
    assert only_removed == Counter({(4, 2): 1})
    both = Install(upto=Tick(1), terms=(term, term), removed=removed, distinct=True)
    assert install_in_memory(setting.view, state, both) == Counter({(1, 2): 1, (4, 2): 1})
