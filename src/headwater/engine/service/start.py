"""Open a warehouse for maintenance: look at what it keeps, plan, take the lease, take over the change log."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.changelog import ChangeLog
from headwater.engine.bootstrap.kept_segments import with_own_rows
from headwater.engine.service.maintainer import Maintainer
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.engine.state.live_view import LiveView, RetiringView
from headwater.engine.state.replica_reader import ReplicaReader, load_replica
from headwater.errors import SourceRefused, WarehouseRefused
from headwater.model.memory_budget import MemoryBudget
from headwater.model.relation import Relation, RelationName
from headwater.observe.events import Listener, WarehouseAdopted
from headwater.project.fill import is_meant
from headwater.project.plan import Consent, Kept, RunPlan, make_plan
from headwater.project.resolve import ResolvedProject
from headwater.project.slot_claims import SlotOrigin, claim_slots
from headwater.storage.mapped_rows import clear_mapped
from headwater.storage.object_store import store_at
from headwater.storage.storage_errors import stored
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.chores import Policy
from headwater.warehouse.folders import (
    BATCH_SCRATCH,
    replica_folder,
    scratch_folder,
    segment_folder,
    segment_of_table,
    view_folder,
)
from headwater.warehouse.format import is_warehouse, refuse_occupied
from headwater.warehouse.generations import clear_unnamed
from headwater.warehouse.housekeeping import Housekeeper
from headwater.warehouse.journal import table_name
from headwater.warehouse.lease import own_name, refuse_if_held, release_lease, renew_lease, require_fencing
from headwater.warehouse.project_name import note_project, project_of, refuse_other_project
from headwater.warehouse.query import Warehouse
from headwater.warehouse.replica import Replica
from headwater.warehouse.upgrade import upgrade

_NO_CONSENT = Consent()


def plan_run(resolved: ResolvedProject, rebuild: Sequence[str] = ()) -> RunPlan:
    """Return what `run` would do."""
    return _plan(resolved, rebuild)[0]


def start_maintainer(
    spark: SparkSession,
    resolved: ResolvedProject,
    listener: Listener,
    rebuild: Sequence[str] = (),
    consent: Consent = _NO_CONSENT,
) -> Maintainer:
    """Take a project's warehouse over, making it if need be, and return its maintainer, ready to run.

    History that would be lost is refused, before anything is changed, unless there is consent.
    """
    with stored(resolved.project.warehouse):
        return _started(spark, resolved, listener, rebuild, consent)


def _started(
    spark: SparkSession, resolved: ResolvedProject, listener: Listener, rebuild: Sequence[str], consent: Consent
) -> Maintainer:
    path = resolved.project.warehouse
    resolved.require_rights()  # before anything is made anywhere
    if is_warehouse(path):
        refuse_if_held(path)
    plan, kept = _plan(resolved, rebuild)
    plan.require(consent)
    require_fencing(path)
    _take_for_project(path, resolved.project.name, listener)
    if is_warehouse(path):
        upgrade(path, listener)
    warehouse, budget = Warehouse.create(path), MemoryBudget.of(resolved.project.memory_bytes)
    epoch = warehouse.commits.take_lease(own_name())
    try:
        renew_lease(path, epoch)
        warehouse.log.take_over(epoch, budget.tail_bytes)
        clear_unnamed(warehouse)
        clear_mapped(path)
        store_at(scratch_folder(path, BATCH_SCRATCH)).delete()
        _fold(warehouse, plan.kept)
        warehouse.commits.journal.hold()
        auxiliary: dict[str, AuxiliaryTable] = {}
        lasting = {name: kept.replicas[name] for name in resolved.replicated() if name in kept.replicas}
        return Maintainer(
            spark=spark,
            warehouse=warehouse,
            resolved=resolved,
            plan=plan,
            epoch=epoch,
            views=[_live_view(spark, warehouse, resolved, name, auxiliary, budget) for name in plan.kept],
            retiring={name: _retiring_view(warehouse, name, plan.lost_sources) for name in plan.changed}
            | {
                name: _retiring_view(warehouse, name, frozenset()).stopped_by(error)
                for name, error in plan.failed.items()
                if name in kept.views
            },
            replicas=_load_replicas(spark, path, resolved, lasting, budget),
            budget=budget,
            listener=listener,
        )
    except BaseException:  # a damaged table, or somebody ends it: the next need not wait
        with contextlib.suppress(OSError, WarehouseRefused):
            release_lease(path, epoch)
        raise


def _fold(warehouse: Warehouse, views: Sequence[str]) -> None:
    """Fold what a killed maintainer has not: all that is needed of these views, and what can be of others.

    The tables of a view that is built again may be damaged: that may be why it is.
    """
    kept = [warehouse.view(name) for name in views]
    folders = [view_folder(warehouse.path, view.name, view.generation) for view in kept]
    folders += [segment_folder(warehouse.path, table) for view in kept for table in view.segments]
    keeper = Housekeeper(warehouse, Policy(), started_at=datetime.now(UTC))
    keeper.fold({table_name(folder) for folder in folders})


def _take_for_project(path: str, name: str, listener: Listener) -> None:
    """Write down whose warehouse it is, before it is one. An older one that does not say becomes this project's."""
    refuse_occupied(path)
    if project_of(path) is None:
        note_project(path, name)
        if is_warehouse(path):
            listener(WarehouseAdopted(project=name, warehouse=path))


def _plan(resolved: ResolvedProject, rebuild: Sequence[str]) -> tuple[RunPlan, Kept]:
    """Return what has to be done, and what the project's warehouse keeps. Another project's is refused."""
    path = resolved.project.warehouse
    refuse_other_project(path, resolved.project.name)
    if not is_warehouse(path):
        kept = Kept(views={}, replicas={}, claims=claim_slots(None, resolved.sources, ()))
        return make_plan(resolved, kept, rebuild), kept
    warehouse = Warehouse.open(path)
    kept = _kept(warehouse, resolved)
    plan = make_plan(resolved, kept, rebuild)
    _refuse_retyped(plan, resolved, warehouse.log)
    return plan, kept


def _refuse_retyped(plan: RunPlan, resolved: ResolvedProject, log: ChangeLog) -> None:
    """Refuse to go on with views that read a column of another type than the log holds: old rows may have changed."""
    known = set(log.relations())
    for view in plan.kept:
        for name, needed in resolved.views[view].needs.items():
            before = log.relation_schema(name) if name in known else pa.schema([])
            now = resolved.relations[name].arrow_schema(needed.columns)
            for field in now:
                if field.name in before.names and before.field(field.name).type != field.type:
                    raise SourceRefused(
                        f'column "{field.name}" of "{name}" has another type than when it was last followed',
                        code="HW-338",
                        detail=f'it was {before.field(field.name).type} and is {field.type}; view "{view}" reads it, '
                        "and the log of the source does not tell how the rows that were there have changed",
                        hint=f"`headwater teardown --source {name.source}` and `headwater run` read this source again, "
                        "with its views; those of other sources go on",
                    )


def _kept(warehouse: Warehouse, resolved: ResolvedProject) -> Kept:
    catalog = warehouse.catalog()
    read = {relation.source for relation in catalog.replicas}
    for name in catalog.views.keys() & resolved.views.keys():
        read |= {relation.source for relation in resolved.views[name].view.relations}
    held = warehouse.log.positions()  # a source may have been read, and have committed nothing since
    known = read | {position.source for position in held.values()}
    claims = claim_slots(warehouse.log, resolved.sources, known)
    lost = frozenset(name for name, claim in claims.items() if name in known and claim.origin is SlotOrigin.NEW)
    replicas = {
        name: entry
        for name, entry in catalog.replicas.items()
        if name.source not in lost
        and name in resolved.relations
        and is_meant(entry.rows, resolved.relations[name])
        and _has_columns(warehouse.path, entry, resolved.relations[name])
    }
    frontiers = {name: warehouse.frontier(name) for name in catalog.views}
    return Kept(views=catalog.views, replicas=replicas, lost_sources=lost, claims=claims, frontiers=frontiers)


def _has_columns(path: str, entry: ReplicaEntry, relation: Relation) -> bool:
    """Tell whether a relation still has the columns that its replica holds, of the same types."""
    stored = Replica.open(replica_folder(path, entry.relation, entry.generation)).schema
    types = {field.name: field.type for field in relation.arrow_schema()}
    return all(types.get(name) == stored.field(name).type for name in entry.columns)


def _live_view(
    spark: SparkSession,
    warehouse: Warehouse,
    resolved: ResolvedProject,
    name: str,
    auxiliary: dict[str, AuxiliaryTable],
    budget: MemoryBudget,
) -> LiveView:
    """Open a view. `auxiliary` are the auxiliary tables that were opened for others, and then for this one too."""
    entry, table, view = warehouse.view(name), warehouse.kept_table(name), resolved.views[name].view
    relations = {segment.name.name: segment.relation for segment in view.segments}
    settings = resolved.project.settings.batch
    opened = warehouse.kept_segments(name)
    for shared in entry.segments:
        segment = segment_of_table(shared)
        if shared not in auxiliary:
            auxiliary[shared] = AuxiliaryTable(
                name=shared,
                relation=relations[segment],
                table=opened[segment],
                spark=spark,
                settings=settings,
                budget=budget,
            )
    own = {auxiliary[shared].relation.name: auxiliary[shared] for shared in entry.segments}
    return LiveView(
        resolved=resolved.views[name],
        entry=entry,
        table=table,
        frontier=warehouse.frontier(name),
        segments=with_own_rows(spark, view, table, own, settings, budget),
        stopped=warehouse.head().record.stopped.get(name),
    )


def _retiring_view(warehouse: Warehouse, name: str, lost_sources: frozenset[str]) -> RetiringView:
    record, entry = warehouse.head().record, warehouse.view(name)
    return RetiringView(
        entry=replace(entry, gaps=tuple(sorted({*entry.gaps, *lost_sources}))),
        frontier=warehouse.frontier(name),
        stopped=record.stopped.get(name),
    )


def _load_replicas(
    spark: SparkSession,
    path: str,
    resolved: ResolvedProject,
    entries: Mapping[RelationName, ReplicaEntry],
    budget: MemoryBudget,
) -> dict[RelationName, ReplicaReader]:
    return {
        name: load_replica(
            spark,
            resolved.relations[name],
            entry,
            Replica.open(replica_folder(path, name, entry.generation)),
            budget,
            resolved.project.settings.batch,
        )
        for name, entry in entries.items()
    }
