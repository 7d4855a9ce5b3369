"""SWEEP without what makes it SWEEP: answers are taken as they come. The control of every experiment with it."""

from __future__ import annotations

from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.sweep import sweep
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.altered_log import AlteredLog, LastBegun, of_ticks
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    begun = LastBegun()
    altered = AlteredLog(log=log, own=begun.own, too_early=lambda bag: of_ticks(bag, lambda tick: tick <= begun.newest))
    return sweep(view, lo, altered)


SWEEP_NO_COMPENSATION = Variant(
    name="sweep-no-compensation",
    of="sweep",
    wrong="takes no concurrent change out of an answer",
    run=_run,
)
