"""Installing each transaction's change when it is computed, not in its turn: paper 001's Theorem 2 taken by completion.

The changes are right, their order is not: states are shown that never were, and the end is right (PAPERS.md §4,
erratum 4: 332 of 1,000 runs only converge).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.maintenance.published.in_order import Job
from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.version_numbers import by_versions
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.literal.variant import Variant


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    return by_versions(view, lo, log, ready=whoever_is_done)


def whoever_is_done(jobs: Sequence[Job]) -> Sequence[Job]:
    """Return the jobs that have ended, whether or not older ones have."""
    return [job for job in jobs if job.has_ended]


COMPLETION_ORDER_INSTALL = Variant(
    name="completion-order-install",
    of="version-numbers",
    wrong="installs follow the order in which changes are computed",
    run=_run,
)
