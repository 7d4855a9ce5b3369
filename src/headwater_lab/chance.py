"""Random worlds: views, transactions and interleavings, each made from one seed and from nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from headwater.maintenance.published.algorithms import KEYS_IN_VIEW, ONE_SOURCE, DescribedAlgorithm
from headwater.maintenance.published.messages import Algorithm
from headwater.model.relation import Column, Relation, RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory.bag import Row
from headwater_lab.ledger import Rows, added
from headwater_lab.one_join import declare
from headwater_lab.world import World, WorldSetting

COLUMNS = ("k", "a", "b")
_VALUES = 3
_KEYS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """How random worlds are made: what their views look like, and how often what happens."""

    keyed: bool = False
    """Relations have keys, and the view holds the keys of all of them."""
    one_source: bool = False
    occurrence_counts: tuple[int, ...] = (2, 3, 3, 4)
    theta: float = 0.15
    self_join: float = 0.25
    delete: float = 0.4
    modify: float = 0.15
    transaction_count: int = 7


def chances_for(described: DescribedAlgorithm) -> Chances:
    """Return chances under which every view is one that the algorithm takes."""
    return Chances(
        keyed=KEYS_IN_VIEW in described.requirements,
        one_source=ONE_SOURCE in described.requirements,
    )


def random_setting(random: Random, chances: Chances) -> WorldSetting:
    """Return a random view over random relations, with a few rows in them."""
    count = random.choice(chances.occurrence_counts)
    catalog: dict[RelationName, Relation] = {}
    chosen: list[Relation] = []
    for place in range(count):
        if chosen and random.random() < chances.self_join:
            chosen.append(random.choice(chosen))
            continue
        source = "s0" if chances.one_source else f"s{random.randrange(place + 1)}"
        relation = _relation(source, f"r{place}")
        catalog[relation.name] = relation
        chosen.append(relation)
    view = _declared(_sql(random, chances, chosen), tuple(catalog.values()))
    rows: dict[RelationName, Counter[Row]] = {}
    for name in catalog:
        rows[name] = Counter()
        for _ in range(random.randrange(4)):
            rows[name] = added(rows[name], _insert(random, rows[name]))
    return WorldSetting(view=view, catalog=catalog, rows=rows)


@lru_cache(maxsize=4096)
def _declared(sql: str, relations: tuple[Relation, ...]) -> JoinView:
    """Understand a view, once for all algorithms that are played through the same worlds: it takes longer than they."""
    return declare("v", sql, {relation.name: relation for relation in relations})


def _relation(source: str, name: str) -> Relation:
    columns = tuple(Column(name=column, type="int", native="int4") for column in COLUMNS)
    return Relation(name=RelationName(source=source, name=name), columns=columns, key=("k",))


def _sql(random: Random, chances: Chances, chosen: list[Relation]) -> str:
    aliases = [f"x{place}" for place in range(len(chosen))]
    star = random.random() < 0.3  # noqa: PLR2004 - a share of the views
    conditions = []
    for place in range(1, len(aliases)):
        other = 0 if star else place - 1
        operator = "<" if random.random() < chances.theta else "="
        conditions.append(f"x{other}.{random.choice('ab')} {operator} x{place}.{random.choice('ab')}")
    if len(aliases) > 2 and random.random() < 0.25:  # noqa: PLR2004 - a share of the views is cyclic
        conditions.append(f"x0.{random.choice('ab')} = {aliases[-1]}.{random.choice('ab')}")
    if random.random() < 0.25:  # noqa: PLR2004 - a share of the views
        conditions.append(f"{random.choice(aliases)}.b > 0")
    if chances.keyed:
        outputs = [f"{alias}.k AS {alias}_k" for alias in aliases] + ["x0.a AS x0_a"]
    else:
        outputs = [f"{random.choice(aliases)}.{random.choice('ab')} AS o{place}" for place in range(2)]
    tables = ", ".join(f"{one.name} {alias}" for one, alias in zip(chosen, aliases, strict=True))
    return f"SELECT {', '.join(outputs)} FROM {tables} WHERE {' AND '.join(conditions)}"


def random_transaction(random: Random, world: World, source: str, chances: Chances) -> Rows:
    """Return something that a source could commit now: one to three rows in one or more of its relations."""
    own = [name for name in world.setting.catalog if name.source == source]
    rows = {name: Counter(world.rows[name]) for name in own}
    for _ in range(random.randint(1, 3)):
        name = random.choice(own)
        rows[name] = added(rows[name], _change(random, rows[name], chances))
    changes = {}
    for name in own:
        change = Counter(rows[name])
        change.subtract(world.rows[name])
        if netted := {row: count for row, count in change.items() if count}:
            changes[name] = netted
    return changes


def _change(random: Random, rows: Counter[Row], chances: Chances) -> Counter[Row]:
    draw = random.random()
    if rows and draw < chances.delete:
        return Counter({random.choice(sorted(rows)): -1})
    if rows and draw < chances.delete + chances.modify:
        old = random.choice(sorted(rows))
        return added({old: -1}, {(old[0], random.randrange(_VALUES), random.randrange(_VALUES)): 1})
    return _insert(random, rows)


def _insert(random: Random, rows: Counter[Row]) -> Counter[Row]:
    """Return a new row whose key is free. Keys are few, so that they are used again."""
    free = sorted(set(range(_KEYS)) - {row[0] for row in rows})
    if not free:
        return Counter()
    return Counter({(random.choice(free), random.randrange(_VALUES), random.randrange(_VALUES)): 1})


def play(seed: int, algorithm: Algorithm, chances: Chances) -> World:
    """Play an algorithm through one random interleaving, to its end: nothing on its way any more."""
    random = Random(seed)  # noqa: S311 - a seed that can be given again is the point
    world = World(random_setting(random, chances), algorithm)
    remaining = chances.transaction_count
    while remaining or not world.is_quiet:
        moves = [("serve", source) for source, waiting in world.queries.items() if waiting]
        moves += [("deliver", source) for source, waiting in world.channels.items() if waiting]
        if remaining:
            moves += [("commit", source) for source in world.setting.sources]
        move, source = random.choice(moves)
        if move == "commit":
            remaining -= 1
            if changes := random_transaction(random, world, source, chances):
                world.commit(source, changes)
        elif move == "serve":
            world.serve(source)
        else:
            world.deliver(source)
    return world
