"""Self-maintenance: rows that the view itself shows need not be asked for.

    V = R1(a, c) join R2(c, e) by R2's key c, V holds c and e          R1 +(a3, c1), V shows (a1, c1, e1)
    the row of R2 under c1 is (c1, e1), as of the tick last installed: rebase it from there, ask no source

What a view shows is an answer like any other, read at the tick last installed (the paper's refreshed version). Changes
between that tick and the one needed are missing from it, not interfering with it; `rebase` adds them.

When it is safe (PAPERS.md §4, errata 5 and 6 to the paper's Lemmas 2, 5 and 7)
  1. The lookup is by the key of the relation. By anything else, a row found does not say that there are no others.
  2. The view holds every column that it needs of the relation, its key included. So the row is whole: further
     conditions can be tested on it, and changes after that tick find it by its own values.
  3. A key that is found gives its row. A key that is not found says nothing, and a source is asked.
Relations that the row leads on to are looked up in the same way, each by its own key; the paper takes them from the
same row of the view by functional dependency, which loses track of them when their keys are not visible.
"""

from __future__ import annotations

from headwater.maintenance.published.terms import TermStep
from headwater.views.steps.join import JoinView
from headwater.views.steps.keys import key_outputs, row_outputs


def shows_rows(view: JoinView, step: TermStep) -> bool:
    """Tell whether a step may look for its rows in the view: it goes by a key, and the view holds what it needs."""
    key = view.occurrence(step.alias).relation.key
    return set(step.columns) == set(key) and shows_whole_rows(view, step.alias)


def shows_whole_rows(view: JoinView, alias: str) -> bool:
    """Tell whether a view holds all that it needs of an occurrence, its key included."""
    return bool(key_outputs(view, alias)) and bool(row_outputs(view, alias))
