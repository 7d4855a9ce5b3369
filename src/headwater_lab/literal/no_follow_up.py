"""One query for several relations of a source, and no second one: paper 001's Lemma 6 without the message it costs.

    V = S join R1 join R2, R1 = {(0,1)} and R2 = {(1,0)} at one source
    S +(1,0), and R1 -(0,1) before the query arrives: nothing is found in R1, so nothing is looked for in R2

The row of R1 is put back at the warehouse; where it leads on to was not asked (PAPERS.md §3.2).
"""

from __future__ import annotations

from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.version_numbers import by_versions
from headwater.maintenance.visits import Manner
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return by_versions(view, lo, log, manner=Manner(closure=True, may_bind=once_queried))


def once_queried(*, covered: bool, queried: bool) -> bool:
    """Let a term go on as soon as a relation was marked "queried", whatever was looked for in it."""
    return covered or queried


NO_FOLLOW_UP = Variant(
    name="no-follow-up",
    of="version-numbers",
    wrong="rows that are put back are not followed to the other relations of their source",
    run=_run,
)
