"""Which views are due: those that are kept continuously always, others by the clock, or when somebody asks.

A view that is due goes on until it has come to where the change log ended when it became so, in as many batches as that
takes. Until then, and from then on, batches leave it out; what it has not seen stays in the change log.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from headwater.engine.state.live_view import LiveView
from headwater.model.keeping import Continuous, Every, next_refresh
from headwater.model.position import Tick
from headwater.storage.object_store import look_seconds
from headwater.warehouse.mailbox import requested_refreshes

_LOOK_SECONDS = 0.3


class Timetable:
    """Knows when views were last brought up to date, and what was asked for. One thread uses it."""

    def __init__(self, warehouse: str, refreshed_at: Mapping[str, datetime], remote_look_seconds: float = 0.0) -> None:
        """Go on from what the last commit says."""
        self._warehouse = warehouse
        self._look_seconds = look_seconds(warehouse, _LOOK_SECONDS, remote_look_seconds)
        self._refreshed_at = dict(refreshed_at)
        self._targets: dict[str, Tick] = {}
        self._demanded: frozenset[str] = frozenset()
        self._requested: Mapping[str, Tick] = {}
        self._looked_at = 0.0

    def demand(self, views: Collection[str]) -> None:
        """Keep these views up to date from now on, whatever the project says."""
        self._demanded = frozenset(views)

    def is_due(self, view: LiveView, last: Tick) -> bool:
        """Tell whether a view goes on. `last` is where the change log ends."""
        if isinstance(view.resolved.refresh, Continuous) or view.name in self._demanded:
            return True
        if self._is_time(view):
            self._targets.setdefault(view.name, last)
        self._look()
        wanted = max(self._targets.get(view.name, Tick(0)), self._requested.get(view.name, Tick(0)))
        return view.frontier < wanted

    def note(self, view: LiveView) -> None:
        """Take note that a view has come to its frontier."""
        if view.frontier >= self._targets.get(view.name, Tick(0)):
            self._targets.pop(view.name, None)
            self._refreshed_at[view.name] = datetime.now(UTC)

    def refreshed_at(self, views: Collection[LiveView]) -> dict[str, datetime]:
        """Return when views were last brought up to date that are not kept continuously."""
        waiting = [view.name for view in views if not isinstance(view.resolved.refresh, Continuous)]
        return {name: self._refreshed_at[name] for name in waiting if name in self._refreshed_at}

    def _is_time(self, view: LiveView) -> bool:
        refresh, since = view.resolved.refresh, self._refreshed_at.get(view.name)
        if not isinstance(refresh, Every):
            return False
        due_at = None if since is None else next_refresh(refresh, since)
        return due_at is None or datetime.now(UTC) >= due_at

    def _look(self) -> None:
        if time.monotonic() - self._looked_at >= self._look_seconds:
            self._looked_at = time.monotonic()
            self._requested = requested_refreshes(self._warehouse)
