"""Drop what a warehouse has made at its sources, and leave alone what other warehouses of the project follow by."""

from __future__ import annotations

from collections.abc import Collection

from headwater.changelog import ChangeLog
from headwater.engine.bootstrap.staging import forget_staged
from headwater.engine.service.live_status import forget_sources
from headwater.errors import HeadwaterError
from headwater.model.position import of_source
from headwater.model.project import Project
from headwater.project.resolve import connect_source
from headwater.project.slot_claims import left_slot
from headwater.project.teardown_result import Dropped, LeftSlot, TeardownResult
from headwater.sources.source import Source, TornDown
from headwater.warehouse.format import is_warehouse
from headwater.warehouse.lease import refuse_if_held
from headwater.warehouse.query import Warehouse


def tear_down(project: Project, only: Collection[str]) -> TeardownResult:
    """Drop what was made at the sources, or at some of them. The warehouse folder stays readable."""
    path = project.warehouse
    log: ChangeLog | None = None
    if is_warehouse(path):
        refuse_if_held(path)
        log = Warehouse.open(path).log
    dropped: list[Dropped] = []
    failed: list[Dropped] = []
    left: list[LeftSlot] = []
    for name in (said.name for said in project.sources if not only or said.name in only):
        try:
            done = _tear_down(connect_source(project, name), log)
        except HeadwaterError as error:
            failed.append(Dropped(source=name, what=error.summary))
            continue
        dropped += [Dropped(source=name, what=what) for what in done.dropped]
        left += [left_slot(name, slot) for slot in done.left]
    forget_sources(path, {one.source for one in dropped})
    forget_staged(path)
    return TeardownResult(dropped=tuple(dropped), failed=tuple(failed), left=tuple(left), warehouse=project.warehouse)


def _tear_down(source: Source, log: ChangeLog | None) -> TornDown:
    """Drop the slot that the log follows by, and record another name for the one that the next run will make.

    So a slot that was given up is never taken up again, not even the former one that warehouses once shared.
    """
    if log is None:
        return source.teardown(None, {})
    slot = log.slots().get(source.name)
    if slot is not None:
        done = source.teardown(slot.name, of_source(log.positions(), source.name) if slot.has_begun else {})
    elif any(relation.source == source.name for relation in log.relations()):  # followed before slots were recorded
        done = source.teardown(source.slots().former, {})
    else:
        return source.teardown(None, {})
    log.claim(source.name, source.new_slot())
    return done
