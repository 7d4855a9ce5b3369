"""Random worlds: views, transactions and interleavings, each made from one seed and from nothing else.

A world has what the papers' optimisations need: keys, references that its sources enforce, several relations at a
source, chains, stars, cycles and self-joins, joins by a key, and views that show keys or whole rows. How often each is
used is counted in `tests/contracts/test_optimisations_are_used.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from headwater.maintenance.published.algorithms import KEYS_IN_VIEW, ONE_SOURCE, DescribedAlgorithm
from headwater.maintenance.published.messages import Algorithm
from headwater.model.relation import Column, ForeignKey, Relation, RelationName
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
    """The view holds the keys of all its relations."""
    one_source: bool = False
    occurrence_counts: tuple[int, ...] = (2, 3, 3, 4)
    theta: float = 0.15
    self_join: float = 0.25
    star: float = 0.35
    cycle: float = 0.25
    by_key: float = 0.5
    """How often a join goes by the key of a relation."""
    reference: float = 0.6
    """How often a new relation refers to an earlier one of its source, which the source then enforces."""
    shown_keys: float = 0.6
    """How often the view shows the key of an occurrence, and most of the time all of its columns."""
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
        beside = [name for name in catalog if name.source == source]
        parent = random.choice(beside) if beside and random.random() < chances.reference else None
        relation = _relation(source, f"r{place}", parent)
        catalog[relation.name] = relation
        chosen.append(relation)
    view = _declared(_sql(random, chances, chosen), tuple(catalog.values()))
    rows: dict[RelationName, Counter[Row]] = {name: Counter() for name in catalog}
    for name, relation in catalog.items():
        for _ in range(random.randrange(1, 5)):
            rows[name] = added(rows[name], _insert(random, relation, rows))
    return WorldSetting(view=view, catalog=catalog, rows=rows)


@lru_cache(maxsize=4096)
def _declared(sql: str, relations: tuple[Relation, ...]) -> JoinView:
    """Understand a view, once for all algorithms that are played through the same worlds: it takes longer than they."""
    return declare("v", sql, {relation.name: relation for relation in relations})


def _relation(source: str, name: str, parent: RelationName | None) -> Relation:
    columns = tuple(Column(name=column, type="int", native="int4") for column in COLUMNS)
    refers = () if parent is None else (ForeignKey(columns=("a",), parent=parent, parent_columns=("k",)),)
    not_null = frozenset("ka") if refers else frozenset("k")
    own = RelationName(source=source, name=name)
    return Relation(name=own, columns=columns, key=("k",), foreign_keys=refers, not_null=not_null)


def _sql(random: Random, chances: Chances, chosen: list[Relation]) -> str:
    aliases = [f"x{place}" for place in range(len(chosen))]
    star = random.random() < chances.star
    conditions = [_joined(random, chances, chosen, 0 if star else place - 1, place) for place in range(1, len(chosen))]
    if len(aliases) > 2 and random.random() < chances.cycle:  # noqa: PLR2004 - a cycle has three corners
        conditions.append(f"x0.{random.choice('ab')} = {aliases[-1]}.{random.choice('ab')}")
    if random.random() < 0.25:  # noqa: PLR2004 - a share of the views
        conditions.append(f"{random.choice(aliases)}.b > 0")
    outputs = [f"{random.choice(aliases)}.{random.choice('ab')} AS o{place}" for place in range(2)]
    for alias in aliases:
        if chances.keyed or random.random() < chances.shown_keys:
            shown = COLUMNS if random.random() < 0.8 else COLUMNS[:1]  # noqa: PLR2004 - most of them
            outputs += [f"{alias}.{column} AS {alias}_{column}" for column in shown]
    tables = ", ".join(f"{one.name} {alias}" for one, alias in zip(chosen, aliases, strict=True))
    return f"SELECT {', '.join(outputs)} FROM {tables} WHERE {' AND '.join(conditions)}"


def _joined(random: Random, chances: Chances, chosen: Sequence[Relation], one: int, other: int) -> str:
    """Return how two occurrences are joined: by a reference where there is one, by a key, or by any columns."""
    for child, parent in ((one, other), (other, one)):
        if any(key.parent == chosen[parent].name for key in chosen[child].foreign_keys):
            return f"x{child}.a = x{parent}.k"
    if random.random() < chances.theta:
        return f"x{one}.{random.choice('ab')} < x{other}.{random.choice('ab')}"
    if random.random() < chances.by_key:
        known, led_to = random.choice([(one, other), (other, one)])
        return f"x{known}.{random.choice('ab')} = x{led_to}.k"
    return f"x{one}.{random.choice('ab')} = x{other}.{random.choice('ab')}"


def random_transaction(random: Random, world: World, source: str, chances: Chances) -> Rows:
    """Return something that a source could commit now: one to three rows in one or more of its relations."""
    return random_changes(random, world.setting.catalog, world.rows, source, chances)


def random_changes(
    random: Random,
    catalog: Mapping[RelationName, Relation],
    held: Mapping[RelationName, Mapping[Row, int]],
    source: str,
    chances: Chances,
) -> Rows:
    """Return what a source could commit over rows that are held. Rows that refer to one that goes, go with it."""
    own = [name for name in catalog if name.source == source]
    rows: dict[RelationName, Counter[Row]] = {name: Counter(held[name]) for name in own}
    for _ in range(random.randint(1, 3)):
        name = random.choice(own)
        rows[name] = added(rows[name], _change(random, catalog[name], rows, chances))
    while cascade := _without_parents(catalog, rows):
        for name, gone in cascade.items():
            rows[name] = added(rows[name], gone)
    changes = {}
    for name in own:
        change = Counter(rows[name])
        change.subtract(held[name])
        if netted := {row: count for row, count in change.items() if count}:
            changes[name] = netted
    return changes


def _without_parents(
    catalog: Mapping[RelationName, Relation], rows: Mapping[RelationName, Counter[Row]]
) -> dict[RelationName, Counter[Row]]:
    """Return the rows to delete because what they refer to is not there."""
    gone: dict[RelationName, Counter[Row]] = {}
    for name, held in rows.items():
        for key in catalog[name].foreign_keys:
            present = {row[0] for row in rows[key.parent]}
            if lost := Counter({row: -count for row, count in held.items() if row[1] not in present}):
                gone[name] = lost
    return gone


def _change(
    random: Random, relation: Relation, rows: Mapping[RelationName, Counter[Row]], chances: Chances
) -> Counter[Row]:
    held, draw = rows[relation.name], random.random()
    if held and draw < chances.delete:
        return Counter({random.choice(sorted(held)): -1})
    if held and draw < chances.delete + chances.modify:
        old = random.choice(sorted(held))
        new = _values(random, relation, rows)
        return Counter() if new is None else added({old: -1}, {(old[0], *new): 1})
    return _insert(random, relation, rows)


def _insert(random: Random, relation: Relation, rows: Mapping[RelationName, Counter[Row]]) -> Counter[Row]:
    """Return a new row whose key is free. Keys are few, so that they are used again."""
    free = sorted(set(range(_KEYS)) - {row[0] for row in rows[relation.name]})
    values = _values(random, relation, rows)
    return Counter({(random.choice(free), *values): 1}) if free and values is not None else Counter()


def _values(random: Random, relation: Relation, rows: Mapping[RelationName, Counter[Row]]) -> tuple[int, ...] | None:
    """Return the columns of a row besides its key, or None if it has nothing to refer to."""
    values = [random.randrange(_VALUES) for _ in relation.columns[1:]]
    for key in relation.foreign_keys:
        present = sorted(row[0] for row in rows[key.parent])
        if not present:
            return None
        values[0] = random.choice(present)
    return tuple(values)


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
