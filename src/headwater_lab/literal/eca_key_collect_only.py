"""ECA-Key with a delete applied only to what has been collected.

    R2 = {(0,0,0)}     R1 +(3,0,0), R1 -(3,0,0), then the answer for the insert arrives

The delete finds nothing to delete; the answer comes later, with a row that is never taken out (PAPERS.md
§2.2.11). 403 of 2,000 simulated runs end wrong.
"""

from __future__ import annotations

from typing import Any

from headwater.maintenance.published.action_list import collect_until_quiet
from headwater.maintenance.published.eca_key import ask_at_once
from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return collect_until_quiet(view, lo, log, ask_at_once, remember=lambda pending, _deleted: pending)


ECA_KEY_COLLECT_ONLY = Variant(
    name="eca-key-collect-only",
    of="eca-key",
    wrong="a row deleted while its own query is open comes back with the answer",
    run=_run,
)
