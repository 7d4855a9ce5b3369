"""Nested SWEEP: a sweep that meets a concurrent change takes it in, and goes on for both.

Law. Let every occurrence j stand at a state of its own, its changes up to tick t(j). The sum of the terms over a span
(the occurrences bound so far) is what the join of that span has changed by since the sweep began. A step to j keeps it:

    terms over span + j  =  terms over span, joined with j as it was      the answer, rebased to t(j)
                         +  what the queued changes of j do to span + j   the same, one level deeper

    1: R2 +(3,5)  ── ask R1 ──►
    2: R1 -(2,3)  delivered before the answer
                  ◄── (1,3)       + (2,3) put back; then -(2,3) is swept over R1, R2 only; then both go on to R3

Invariants
  1. A step takes in *all* queued changes of its occurrence at once, so what is absorbed of an occurrence is a prefix of
     its changes, and one tick per occurrence is all there is to remember.
  2. An install absorbs the next ticks of the delivery order, none left out: what is still queued and older than
     something absorbed is swept over the whole view before the install. A transaction that changes several occurrences
     is whole by the same rule.
  3. Once `CUT_OFF` transactions are absorbed, only those older than the newest of them still are; the others are taken
     out of the answers, as in SWEEP. That is a finite number, so an install comes whatever the sources do.

Guarantee: strong. Cost: at most n - 1 queries for each absorbed change of an occurrence: a sweep for k of them asks
n - 1 times, and one for a span asks less. Terms of one span travel in one message.

Paper: 000, Figure 6. Errata (PAPERS.md §2.2): the figure takes in a single concurrent change (684 of 2,000 runs end
wrong); a limit on the depth of recursion, to force an end, absorbs a change and leaves an older one out (351 runs fall
below strong). Without the cut-off, 40 alternating changes end in one install. The paper's figures keep invariant 2 by
sweeping for changes that cancel out, and for terms that are empty; here nothing is asked with nothing in hand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any

from headwater.maintenance.published.messages import (
    Answered,
    Delivered,
    Effect,
    Install,
    Running,
    ViewHistory,
    changes_of,
)
from headwater.maintenance.published.terms import Term, started_terms, steps_from
from headwater.maintenance.walk import Questions, Walks, bind_step
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView

CUT_OFF = 8

Absorbs = Callable[[Collection[Tick], Sequence[Tick], int], Sequence[Tick]]
"""Of the ticks queued for an occurrence: the first few that are taken in now.

Given the ticks that this install has absorbed, the queued ones, and how deep in the recursion the sweep is that has
come to the occurrence; 0 if no sweep is under way and the question is what has to be taken in before the install.
"""


def nested_sweep(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Sweep for as many transactions as meet, up to the cut-off. Install them together."""
    return run_nested(view, lo, log, absorbs_upto(CUT_OFF))


def absorbs_upto(cut_off: int | None) -> Absorbs:
    """Return the rule that takes in all that is met and, after a number of transactions, only what is older."""

    def absorbs(absorbed: Collection[Tick], queued: Sequence[Tick], depth: int) -> Sequence[Tick]:
        if depth and (cut_off is None or len(absorbed) < cut_off):
            return queued
        return [tick for tick in queued if tick <= max(absorbed)]

    return absorbs


def run_nested(view: JoinView, lo: Tick, log: ViewHistory[Any], absorbs: Absorbs) -> Running:
    """Maintain a view. `absorbs` says which changes are installed together."""
    nest = _Nest(view, lo, log, absorbs)
    walks: Walks[tuple[Term[Any], ...]] = Walks()
    effects: list[Effect] = []
    while True:
        event = yield effects
        effects = []
        match event:
            case Delivered():
                nest.receive(event.tick)
            case Answered():
                effects += walks.take(event)
        while walks.is_quiet:
            effects += [nest.install(terms) for _, terms in walks.finished()]
            if nest.is_up_to_date:
                break
            effects += walks.start(nest.sweep())[1]


class _Nest:
    """What is queued for each occurrence, how far each is absorbed, and what the install under way has absorbed."""

    def __init__(self, view: JoinView, lo: Tick, log: ViewHistory[Any], absorbs: Absorbs) -> None:
        self._view = view
        self._log = log
        self._absorbs = absorbs
        self._everywhere = {occurrence.alias for occurrence in view.occurrences}
        self._queued: dict[str, deque[Tick]] = {occurrence.alias: deque() for occurrence in view.occurrences}
        self._taken = {occurrence.alias: lo for occurrence in view.occurrences}
        self._absorbed: set[Tick] = set()
        self._delivered = lo
        self._installed = lo

    @property
    def is_up_to_date(self) -> bool:
        """Whether everything that was delivered is installed."""
        return self._installed == self._delivered

    def receive(self, tick: Tick) -> None:
        """Queue a transaction, for each occurrence that it changed."""
        assert tick == self._delivered + 1, "ticks are delivered in order, none left out"
        self._delivered = tick
        for term in started_terms(self._view, tick, changes_of(self._view, self._log, Tick(tick - 1), tick)):
            (alias,) = term.bound
            self._queued[alias].append(tick)

    def sweep(self) -> Questions[tuple[Term[Any], ...]]:
        """Sweep for the oldest change, for what is met on the way, and for older ones that were left behind by that."""
        self._absorbed = set()
        waiting = [alias for alias, ticks in self._queued.items() if ticks]
        if not waiting:
            return ()
        oldest = min(waiting, key=lambda alias: self._queued[alias][0])
        terms = yield from self._sweep_for(oldest, 1, self._everywhere, 1)
        while behind := [alias for alias in self._queued if self._share(alias, 0)]:
            count = len(self._share(behind[0], 0))
            terms += yield from self._sweep_for(behind[0], count, self._everywhere, 1)
        return terms

    def _share(self, alias: str, depth: int) -> Sequence[Tick]:
        return self._absorbs(self._absorbed, tuple(self._queued[alias]), depth)

    def _sweep_for(self, alias: str, count: int, span: set[str], depth: int) -> Questions[tuple[Term[Any], ...]]:
        """Return what an occurrence's next changes, and those met on the way, do to the join of a span."""
        terms: tuple[Term[Any], ...] = (self._absorb(alias, count),)
        bound = {alias}
        for step in steps_from(self._view, bound, span):
            terms = tuple(term for term in terms if not term.is_empty)
            if not terms:
                break
            terms = yield from bind_step(self._view, step, terms, self._log, self._taken[step.alias])
            bound = {*bound, step.alias}
            if met := self._share(step.alias, depth):
                terms += yield from self._sweep_for(step.alias, len(met), bound, depth + 1)
        return tuple(term for term in terms if not term.is_empty)

    def _absorb(self, alias: str, count: int) -> Term[Any]:
        """Take the next changes of an occurrence out of the queue, merged into one, which may be none at all."""
        ticks = [self._queued[alias].popleft() for _ in range(count)]
        relation = self._view.occurrence(alias).relation.name
        changes = self._log.changes(relation, self._view.relations[relation], self._taken[alias], ticks[-1])
        self._taken[alias] = ticks[-1]
        self._absorbed.update(ticks)
        return Term(tick=ticks[-1], bound={alias: changes.restamped(ticks[-1]).net()})

    def install(self, terms: tuple[Term[Any], ...]) -> Install[Any]:
        """Install what was absorbed: the view is right up to the oldest tick that is still queued, without it."""
        oldest = min((ticks[0] for ticks in self._queued.values() if ticks), default=Tick(self._delivered + 1))
        self._installed = Tick(oldest - 1)
        self._taken = {alias: max(tick, self._installed) for alias, tick in self._taken.items()}
        return Install(upto=self._installed, terms=tuple(term.at(self._installed) for term in terms))
