"""Open a warehouse for maintenance: look at what it keeps, plan, take the lease, take over the change log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from headwater.changelog.change_log import ChangeLog
from headwater.errors import SourceRefused
from headwater.relation import Relation, RelationName
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
from headwater.warehouse.storage_errors import explained_storage


def plan_run(understood: Understood, rebuild: Sequence[str] = ()) -> RunPlan:
    """Return what `run` would do."""
    path = str(understood.project.warehouse)
    if not is_warehouse(path):
        return make_plan(understood, Kept(views={}, replicas={}), rebuild)
    return _plan(Warehouse.open(path), understood, rebuild)[0]


def start_maintainer(
    spark: SparkSession, understood: Understood, listener: Listener, rebuild: Sequence[str] = ()
) -> Maintainer:
    """Take a project's warehouse over, making it if need be, and return its maintainer, ready to run."""
    with explained_storage(str(understood.project.warehouse)):
        return _started(spark, understood, listener, rebuild)


def _started(spark: SparkSession, understood: Understood, listener: Listener, rebuild: Sequence[str]) -> Maintainer:
    path = str(understood.project.warehouse)
    for name, inspection in understood.inspections.items():
        inspection.require_rights(name)  # before anything is made anywhere
    if is_warehouse(path):
        refuse_if_held(path)
    warehouse = Warehouse.create(path)
    plan, kept = _plan(warehouse, understood, rebuild)
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
        retiring={name: _retiring_view(warehouse, name) for name in plan.changed},
        replicas=_load_replicas(spark, path, understood, lasting),
        listener=listener,
    )


def _plan(warehouse: Warehouse, understood: Understood, rebuild: Sequence[str]) -> tuple[RunPlan, Kept]:
    kept = _kept(warehouse, understood)
    plan = make_plan(understood, kept, rebuild)
    _refuse_retyped(plan, understood, warehouse.log)
    return plan, kept


def _refuse_retyped(plan: RunPlan, understood: Understood, log: ChangeLog) -> None:
    """Refuse to go on with views that read a column of another type than the log holds: old rows may have changed."""
    known = set(log.relations())
    for view in plan.kept:
        for name, needed in understood.views[view].needs.items():
            before = log.relation_schema(name) if name in known else pa.schema([])
            now = understood.relations[name].arrow_schema(needed.columns)
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
        if name.source not in lost
        and name in understood.relations
        and is_meant(entry.rows, understood.relations[name])
        and _has_columns(warehouse.path, entry, understood.relations[name])
    }
    return Kept(views=catalog.views, replicas=replicas, lost_sources=lost)


def _has_columns(path: str, entry: ReplicaEntry, relation: Relation) -> bool:
    """Tell whether a relation still has the columns that its replica holds, of the same types."""
    stored = Replica.open(replica_folder(path, entry.relation, entry.generation)).schema
    types = {field.name: field.type for field in relation.arrow_schema()}
    return all(types.get(name) == stored.field(name).type for name in entry.columns)


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
