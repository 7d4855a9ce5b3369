"""④ Kept tables, commits, checkpoints, history."""

from headwater.warehouse.catalog import Catalog, ReplicaEntry, ViewEntry
from headwater.warehouse.commit_record import BatchStatistics, Commit, CommitKind, CommitRecord, Stopped, ViewDelta
from headwater.warehouse.kept_table import KeptTable
from headwater.warehouse.query import Warehouse

__all__ = [
    "BatchStatistics",
    "Catalog",
    "Commit",
    "CommitKind",
    "CommitRecord",
    "KeptTable",
    "ReplicaEntry",
    "Stopped",
    "ViewDelta",
    "ViewEntry",
    "Warehouse",
]
