"""Every published algorithm on the bags that a maintainer holds: it does what it does on those of the lab."""

from __future__ import annotations

from typing import Any

import pytest
from volume import volume
from world import to_arrow

from headwater.deltas.lookup import RowRequest, Sight, restricted
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest
from headwater.judge.grade import grade_sequence
from headwater.maintenance.published.algorithms import ALGORITHMS, DescribedAlgorithm
from headwater.maintenance.published.messages import (
    Algorithm,
    Answered,
    Effect,
    Event,
    Install,
    Query,
    QueryPart,
    Running,
    ViewHistory,
)
from headwater.maintenance.published.terms import Term
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.chance import chances_for, play
from headwater_lab.in_memory.bag import InMemoryBag, InMemoryKeys

PUBLISHED = [described for described in ALGORITHMS if described.run is not None]
SEEDS = volume(15, 40)


class ArrowHistory:
    """The lab's log, its bags on Arrow."""

    def __init__(self, log: ViewHistory[InMemoryBag]) -> None:
        self._log = log

    def changes(self, relation: RelationName, columns: tuple[str, ...], after: Tick, upto: Tick) -> ArrowBag:
        return to_arrow(self._log.changes(relation, columns, after, upto))

    def seen_after(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        return to_arrow(self._log.seen_after(relation, columns, sight, tick))

    def unseen_upto(self, relation: RelationName, columns: tuple[str, ...], sight: Sight, tick: Tick) -> ArrowBag:
        return to_arrow(self._log.unseen_upto(relation, columns, sight, tick))


def on_arrow(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm that holds Arrow bags in a world that does not."""

    def run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
        running = algorithm(view, lo, ArrowHistory(log))
        effects = next(running)
        while True:
            event = yield [_to_lab(effect) for effect in effects]
            effects = running.send(_from_lab(event))

    return run


def _to_lab(effect: Effect) -> Effect:
    match effect:
        case Query():
            return Query(number=effect.number, source=effect.source, parts=tuple(_part(part) for part in effect.parts))
        case Install():
            return Install(
                upto=effect.upto,
                terms=tuple(Term(tick=term.tick, bound=_bags(term.bound)) for term in effect.terms),
                removed={alias: _keys(keys) for alias, keys in effect.removed.items()},
                modified=_bags(effect.modified),
                distinct=effect.distinct,
            )


def _part(part: QueryPart[ArrowBag]) -> QueryPart[InMemoryBag]:
    keys = None if part.keys is None else _keys(part.keys)
    return QueryPart(carried=_bags(part.carried), steps=part.steps, keys=keys)


def _bags(bags: Any) -> dict[str, InMemoryBag]:
    return {alias: _bag(bag) for alias, bag in bags.items()}


def _bag(bag: ArrowBag) -> InMemoryBag:
    names = tuple(bag.columns)
    rows = bag.table.to_pylist()
    return InMemoryBag.of(names, [(row["_tick"], tuple(row[name] for name in names), row["_count"]) for row in rows])


def _keys(keys: Any) -> InMemoryKeys:
    return InMemoryKeys(frozenset(tuple(row.values()) for row in keys.table.to_pylist()))


def _from_lab(event: Event) -> Event:
    if not isinstance(event, Answered):
        return event
    found = tuple(tuple((_on_arrow(request), to_arrow(rows)) for request, rows in part) for part in event.found)
    return Answered(number=event.number, found=found, sight=event.sight)


def _on_arrow(probe: RowRequest[InMemoryKeys]) -> ArrowRequest:
    keys = None
    if probe.keys is not None:
        asked = to_arrow(InMemoryBag.of(probe.columns, [(0, value, 1) for value in probe.keys.values]))
        keys = asked.keys(probe.columns, asked, probe.columns)
    return RowRequest(relation=probe.relation, wanted=probe.wanted, within=restricted(probe.columns, keys))


@pytest.mark.parametrize("described", PUBLISHED, ids=lambda described: described.name)
def test_differential_both_kinds_of_bags_give_the_same_history(described: DescribedAlgorithm) -> None:
    assert described.run is not None
    for seed in range(SEEDS):
        plain = play(seed, described.run, chances_for(described))
        arrow = play(seed, on_arrow(described.run), chances_for(described))
        assert arrow.shown_states() == plain.shown_states(), f"seed {seed}"
        assert grade_sequence(arrow.right_states(), arrow.shown_states()).guarantee >= described.guarantee
