"""Pipelined SWEEP that looks for concurrent changes in the queue, where those whose own sweep has begun are no more.

    1: R1 +(0,1)   ── ask R2 ──►
    2: R2 +(1,1)   its sweep begins at once, so it has left the queue; it is in the answer for 1, and stays there

A transaction that changes several occurrences of a view finds its own change missing too. PAPERS.md §2.2.5.
"""

from __future__ import annotations

from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.sweep import pipelined_sweep
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.altered_log import AlteredLog, LastBegun, of_ticks
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    begun = LastBegun()
    altered = AlteredLog(log=log, own=begun.own, too_early=lambda bag: of_ticks(bag, lambda tick: tick > begun.newest))
    return pipelined_sweep(view, lo, altered)


SWEEP_QUEUE_PIPELINED = Variant(
    name="sweep-queue-pipelined",
    of="pipelined-sweep",
    wrong="looks for concurrent changes in the queue, which those that are being swept have left",
    run=_run,
)
