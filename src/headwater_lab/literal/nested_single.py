"""Nested SWEEP as its Figure 6 is drawn: one concurrent change is taken out of an answer and swept, the others stay.

The run that breaks `sweep_single` breaks it too. PAPERS.md §2.2.1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.nested_sweep import run_nested
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.altered_log import AlteredLog, first_change
from headwater_lab.literal.variant import Variant


def _absorbs(absorbed: Collection[Tick], queued: Sequence[Tick], depth: int) -> Sequence[Tick]:
    return queued[:1] if depth or set(queued[:1]) & set(absorbed) else ()


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return run_nested(view, lo, AlteredLog(log=log, too_early=first_change), _absorbs)


NESTED_SINGLE = Variant(
    name="nested-single",
    of="nested-sweep",
    wrong="takes in a single concurrent change where several are in an answer",
    run=_run,
)
