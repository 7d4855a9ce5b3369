"""Multi-appearance SWEEP: a relation that appears several times is visited as if it appeared once.

Law. When transaction s changes relation R, which appears at occurrences p1 < p2 < ..., the view changes by one term for
each of them: occurrence p bound to the change, those before p as they are after s, those after p as they were before.
The terms need the same rows at different ticks; an answer can be rebased to any tick. So ask once, rebase often:

    V = R(a,b) join R(b,c), R = {(1,0)}        s: R +(0,0)
    terms  {p1: d}  needs p2 before s          ── one visit to R: b = 0 and a = 0 ──►  (1,0), (0,0)
           {p2: d}  needs p1 after s                p2 at s-1: nothing        p1 at s: (1,0), (0,0)

Invariants
  1. An answer is kept as it came, with what it saw; it is rebased for each term that uses it, never in place.
  2. A visit asks for the missing keys of all occurrences next to what any term has bound: none is asked for twice.
  3. The next visits are those of a minimum plan, for what is bound by then, that need no answer of each other
     (`visit_plan`). They go out at once: this is the paper's variant with concurrency (§4.2), which needs no
     representative of its own for each side, because an answer is rebased for each term and never used up.

Guarantee: complete. Cost: as many queries as the plan has visits, at most; see docs/theory/visits.md for view shapes.
A view with n different relations at n sources costs n - 1, as SWEEP; a star of dimensions takes one round.

Paper: 003 §4. Errata (PAPERS.md §3.1): its Lemma 1 puts the change in place of all appearances at once, which loses
change-join-old (434 of 1,000 runs end wrong); its Theorem 2 takes a second appearance's rows from the first's, which is
right only if both are joined by a unique key (297 of 1,000). Its variant with concurrency joins two halves, each with a
representative of its own, and is wrong where either is. Its K accesses are reached by sources that go on by themselves
from one occurrence to the next, not by its algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.maintenance.published.in_order import in_order, one_by_one
from headwater.maintenance.published.messages import Install, Running, ViewHistory, changes_of
from headwater.maintenance.published.terms import needed_at, started_terms
from headwater.maintenance.visits import Begun, Manner, visit_sources
from headwater.maintenance.walk import Questions
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView


def multi_appearance(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Visit for one transaction at a time. A source answers each probe and no more."""
    return _one_at_a_time(view, lo, log, Manner(closure=False))


def multi_appearance_with_closure(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    """Visit for one transaction at a time. A source goes on by itself to its own next occurrences."""
    return _one_at_a_time(view, lo, log, Manner(closure=True))


def _one_at_a_time(view: JoinView, lo: Tick, log: ViewHistory[Any], manner: Manner) -> Running:
    def compute(tick: Tick, latest: Callable[[], Tick]) -> Questions[Install[Any]]:
        changes = changes_of(view, log, Tick(tick - 1), tick)
        begun = Begun(
            terms=started_terms(view, tick, changes),
            changes=changes,
            needed=lambda alias, start: needed_at(view, alias, start, tick),
            concurrent=lambda name: log.changes(name, view.relations[name], Tick(tick - 1), latest()),
        )
        terms = yield from visit_sources(view, begun, log, manner)
        return Install(upto=tick, terms=terms)

    return in_order(lo, lambda tick, latest: one_by_one(compute(tick, latest)), in_flight=1)
