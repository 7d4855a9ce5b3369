"""SWEEP as its Figure 4 is drawn: one concurrent change is taken out of an answer, though several may be in it.

2: R2 +(1,0)   ── ask R1 ──►
3: R1 +(1,0), 4: R1 +(0,1)      both in the answer; only 3 is taken out                paper 000, PAPERS.md §2.2.1
"""

from __future__ import annotations

from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.sweep import sweep
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.altered_log import AlteredLog, first_change
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return sweep(view, lo, AlteredLog(log=log, too_early=first_change))


SWEEP_SINGLE = Variant(
    name="sweep-single",
    of="sweep",
    wrong="takes a single concurrent change out of an answer",
    run=_run,
)
