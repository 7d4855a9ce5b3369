"""ECA: ask once for each transaction, and in the same question take back what it does to the open ones.

Law. Q<U> is a query with the changed relation replaced by the change U. All relations are at one source, whose answer
to an open query Q will hold U's effect on it; Q<U> is exactly that effect. So the question for U is

    V<U> - sum over open queries of Q<U>            evaluated in one state, answered in one message

    1: R1 +(1,2)   Q1 = {R1: +(1,2)} join R2
    2: R2 +(2,3)   delivered while Q1 is open: its answer will hold (1,2,3)
                   Q2 = R1 join {R2: +(2,3)}  -  {R1: +(1,2)} join {R2: +(2,3)}

Invariants
  1. A query is open until its answer is delivered; the source's channel keeps its order, so an answer holds the effects
     of exactly the transactions delivered before it.
  2. Signs are in the counts: a term that is taken back has the sign of its newest change turned.
  3. Nothing is installed while a query is open: the sum of some answers may be a state that never was.

Guarantee: strong, and no install before the source is quiet for a moment. Cost: one query for each transaction. Its
terms are as many as the product, over the other relations, of 1 + the open changes of each: of degree n - 1.

Paper: 000, §3 and Table 1, which describe it; its own paper is not among ours. Erratum (PAPERS.md §2.2.9): the size
of a message is quadratic for three relations only. Transactions of several relations and self-joins: the parts of a
transaction are substituted one after another, each into the terms of those before it; all combinations come of that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headwater.maintenance.published.messages import (
    Answered,
    Delivered,
    Effect,
    Install,
    Query,
    QueryPart,
    Running,
    ViewHistory,
    changes_of,
)
from headwater.maintenance.published.terms import Term, started_terms, steps_from
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView


def eca(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Send one compensating query for each transaction. Collect the answers until none is open."""
    open_queries: dict[int, tuple[Query[Any], tuple[Term[Any], ...]]] = {}
    collected: list[Term[Any]] = []
    delivered = lo
    effects: list[Effect] = []
    while True:
        event = yield effects
        effects = []
        match event:
            case Delivered():
                assert event.tick == delivered + 1, "ticks are delivered in order, none left out"
                delivered = event.tick
                changes = started_terms(view, delivered, changes_of(view, log, Tick(delivered - 1), delivered))
                if changes:
                    terms = compensating_terms([term for _, asked in open_queries.values() for term in asked], changes)
                    query = _query(view, delivered, terms)
                    open_queries[query.number] = query, terms
                    effects.append(query)
            case Answered():
                collected += _answered(*open_queries.pop(event.number), event)
        if not open_queries:
            complete = tuple(term.at(delivered) for term in collected if not term.is_empty)
            effects.append(Install(upto=delivered, terms=complete))
            collected = []


def compensating_terms(already: Iterable[Term[Any]], changes: Sequence[Term[Any]]) -> tuple[Term[Any], ...]:
    """Return the terms of a transaction's query: its parts, each taken back from what is open and from those before."""
    asked = list(already)
    terms: list[Term[Any]] = []
    for change in changes:
        ((alias, rows),) = change.bound.items()
        taken_back = [term.bind(alias, rows.negated()) for term in asked if alias not in term.bound]
        terms += [change, *taken_back]
        asked += [change, *taken_back]
    return tuple(terms)


def _query(view: JoinView, tick: Tick, terms: tuple[Term[Any], ...]) -> Query[Any]:
    """Return the one message of a transaction, under its tick. Terms that need nothing of the source travel too."""
    source = view.occurrences[0].relation.name.source
    steps = {bound: steps_from(view, set(bound)) for bound in {frozenset(term.bound) for term in terms}}
    parts = tuple(QueryPart(carried=term.bound, steps=steps[frozenset(term.bound)]) for term in terms)
    return Query(number=tick, source=source, parts=parts)


def _answered(query: Query[Any], terms: tuple[Term[Any], ...], answered: Answered[Any]) -> list[Term[Any]]:
    """Return a query's terms with what the source found for the occurrences that were not bound."""
    complete: list[Term[Any]] = []
    for part, term, steps in zip(query.parts, terms, answered.found, strict=True):
        found = {step.alias: rows.restamped(term.tick) for step, (_, rows) in zip(part.steps, steps, strict=True)}
        complete.append(Term(tick=term.tick, bound={**term.bound, **found}))
    return complete
