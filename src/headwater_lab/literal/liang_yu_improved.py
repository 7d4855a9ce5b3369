"""Paper 003's improved algorithm: a second appearance of a relation takes its rows from the first.

    V = S(x,y) join R(y,z) join R'(z,w), R = {(0,1), (1,1)}, S = {}        S +(0,0)

R' needs (1,1), which the first appearance did not lead to: nothing is found (PAPERS.md §3.1, Theorem 2). This is the
charitable reading, in which R' takes all rows that R was bound to, not only that of the same combination.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.terms import Term, steps_from
from headwater.maintenance.walk import Questions, walk
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.liang_yu_simple import in_place_of_all
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return in_place_of_all(view, lo, log, by_representatives)


def by_representatives(
    view: JoinView, term: Term[Any], log: ViewHistory[Any], needed: Callable[[str], Tick]
) -> Questions[Term[Any]]:
    """Ask for the first appearance of each relation. The others take its rows."""
    for step in steps_from(view, set(term.bound)):
        relation = view.occurrence(step.alias).relation.name
        copies = [alias for alias in term.bound if view.occurrence(alias).relation.name == relation]
        if copies:
            term = term.bind(step.alias, term.bound[copies[0]])
        else:
            term = yield from walk(view, term, log, needed, {step.alias})
    return term


LIANG_YU_IMPROVED = Variant(
    name="liang-yu-improved",
    of="multi-appearance",
    wrong="a second appearance of a relation takes its rows from the first",
    run=_run,
)
