"""Nested SWEEP that is forced to end by the depth of its recursion: it absorbs a change and leaves an older one out.

    source 0: 1: R3 +(0,0)   2: R3 -(0,0)   3: R1 +(0,0)
    sweep 1, depth 1, meets 3 at R1 and takes it in; the sweep of 3, depth 2, meets 2 at R3 and takes it out instead

The view then holds 1 and 3 and not 2, a state that source 0 never had. PAPERS.md §2.2.6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.nested_sweep import run_nested
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant

_DEEPEST = 2


def _absorbs(absorbed: Collection[Tick], queued: Sequence[Tick], depth: int) -> Sequence[Tick]:
    """Take in what is met above the limit. Before an install, only what makes a transaction whole."""
    if depth:
        return queued if depth < _DEEPEST else ()
    begun = [tick for tick in queued if tick in absorbed]
    return [tick for tick in queued if begun and tick <= max(begun)]


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return run_nested(view, lo, log, _absorbs)


NESTED_DEPTH_LIMIT = Variant(
    name="nested-depth-limit",
    of="nested-sweep",
    wrong="ends its recursion at a depth, leaving out changes that are older than what it absorbed",
    run=_run,
)
