"""Batched SWEEP on messages: the engine's own generator, played like the published algorithms, to be compared.

    idle, ticks 4..9 delivered ──► one batch (3, 9] ──► a query for each source of a step ──► Install 4, 5, ... 9

What a batch finds are the rows of each relation, old ones stamped `lo`, changes with their ticks. The change at tick s
is then one term for each occurrence p that s changed: those before p with stamps up to s, those after p with stamps
below it. Only one batch is under way at a time; what is delivered meanwhile is the next one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from headwater.deltas.lookup import RowRequest, RowResult
from headwater.maintenance.batched_sweep import batched_sweep
from headwater.maintenance.published.messages import (
    Answered,
    Delivered,
    Effect,
    Install,
    Query,
    QueryPart,
    Running,
    ViewHistory,
)
from headwater.maintenance.published.terms import Term, TermStep
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory.bag import InMemoryBag, InMemoryKeys

Bags = Mapping[RelationName, InMemoryBag]
_Batch = Generator[Sequence[Effect], Answered[Any], Sequence[Effect]]


def batched(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Maintain a view batch by batch: whatever was delivered while the one before was under way."""
    done = delivered = lo
    numbers = _Numbers()
    batch: _Batch | None = None
    effects: list[Effect] = []
    while True:
        event = yield effects
        effects = []
        if isinstance(event, Delivered):
            delivered = event.tick
        elif batch is not None:
            batch, effects = _go_on(batch, event)
        while batch is None and done < delivered:
            batch, more = _go_on(_run(view, done, delivered, log, numbers), None)
            effects += more
            done = delivered


class _Numbers:
    """Numbers the queries."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        """Return a number not given before."""
        self._last += 1
        return self._last


def _go_on(batch: _Batch, answered: Answered[Any] | None) -> tuple[_Batch | None, list[Effect]]:
    """Lead an answer to the batch, and return the batch, or None once it has ended, and what it does."""
    try:
        return batch, list(next(batch) if answered is None else batch.send(answered))
    except StopIteration as end:
        return None, list(end.value)


def _run(view: JoinView, lo: Tick, hi: Tick, log: ViewHistory[Any], numbers: _Numbers) -> _Batch:
    """Ask what a batch needs, source by source, and return its installs, tick by tick."""
    changes = {name: log.changes(name, columns, lo, hi) for name, columns in view.relations.items()}
    steps = batched_sweep(view, lo, changes, log)
    answers: list[RowResult[Any]] = []
    try:
        ask = next(steps)
        while True:
            answers = yield from _perform(view, ask, numbers)
            ask = steps.send(answers)
    except StopIteration as end:
        return [_install(view, end.value, Tick(tick)) for tick in range(lo + 1, hi + 1)]


def _perform(
    view: JoinView, requests: Sequence[RowRequest[Any]], numbers: _Numbers
) -> Generator[Sequence[Effect], Answered[Any], Any]:
    """Send one query to each source that probes concern, and return the answers in the order of the probes."""
    by_source: dict[str, list[int]] = {}
    for place, probe in enumerate(requests):
        by_source.setdefault(probe.relation.source, []).append(place)
    sent = {numbers.next(): places for places in by_source.values()}
    queries = [
        Query(
            number=number,
            source=requests[places[0]].relation.source,
            parts=tuple(_part(view, requests[place]) for place in places),
        )
        for number, places in sent.items()
    ]
    answers: dict[int, RowResult[Any]] = {}
    effects: Sequence[Effect] = queries
    while len(answers) < len(requests):
        answered = yield effects
        effects = ()
        for place, ((_, result),) in zip(sent[answered.number], answered.results, strict=True):
            answers[place] = result
    return [answers[place] for place in range(len(requests))]


def _part(view: JoinView, probe: RowRequest[InMemoryKeys]) -> QueryPart[InMemoryBag]:
    alias = next(o.alias for o in view.occurrences if o.relation.name == probe.relation)
    return QueryPart(carried={}, steps=(TermStep(alias=alias, via=None, columns=probe.columns),), keys=probe.keys)


def _install(view: JoinView, bags: Bags, tick: Tick) -> Install[InMemoryBag]:
    """Return the change at one tick of the batch."""
    terms = []
    for place, start in enumerate(view.occurrences):
        if len(_stamped(bags[start.relation.name], lambda stamp: stamp == tick)):
            bound = {
                other.alias: _stamped(bags[other.relation.name], _meeting(where, place, tick))
                for where, other in enumerate(view.occurrences)
            }
            terms.append(Term(tick=tick, bound=bound))
    return Install(upto=tick, terms=tuple(term for term in terms if not term.is_empty))


def _meeting(where: int, start: int, tick: Tick) -> Callable[[Tick], bool]:
    """Return which stamps of an occurrence meet the change of the tick at the start."""
    if where == start:
        return lambda stamp: stamp == tick
    if where < start:
        return lambda stamp: stamp <= tick
    return lambda stamp: stamp < tick


def _stamped(bag: InMemoryBag, chosen: Callable[[Tick], bool]) -> InMemoryBag:
    kept = Counter({(stamp, row): count for (stamp, row), count in bag.entries.items() if chosen(stamp)})
    return InMemoryBag(bag.columns, kept).net()
