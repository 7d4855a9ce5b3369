"""SWEEP: one transaction at a time, one source at a time, errors taken out on the spot.

Law. When transaction s changes relation R, the view changes by

    R1 join ... delta R ... join Rn          with every other relation as it was when s was delivered

so each answer is brought back to that state: subtract *all* changes of its relation that were delivered after s and
before the answer. Both factors of that error are at the warehouse already; no source is asked twice.

    s1: R2 +(3,5)   ── ask R1 ──►
    s3: R1 -(2,3)   delivered before the answer
                    ◄── (1,3)       + (2,3) put back: it was there at s1          then ask R3, then install s1

Invariants
  1. The changes taken out of an answer are those in the log when it *arrived*, not when it is looked at.
  2. They come from the log, never from a queue: with several sweeps under way, a transaction that has left the queue
     still has to be taken out of the answers of the sweeps before it.
  3. Installs follow the order of delivery, not the order in which sweeps end.

Guarantee: complete. Cost: n - 1 queries for each changed occurrence of a transaction, each with its answer.
Optimisations of the paper: `parallel` sweeps to both sides at once; `in_flight` transactions are swept at once.
In a term every occurrence keeps rows of its own, so the two halves of a parallel sweep carry the change's sign once.

Paper: 000, Figures 3 and 4. Errata (PAPERS.md §2.2): the figure takes out a single concurrent change (584 of 2,000 runs
end wrong); merging two halves that both carry the change squares it (1,020); a queue tested after the answer was
received may hold a change that did not interfere (71); pipelining from the queue forgets what has left it (978).
Transactions of several relations and self-joins: one term per changed occurrence (`terms.started_terms`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from headwater.maintenance.published.in_order import TransactionPlan, in_order
from headwater.maintenance.published.messages import Install, Running, ViewHistory, changes_of
from headwater.maintenance.published.terms import Term, needed_at, started_terms
from headwater.maintenance.walk import walk
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView


def sweep(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Sweep for one transaction at a time, to the left and then to the right."""
    return _sweep(view, lo, log, parallel=False, in_flight=1)


def parallel_sweep(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Sweep for one transaction at a time, to all sides at once."""
    return _sweep(view, lo, log, parallel=True, in_flight=1)


def pipelined_sweep(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Sweep for several transactions at once. Install in the order of their delivery."""
    return _sweep(view, lo, log, parallel=True, in_flight=8)


def _sweep(view: JoinView, lo: Tick, log: ViewHistory[Any], *, parallel: bool, in_flight: int) -> Running:
    def begin(tick: Tick, _: Callable[[], Tick]) -> TransactionPlan:
        terms = started_terms(view, tick, changes_of(view, log, Tick(tick - 1), tick))
        sweeps = [
            (place, walk(view, term, log, partial(_needed, view, term), side))
            for place, term in enumerate(terms)
            for side in (sides(view, *term.bound) if parallel else [None])
        ]
        places = [place for place, _ in sweeps]
        return TransactionPlan(
            questions=tuple(questions for _, questions in sweeps),
            finish=lambda found: _joined(tick, terms, list(zip(places, found, strict=True))),
        )

    return in_order(lo, begin, in_flight=in_flight)


def _needed(view: JoinView, term: Term[Any], alias: str) -> Tick:
    (start,) = term.bound
    return needed_at(view, alias, start, term.tick)


def _joined(tick: Tick, terms: Sequence[Term[Any]], found: Sequence[tuple[int, Term[Any]]]) -> Install[Any]:
    """Return what the sweeps of a transaction found: the sides of one term are one term."""
    whole = list(terms)
    for place, side in found:
        for alias, rows in side.bound.items():
            whole[place] = whole[place].bind(alias, rows)
    return Install(upto=tick, terms=tuple(term for term in whole if not term.is_empty))


def sides(view: JoinView, start: str) -> list[set[str]]:
    """Return the parts into which the join graph falls without an occurrence: a sweep of one needs no other."""
    others = [occurrence.alias for occurrence in view.occurrences if occurrence.alias != start]
    sides: list[set[str]] = []
    for alias in others:
        near = {edge.left for edge in view.edges if edge.right == alias}
        near |= {edge.right for edge in view.edges if edge.left == alias}
        touching = [side for side in sides if side & near]
        sides = [side for side in sides if side not in touching] + [{alias}.union(*touching)]
    return sides
