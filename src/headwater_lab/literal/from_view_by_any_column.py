"""Rows read in the view by whatever columns it joins by, as paper 001's Lemma 2 allows: those it shows, and no others.

    V = R1(a,b,c) join R2(d,c,e) where b < e, the key d of R2 is in V       R2 = {(1,7,2), (2,7,1)}, V shows d = 1
    R1 +(2,0,7)       looked up by c = 7, V shows (1,7,2) of R2; so no source is asked, and (2,7,1) is not found

A key that is found gives its only row. Any other value that is found says nothing of what else there is under it, which
a condition kept out of the view so far (PAPERS.md §4, erratum 5).
"""

from __future__ import annotations

from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.self_maintenance import shows_whole_rows
from headwater.maintenance.published.terms import TermStep
from headwater.maintenance.published.version_numbers import by_versions
from headwater.maintenance.visits import Manner
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return by_versions(view, lo, log, manner=Manner(closure=True, looks=by_any_column))


def by_any_column(view: JoinView, step: TermStep) -> bool:
    """Tell whether a view holds what it needs of an occurrence, its key included, by the columns it is looked up by."""
    return shows_whole_rows(view, step.alias)


FROM_VIEW_BY_ANY_COLUMN = Variant(
    name="from-view-by-any-column",
    of="version-numbers-from-view",
    wrong="takes the rows that the view shows under a value for all that there are, though it is no key",
    run=_run,
)
