"""Bring views up to date now that are not kept continuously: through the warehouse's maintainer, or without one.

Up to date means: with all that their sources had committed when it was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyspark.sql import SparkSession

from headwater.engine.service.start import start_maintainer
from headwater.engine.service.wait_until_followed import wait_for_maintainer
from headwater.errors import NotReadable
from headwater.model.position import Tick
from headwater.observe.events import Listener
from headwater.observe.status import RefreshedView, RefreshResult
from headwater.project.resolve import ResolvedProject
from headwater.sources.source import shown_positions
from headwater.warehouse.lease import maintainer_is_alive
from headwater.warehouse.mailbox import note_refresh
from headwater.warehouse.query import Warehouse

_LOOK_SECONDS = 0.1


def refresh_views(
    spark: SparkSession, resolved: ResolvedProject, names: Sequence[str], listener: Listener
) -> RefreshResult:
    """Bring views up to date, and say from where to where they have come."""
    started, path = time.perf_counter(), resolved.project.warehouse
    before = _frontiers(path, names)
    maintained = maintainer_is_alive(path) and _ask(resolved, path, names)
    if not maintained:
        maintainer = start_maintainer(spark, resolved, listener)
        maintainer.timetable.demand(names)
        maintainer.run(until_idle=True, ticks=None)
    after = _frontiers(path, names)
    return RefreshResult(
        views=tuple(RefreshedView(name=name, lo=before[name], hi=after[name]) for name in names),
        maintained=maintained,
        seconds=time.perf_counter() - started,
    )


def _ask(resolved: ResolvedProject, path: str, names: Sequence[str]) -> bool:
    """Ask the maintainer, and wait until it has done so. False: it has ended meanwhile."""
    warehouse = Warehouse.open(path)
    for source in {relation.source for name in names for relation in resolved.views[name].view.relations}:
        if not wait_for_maintainer(
            resolved, warehouse, shown_positions(resolved.sources[source], resolved.followed_names(source))
        ):
            return False
    warehouse.log.refresh()
    upto = warehouse.log.last_tick
    for name in names:
        note_refresh(path, name, upto)
    wait_seconds = resolved.project.settings.reading.refresh_wait_seconds
    deadline = time.monotonic() + wait_seconds
    while min(_frontiers(path, names).values()) < upto:
        if time.monotonic() > deadline:
            raise NotReadable(
                f"not every view has come to tick {upto}",
                code="HW-142",
                detail=f"waited {wait_seconds:g} s for the maintainer, which goes on with it",
                hint="see `headwater status` for how far the views are",
            )
        if not maintainer_is_alive(path):
            return False
        time.sleep(_LOOK_SECONDS)  # the maintainer is another process: its commits tell nobody
    return True


def _frontiers(path: str, names: Sequence[str]) -> dict[str, Tick]:
    """Return how far views have come. One that is not there or has stopped is refused."""
    warehouse = Warehouse.open(path)
    record = warehouse.head().record
    for name in names:
        warehouse.view(name)
        if name in record.stopped:
            raise NotReadable(
                f'view "{name}" cannot be refreshed',
                code="HW-143",
                detail=record.stopped[name].summary,
                hint=record.stopped[name].hint,
            )
    return {name: warehouse.frontier(name) for name in names}
