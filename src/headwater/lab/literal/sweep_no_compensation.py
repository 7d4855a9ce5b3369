"""SWEEP without what makes it SWEEP: answers are taken as they come. The control of every experiment with it."""

from __future__ import annotations

from typing import Any

from headwater.lab.literal.altered_log import AlteredLog, Begun, of_ticks
from headwater.lab.literal.variant import Variant
from headwater.maintenance.messages import History, Running
from headwater.maintenance.sweep import sweep
from headwater.position import Tick
from headwater.views.normal_form import JoinView


def _run(view: JoinView, lo: Tick, log: History[Any]) -> Running:
    begun = Begun()
    altered = AlteredLog(log=log, own=begun.own, too_early=lambda bag: of_ticks(bag, lambda tick: tick <= begun.newest))
    return sweep(view, lo, altered)


SWEEP_NO_COMPENSATION = Variant(
    name="sweep-no-compensation",
    of="sweep",
    wrong="takes no concurrent change out of an answer",
    run=_run,
)
