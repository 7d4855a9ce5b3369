"""Small worlds to play by hand: a chain of relations r1(a, b), r2(a, b), ... where each joins the next by b = a."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from headwater.judge.grade import grade_sequence
from headwater.model.guarantee import Guarantee
from headwater.model.relation import Column, Relation, RelationName
from headwater_lab.one_join import declare
from headwater_lab.world import Installed, Sent, World, WorldSetting

Pair = tuple[int, int]


def chain(
    *rows: Sequence[Pair], sources: Sequence[int] | None = None, outputs: str = "*", appearances: str = ""
) -> WorldSetting:
    """Return a chain of relations with these rows, each at its own source or at the given ones.

    `appearances` names the relation of each occurrence by its number, as in "112"; each appears once if it is left out.
    """
    homes = sources or range(1, len(rows) + 1)
    columns = tuple(Column(name=column, type="int", native="int4") for column in "ab")
    relations = [
        Relation(name=RelationName(source=f"s{home}", name=f"r{place}"), columns=columns, key=())
        for place, home in enumerate(homes, start=1)
    ]
    chosen = [relations[int(digit) - 1] for digit in appearances] if appearances else relations
    tables = ", ".join(f"{relation.name} x{place}" for place, relation in enumerate(chosen, start=1))
    joined = " AND ".join(f"x{place}.b = x{place + 1}.a" for place in range(1, len(chosen)))
    names = [f"x{place}.{column}" for place in range(1, len(chosen) + 1) for column in "ab"]
    wanted = ", ".join(f"{name} AS {name.replace('.', '_')}" for name in (names if outputs == "*" else outputs.split()))
    catalog = {relation.name: relation for relation in relations}
    view = declare("v", f"SELECT {wanted} FROM {tables} WHERE {joined}", catalog)
    held = {relation.name: Counter(pairs) for relation, pairs in zip(relations, rows, strict=True)}
    return WorldSetting(view=view, catalog=catalog, rows=held)


def commit(world: World, place: int, pair: Pair, count: int = 1) -> str:
    """Let the source of a relation insert a row, or delete it; return the source."""
    name = next(name for name in world.setting.catalog if name.name == f"r{place}")
    world.commit(name.source, {name: {pair: count}})
    return name.source


def arrive(world: World, place: int, pair: Pair, count: int = 1) -> None:
    """Let a source insert or delete a row, and the warehouse hear of it at once."""
    world.deliver(commit(world, place, pair, count))


def answer(world: World, source: str) -> None:
    """Let a source answer its oldest query, and the warehouse receive the answer."""
    world.serve(source)
    world.deliver(source)


def finish(world: World) -> None:
    """Let everything that is on its way arrive."""
    while not world.is_quiet:
        for source in world.setting.sources:
            if world.queries[source]:
                world.serve(source)
            if world.channels[source]:
                world.deliver(source)


def wander(world: World, random: Random, transaction_count: int) -> None:
    """Play a random interleaving of transactions after which every relation has rows, all of which join."""
    while transaction_count or not world.is_quiet:
        moves = [("serve", source) for source, waiting in world.queries.items() if waiting]
        moves += [("deliver", source) for source, waiting in world.channels.items() if waiting]
        if transaction_count:
            moves += [("commit", source) for source in world.setting.sources]
        move, source = random.choice(moves)
        if move == "commit":
            transaction_count -= 1
            name = random.choice([name for name in world.setting.catalog if name.source == source])
            count = random.choice([1, 2, -1]) if world.rows[name][0, 0] > 1 else 1
            world.commit(source, {name: {(0, 0): count}})
        elif move == "serve":
            world.serve(source)
        else:
            world.deliver(source)


def states(world: World) -> list[Mapping[tuple[object, ...], int]]:
    """Return what readers saw, each state once."""
    seen = world.shown_states()
    return [state for place, state in enumerate(seen) if place == 0 or state != seen[place - 1]]


def installs(world: World) -> list[Installed]:
    return [event for event in world.events if isinstance(event, Installed)]


def query_count(world: World) -> int:
    return sum(isinstance(event, Sent) for event in world.events)


def grade_of(world: World) -> Guarantee:
    return grade_sequence(world.right_states(), world.shown_states()).guarantee
