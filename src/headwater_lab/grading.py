"""Hold a world's history against what its view should have been, in any order that keeps each source's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from headwater.model.guarantee import Guarantee
from headwater.model.relation import RelationName
from headwater_lab.any_order import LARGEST_LATTICE, Vector, grade_any_order
from headwater_lab.in_memory.bag import Row
from headwater_lab.ledger import Rows, added
from headwater_lab.world import Committed, World, WorldSetting

States = Callable[[Vector], Counter[Row]]


def grade_in_any_order(
    world: World, states: States | None = None, *, largest_lattice: int = LARGEST_LATTICE
) -> Guarantee | None:
    """Return the guarantee that a world's history keeps in any order, or None if there are too many to look at.

    `states` gives the right state after a number of transactions of each source, if that was computed already.
    """
    lengths = [world.versions[source] for source in world.setting.sources]
    if states is None:
        committed = (event for event in world.events if isinstance(event, Committed))
        states = states_by_vector(world.setting, ((event.source, event.changes) for event in committed))
    return grade_any_order(lengths, states, world.shown_states(), largest_lattice=largest_lattice)


def right_in_delivery_order(world: World, states: States) -> list[Counter[Row]]:
    """Return what a view should have been after each tick, the beginning first."""
    received: Counter[str] = Counter()
    right = [states(tuple(received[source] for source in world.setting.sources))]
    for entry in world.ledger.entries:
        received[entry.source] += 1
        right.append(states(tuple(received[source] for source in world.setting.sources)))
    return right


def states_by_vector(setting: WorldSetting, transactions: Iterable[tuple[str, Rows]]) -> States:
    """Return a cached function that recomputes a view after a number of transactions of each source."""
    past: dict[str, list[Rows]] = {source: [setting.rows] for source in setting.sources}
    for source, changes in transactions:
        rows: dict[RelationName, Mapping[Row, int]] = dict(past[source][-1])
        for name, change in changes.items():
            rows[name] = added(rows.get(name, {}), change)
        past[source].append(rows)
    states_by_vector: dict[Vector, Counter[Row]] = {}

    def state(vector: Vector) -> Counter[Row]:
        if vector not in states_by_vector:
            number = dict(zip(setting.sources, vector, strict=True))
            rows = {name: past[name.source][number[name.source]].get(name, {}) for name in setting.catalog}
            states_by_vector[vector] = setting.recomputed(rows)
        return states_by_vector[vector]

    return state
