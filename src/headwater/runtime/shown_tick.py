"""Which tick's state a view shows at a tick: its own, or for a view that skips ticks the last one it came to."""

from __future__ import annotations

from headwater.guarantee import Guarantee
from headwater.position import Tick
from headwater.warehouse.query import Warehouse


def shown_tick(warehouse: Warehouse, name: str, tick: Tick) -> Tick:
    """Return the tick whose state a reader of a view sees at a tick."""
    entry = warehouse.view(name)
    if Guarantee(entry.guarantee) is Guarantee.COMPLETE:
        return tick
    ends = (commit.record.frontiers.get(name, entry.birth) for commit in warehouse.commits.read())
    return max((end for end in ends if entry.birth <= end <= tick), default=entry.birth)
