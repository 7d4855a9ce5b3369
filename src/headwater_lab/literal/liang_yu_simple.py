"""Paper 003's simple algorithm: the change takes the place of all appearances of its relation at once.

    V = R(a,b) join R(b,c), R = {(1,0)}        R +(0,0)

gives change-join-change alone; change-join-old and old-join-change are lost, and a delete that meets itself comes out
as an insert (PAPERS.md §3.1, Lemma 1). Right where the updated relation appears once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.maintenance.published.in_order import in_order, one_by_one
from headwater.maintenance.published.messages import Install, Running, ViewHistory, changes_of
from headwater.maintenance.published.terms import Term, needed_at
from headwater.maintenance.walk import Questions, walk
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant

Complete = Callable[[JoinView, Term[Any], ViewHistory[Any], Callable[[str], Tick]], Questions[Term[Any]]]


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return in_place_of_all(view, lo, log, walk)


def in_place_of_all(view: JoinView, lo: Tick, log: ViewHistory[Any], complete: Complete) -> Running:
    """Compute one term for each changed relation, all of whose appearances are bound to its change."""

    def compute(tick: Tick) -> Questions[Install[Any]]:
        terms: list[Term[Any]] = []
        for name, change in changes_of(view, log, Tick(tick - 1), tick).items():
            if not len(change):
                continue
            appearances = [one.alias for one in view.occurrences if one.relation.name == name]
            start = appearances[0]

            def needed(alias: str, start: str = start) -> Tick:
                return needed_at(view, alias, start, tick)

            term = Term(tick=tick, bound=dict.fromkeys(appearances, change))
            terms.append((yield from complete(view, term, log, needed)))
        return Install(upto=tick, terms=tuple(term for term in terms if not term.is_empty))

    return in_order(lo, lambda tick, _: one_by_one(compute(tick)), in_flight=1)


LIANG_YU_SIMPLE = Variant(
    name="liang-yu-simple",
    of="multi-appearance",
    wrong="the change replaces all appearances of its relation at once",
    run=_run,
)
