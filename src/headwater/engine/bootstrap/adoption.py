"""New views adopt auxiliary tables that other views keep, instead of computing the same segments again.

a table's views      ───────────────► come to the birth       then the table has that state, and the view is brought in
                     ────► wait       for too long            then everything is computed again, and nothing adopted
                     ────► stop                               likewise: nobody will ever bring it there
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum, auto

from headwater.engine.state.live_view import LiveView
from headwater.model.position import Tick
from headwater.model.relation import RelationName


class Adoption(Enum):
    """What becomes of new views that adopt tables."""

    READY = auto()
    WAIT = auto()
    AGAIN = auto()


def adoptable_tables(views: Iterable[LiveView]) -> dict[RelationName, str]:
    """Return the auxiliary tables that views keep which go on and share, by segment."""
    sharing = (view for view in views if view.stopped is None and view.resolved.shares)
    return {name: auxiliary.name for view in sharing for name, auxiliary in view.segments.items()}


def come_to(table: str, views: Iterable[LiveView]) -> Tick | None:
    """Return the last tick that some view has brought an auxiliary table to. None if none goes on that reads it."""
    going = (view for view in views if view.stopped is None and table in view.entry.segments)
    return max((view.frontier for view in going), default=None)


def decide_adoption(birth: Tick, reached: Collection[Tick | None], *, is_late: bool) -> Adoption:
    """Tell what to do, given how far the adopted tables have come, and whether they were waited for long enough.

    >>> [decide_adoption(Tick(9), reached, is_late=False).name for reached in ([Tick(9), Tick(12)], [], [None])]
    ['READY', 'READY', 'AGAIN']
    >>> [decide_adoption(Tick(9), [Tick(8), Tick(12)], is_late=is_late).name for is_late in (False, True)]
    ['WAIT', 'AGAIN']
    """
    if all(tick is not None and tick >= birth for tick in reached):
        return Adoption.READY
    return Adoption.AGAIN if None in reached or is_late else Adoption.WAIT
