"""C-Strobe: one transaction at a time. What concurrent deletes took from an answer is asked for again.

Law. For the rows D that transaction s inserts, the view gains  D join R1@s join ... join Rn@s.  An answer is read later
and as a whole; only at its end is it compared with what came since s, row by row, the first touch of a row deciding:

    first inserted   the row was not there at s: it is taken out of the answer
    first deleted    it was there at s, and may be missing: put it back, with a compensating query that is D and this
                     row and asks all other relations. That query's answer is corrected in the same way.

    s1: R1 +(3,5)   ── ask R2 ──►
    s2: R2 -(5,7)   delivered before the answer
                    ◄── nothing         put back (5,7): ask R3 with (3,5), (5,7); then install s1
    s2 is handled next: its key takes (3,5,7,..) out of the view, and no source is asked

Invariants
  1. Everything delivered between s and the end of a query counts as concurrent, whether its answers saw it or not: a
     row put back that was not missing is the same row (equal keys), one taken out that was not there is no loss.
  2. A set of rows put back is asked about once, in any order in which they were found to be missing.
  3. One that puts back a row of every other relation needs no source.

Guarantee: complete.
Cost of an insert that nothing disturbs: n - 1 queries; of a delete: none. If each of the other n - 1 relations sees K
concurrent transactions that delete, every choice of at most n - 2 relations and of one such transaction for each is a
query of its own (the first one is the choice of none), and one with d rows put back visits n - 1 - d relations:

    sum over d <= n - 2 of C(n-1, d) K^d = (1+K)^(n-1) - K^(n-1)     evaluations; 175 for n = 5 and K = 3
    each with n - 1 - d round trips: in total (n-1) (1+K)^(n-2)      messages and answers; 256

Deletes of one transaction are put back together. Needs: the primary key of every relation among the view's columns.

Paper: described in 000, §3. Errata (PAPERS.md §2.2.10, .12): taking concurrent inserts out by key also takes out rows
that were there before, when a key is used again (167 of 2,000 runs skip a state); K^(n-2) and (n-1)! are not the cost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from headwater.maintenance.published.by_key import deleted_keys, inserted_terms
from headwater.maintenance.published.messages import (
    Answered,
    Delivered,
    Effect,
    Install,
    Query,
    Running,
    ViewHistory,
    changes_of,
)
from headwater.maintenance.published.terms import Term
from headwater.maintenance.walk import Walks, walk_as_answered
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView

Changes = Mapping[RelationName, Any]
_Choice = frozenset[tuple[str, Tick]]
"""Rows put back: of these occurrences, what these transactions deleted."""


class Concurrent(Protocol):
    """What came after a transaction, as its answers are corrected for it."""

    def take(self, tick: Tick, changes: Changes) -> None:
        """Count one more transaction as concurrent."""
        ...

    def deleted(self) -> Mapping[tuple[RelationName, Tick], Any]:
        """Return the rows to put back, by relation and by the transaction that deleted them."""
        ...

    def correct(self, view: JoinView, term: Term[Any], own: set[str]) -> Term[Any]:
        """Take the concurrent inserts out of an answer. `own` are the occurrences bound before anybody was asked."""
        ...


class FirstTouch:
    """Concurrent changes netted per row: one first inserted was not there, one first deleted was.

    The difference to the state at s, tick by tick, shows it: a row is above zero at some time if it was not there, and
    below zero at some time if it was.
    """

    def __init__(self) -> None:
        """Begin with no concurrent changes."""
        self._difference: dict[RelationName, Any] = {}
        self._inserted: dict[RelationName, Any] = {}
        self._missed: dict[RelationName, Any] = {}
        self._deleted: dict[tuple[RelationName, Tick], Any] = {}

    def take(self, tick: Tick, changes: Changes) -> None:
        """Count one more transaction as concurrent."""
        for name, change in changes.items():
            if len(change):
                self._take(name, tick, change.restamped(Tick(0)))

    def _take(self, name: RelationName, tick: Tick, change: Any) -> None:
        nothing = _minus(change, change)
        difference = self._difference.get(name, nothing).plus(change).net()
        missed = self._missed.get(name, nothing)
        self._difference[name] = difference
        self._inserted[name] = self._inserted.get(name, nothing).widest(difference.positive())
        if len(first_deleted := _minus(difference.negated(), missed)):
            self._deleted[name, tick] = first_deleted
            self._missed[name] = missed.plus(first_deleted)

    def deleted(self) -> Mapping[tuple[RelationName, Tick], Any]:
        """Return the rows that were there, by relation and by the first transaction that deleted them."""
        return self._deleted

    def correct(self, view: JoinView, term: Term[Any], own: set[str]) -> Term[Any]:
        """Take the rows that were not there out of every answer."""
        for alias, rows in term.bound.items():
            relation = view.occurrence(alias).relation.name
            if alias not in own and relation in self._inserted:
                term = term.bind(alias, _minus(rows.restamped(Tick(0)), self._inserted[relation]))
        return term


def _minus(rows: Any, others: Any) -> Any:
    """Return the rows that are there, and are not among others. Relations with keys hold each row once."""
    return rows.plus(others.negated()).positive()


class _Job:
    """One transaction, handled until all its queries have been answered."""

    def __init__(
        self, view: JoinView, tick: Tick, changes: Changes, concurrent: Concurrent, walks: Walks[Term[Any]]
    ) -> None:
        self._concurrent = concurrent
        self._view = view
        self._tick = tick
        self._removed = deleted_keys(view, changes)
        self._inserted = {alias: term for term in inserted_terms(view, tick, changes) for alias in term.bound}
        self._walks = walks
        self._asked: set[tuple[str, _Choice]] = set()
        self._open: dict[int, tuple[str, _Choice]] = {}
        self._terms: list[Term[Any]] = []

    def take(self, tick: Tick, changes: Changes) -> None:
        """Count one more transaction as concurrent, if anything is asked at all."""
        if self._inserted:
            self._concurrent.take(tick, changes)

    def start(self) -> list[Query[Any]]:
        """Ask about the rows inserted into each occurrence."""
        return [query for alias in self._inserted for query in self._ask(alias, frozenset())]

    def go_on(self) -> list[Query[Any]]:
        """Correct the complete answers, and return the compensating queries that they need."""
        queries: list[Query[Any]] = []
        while finished := self._walks.finished():
            for number, found in finished:
                queries += self._close(number, found)
        return queries

    def install(self) -> Install[Any]:
        """Return the transaction's change of the view."""
        terms = tuple(term for term in self._terms if not term.is_empty)
        return Install(upto=self._tick, terms=terms, removed=self._removed, distinct=True)

    def _ask(self, start: str, choice: _Choice) -> Sequence[Query[Any]]:
        """Ask what the rows inserted at one occurrence and the rows put back join, unless that was asked before."""
        if (start, choice) in self._asked:
            return ()
        self._asked.add((start, choice))
        term = self._inserted[start]
        for alias, tick in choice:
            relation = self._view.occurrence(alias).relation.name
            term = term.bind(alias, self._concurrent.deleted()[relation, tick])
        number, queries = self._walks.start(walk_as_answered(self._view, term))
        self._open[number] = (start, choice)
        return queries

    def _close(self, number: int, found: Term[Any]) -> list[Query[Any]]:
        start, choice = self._open.pop(number)
        own = {start, *(alias for alias, _ in choice)}
        self._terms.append(self._concurrent.correct(self._view, found, own))
        queries: list[Query[Any]] = []
        for relation, tick in self._concurrent.deleted():
            for occurrence in self._view.occurrences:
                if occurrence.relation.name == relation and occurrence.alias not in own:
                    queries += self._ask(start, choice | {(occurrence.alias, tick)})
        return queries


def c_strobe(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Handle one transaction at a time, correcting its answers by the first touch of each row."""
    return compensate_by_asking(view, lo, log, FirstTouch)


def compensate_by_asking(
    view: JoinView, lo: Tick, log: ViewHistory[Any], concurrent: Callable[[], Concurrent]
) -> Running:
    """Handle one transaction at a time: deletes by key, inserts by asking, and asking again for what was deleted."""
    walks: Walks[Term[Any]] = Walks()
    queue: deque[tuple[Tick, Changes]] = deque()
    job: _Job | None = None
    delivered = lo
    effects: list[Effect] = []
    while True:
        event = yield effects
        effects = []
        match event:
            case Delivered():
                assert event.tick == delivered + 1, "ticks are delivered in order, none left out"
                changes = changes_of(view, log, delivered, event.tick)
                delivered = event.tick
                queue.append((delivered, changes))
                if job is not None:
                    job.take(delivered, changes)
            case Answered():
                effects += walks.take(event)
        while True:
            if job is not None:
                effects += job.go_on()
                if not walks.is_quiet:
                    break
                effects.append(job.install())
                job = None
            if not queue:
                break
            job = _Job(view, *queue.popleft(), concurrent(), walks)
            for waiting in queue:
                job.take(*waiting)
            effects += job.start()
