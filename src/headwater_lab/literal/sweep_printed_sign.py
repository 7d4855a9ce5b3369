"""SWEEP with the sign that its example prints: a delete joined with a delete is a delete, and not an insert.

    2: R3 -(7,8)   ── ask R2, then R1 ──►   -(1,3,7,8)
    3: R1 -(2,3)   interferes: {-(2,3)} join {-(3,7,8)} is printed as -(2,3,7,8), and subtracted it is +(2,3,7,8)

Paper 000, section 5.2. Figure 5 then ends in {(7,8)[2], (5,6)} instead of {(5,6)}. PAPERS.md §2.2.3.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from headwater.maintenance.published.messages import Running, ViewHistory
from headwater.maintenance.published.sweep import sweep
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView
from headwater_lab.in_memory.bag import InMemoryBag
from headwater_lab.literal.altered_log import AlteredLog
from headwater_lab.literal.variant import Variant


class _Printed:
    """Remembers whether the transaction that is swept deletes, and prints the signs of what interferes with it."""

    def __init__(self) -> None:
        self._deletes = False

    def own(self, bag: InMemoryBag) -> InMemoryBag:
        """Note the sign of a transaction whose rows are read."""
        if len(bag):
            self._deletes = all(count < 0 for count in bag.entries.values())
        return bag

    def too_early(self, bag: InMemoryBag) -> InMemoryBag:
        """Return what interferes, so that the product of two deletes comes out as a delete."""
        if not self._deletes:
            return bag
        return InMemoryBag(bag.columns, Counter({entry: abs(count) for entry, count in bag.entries.items()}))


def _run(view: JoinView, lo: Tick, log: ViewHistory[Any]) -> Running:
    printed = _Printed()
    return sweep(view, lo, AlteredLog(log=log, own=printed.own, too_early=printed.too_early))


SWEEP_PRINTED_SIGN = Variant(
    name="sweep-printed-sign",
    of="sweep",
    wrong="a delete that interferes with a delete is subtracted with the sign that the example prints",
    run=_run,
)
