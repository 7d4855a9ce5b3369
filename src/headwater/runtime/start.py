"""Open a warehouse for maintenance: look at what it keeps, plan, take the lease, take over the change log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from headwater.relation import RelationName
from headwater.runtime.events import Listener
from headwater.runtime.fill import is_meant
from headwater.runtime.hidden_table import HiddenTable
from headwater.runtime.kept_segments import with_own_rows
from headwater.runtime.live_view import LiveView, RetiringView
from headwater.runtime.maintainer import Maintainer
from headwater.runtime.plan import Kept, RunPlan, make_plan
from headwater.runtime.replica_reader import ReplicaReader, load_replica
from headwater.runtime.understand import Understood
from headwater.warehouse.catalog import ReplicaEntry
from headwater.warehouse.folders import replica_folder, segment_of_table
from headwater.warehouse.format import is_warehouse
from headwater.warehouse.generations import clear_unnamed
from headwater.warehouse.lease import own_name, refuse_if_held, renew_lease
from headwater.warehouse.query import Warehouse
from headwater.warehouse.replica import Replica


def plan_run(understood: Understood, rebuild: Sequence[str] = ()) -> RunPlan:
    """Return what `run` would do."""
    path = str(understood.project.warehouse)
    if not is_warehouse(path):
        return make_plan(understood, Kept(views={}, replicas={}), rebuild)
    return make_plan(understood, _kept(Warehouse.open(path), understood), rebuild)


def start_maintainer(
    spark: SparkSession, understood: Understood, listener: Listener, rebuild: Sequence[str] = ()
) -> Maintainer:
    """Take a project's warehouse over, making it if need be, and return its maintainer, ready to run."""
    path = str(understood.project.warehouse)
    for name, inspection in understood.inspections.items():
        inspection.require_rights(name)  # before anything is made anywhere
    if is_warehouse(path):
        refuse_if_held(path)
    warehouse = Warehouse.create(path)
    kept = _kept(warehouse, understood)
    plan = make_plan(understood, kept, rebuild)
    epoch = warehouse.commits.take_lease(own_name())
    renew_lease(path, epoch)
    warehouse.log.take_over(epoch)
    clear_unnamed(warehouse)
    hidden: dict[str, HiddenTable] = {}
    lasting = {name: kept.replicas[name] for name in understood.replicated() if name in kept.replicas}
    return Maintainer(
        spark=spark,
        warehouse=warehouse,
        understood=understood,
        plan=plan,
        epoch=epoch,
        views=[_live_view(spark, warehouse, understood, name, hidden) for name in plan.kept],
        retiring={name: _retiring_view(warehouse, name) for name in plan.changed}
        | {
            name: _retiring_view(warehouse, name).stopped_by(error)
            for name, error in plan.failed.items()
            if name in kept.views
        },
        replicas=_load_replicas(spark, path, understood, lasting),
        listener=listener,
    )


def _kept(warehouse: Warehouse, understood: Understood) -> Kept:
    catalog = warehouse.catalog()
    read = {relation.source for relation in catalog.replicas}
    for name in catalog.views.keys() & understood.views.keys():
        read |= {relation.source for relation in understood.views[name].view.relations}
    known = read | warehouse.log.positions().keys()  # a source may have been read, and have committed nothing since
    lost = frozenset(
        name for name, inspection in understood.inspections.items() if name in known and not inspection.is_followed
    )
    replicas = {
        name: entry
        for name, entry in catalog.replicas.items()
        if name.source not in lost and name in understood.relations and is_meant(entry.rows, understood.relations[name])
    }
    return Kept(views=catalog.views, replicas=replicas, lost_sources=lost)


def _live_view(
    spark: SparkSession, warehouse: Warehouse, understood: Understood, name: str, hidden: dict[str, HiddenTable]
) -> LiveView:
    """Open a view; `hidden` are the hidden tables that were opened for others, and then for this one too."""
    entry, table, view = warehouse.view(name), warehouse.kept_table(name), understood.views[name].view
    relations = {segment.name.name: segment.relation for segment in view.segments}
    opened = warehouse.kept_segments(name)
    for shared in entry.segments:
        segment = segment_of_table(shared)
        if shared not in hidden:
            hidden[shared] = HiddenTable(name=shared, relation=relations[segment], table=opened[segment], spark=spark)
    own = {hidden[shared].relation.name: hidden[shared] for shared in entry.segments}
    return LiveView(
        understood=understood.views[name],
        entry=entry,
        table=table,
        frontier=warehouse.frontier(name),
        segments=with_own_rows(spark, view, table, own),
        stopped=warehouse.head().record.stopped.get(name),
    )


def _retiring_view(warehouse: Warehouse, name: str) -> RetiringView:
    record = warehouse.head().record
    return RetiringView(entry=warehouse.view(name), frontier=warehouse.frontier(name), stopped=record.stopped.get(name))


def _load_replicas(
    spark: SparkSession, path: str, understood: Understood, entries: Mapping[RelationName, ReplicaEntry]
) -> dict[RelationName, ReplicaReader]:
    return {
        name: load_replica(
            spark, understood.relations[name], entry, Replica.open(replica_folder(path, name, entry.generation))
        )
        for name, entry in entries.items()
    }
