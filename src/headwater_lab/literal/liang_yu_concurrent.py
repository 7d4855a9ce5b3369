"""Paper 003's variant with concurrency: two halves, each with a representative of its own for every relation.

    V = R1 - R - ... - R - ... : the changed relation splits the view into a left half and a right one

The halves are evaluated at once, each by the improved algorithm, and joined with the change. A half in which a relation
appears twice is wrong as the improved algorithm is (Theorem 2), and other appearances of the changed relation are bound
to the change alone (Lemma 1). Right only where each half has every relation once and the changed one appears once.
"""

from __future__ import annotations

from typing import Any

from headwater.maintenance.published.in_order import TransactionPlan, in_order
from headwater.maintenance.published.messages import Install, Running, ViewHistory, changes_of
from headwater.maintenance.published.terms import Term, needed_at
from headwater.maintenance.walk import Questions, walk
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    def begin(tick: Tick, _: object) -> TransactionPlan:
        changes = changes_of(view, log, Tick(tick - 1), tick)
        starts: dict[RelationName, str] = {}
        for one in view.occurrences:
            if len(changes[one.relation.name]):
                starts.setdefault(one.relation.name, one.alias)
        halves = [
            (start, _half(view, log, tick, start, changes[name], half))
            for name, start in starts.items()
            for half in _halves(view, start)
        ]

        def finish(found: Any) -> Install[Any]:
            terms = {name: Term(tick=tick, bound={start: changes[name]}) for name, start in starts.items()}
            for (start, _), side in zip(halves, found, strict=True):
                name = view.occurrence(start).relation.name
                for alias, rows in side.bound.items():
                    terms[name] = terms[name].bind(alias, rows)
            return Install(upto=tick, terms=tuple(term for term in terms.values() if not term.is_empty))

        return TransactionPlan(questions=tuple(questions for _, questions in halves), finish=finish)

    return in_order(lo, begin, in_flight=1)


def _halves(view: JoinView, start: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what stands left of the change, nearest first, and what stands right of it."""
    aliases = [one.alias for one in view.occurrences]
    place = aliases.index(start)
    return tuple(reversed(aliases[:place])), tuple(aliases[place + 1 :])


def _half(
    view: JoinView, log: ViewHistory[Any], tick: Tick, start: str, change: Any, half: tuple[str, ...]
) -> Questions[Term[Any]]:
    """Bind one half. The first appearance of a relation in it stands for the others."""
    term = Term(tick=tick, bound={start: change})
    for alias in half:
        relation = view.occurrence(alias).relation.name
        copies = [one for one in term.bound if view.occurrence(one).relation.name == relation]
        if copies:
            term = term.bind(alias, term.bound[copies[0]])
        else:
            term = yield from walk(view, term, log, lambda one: needed_at(view, one, start, tick), {alias})
    return term


LIANG_YU_CONCURRENT = Variant(
    name="liang-yu-concurrent",
    of="multi-appearance",
    wrong="each half takes all appearances of a relation from its first one",
    run=_run,
)
