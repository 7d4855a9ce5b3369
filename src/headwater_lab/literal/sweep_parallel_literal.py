"""Parallel SWEEP whose two halves both carry the change, as the paper joins them: its counts are squared.

delete R3 (1,0):   left half  -(1,0,0,1,1,0)   right half  -(1,0)   their join  +(1,0,0,1,1,0)     PAPERS.md §2.2.2
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.sweep import parallel_sweep
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory.bag import InMemoryBag
from headwater_lab.literal.altered_log import AlteredLog
from headwater_lab.literal.variant import Variant


def _squared(bag: InMemoryBag) -> InMemoryBag:
    return InMemoryBag(bag.columns, Counter({entry: count * count for entry, count in bag.entries.items()}))


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return parallel_sweep(view, lo, AlteredLog(log=log, own=_squared))


SWEEP_PARALLEL_LITERAL = Variant(
    name="sweep-parallel-literal",
    of="parallel-sweep",
    wrong="joins two halves that both carry the change, so that its counts are squared",
    run=_run,
)
