"""Folders of views and replicas that the catalog once had and no longer has."""

from __future__ import annotations

from datetime import datetime

from headwater.warehouse.catalog import Catalog
from headwater.warehouse.commit_record import CommitKind
from headwater.warehouse.folders import replica_folder, view_folder
from headwater.warehouse.query import Warehouse


def folders(warehouse: str, catalog: Catalog) -> set[str]:
    """Return the folders of everything a catalog names."""
    views = {view_folder(warehouse, view.name, view.generation) for view in catalog.views.values()}
    copies = catalog.replicas.values()
    return views | {replica_folder(warehouse, copy.relation, copy.generation) for copy in copies}


def abandoned(warehouse: Warehouse, before: datetime) -> list[str]:
    """Return the folders that were dropped from the catalog before a moment.

    A folder that no catalog ever named is left alone: it may be one that is being filled.
    """
    head = warehouse.head()
    present = folders(warehouse.path, warehouse.commits.catalog(head))
    last_named: dict[str, datetime] = {}
    dropped_at: dict[str, datetime] = {}
    for commit in warehouse.commits.read():
        if commit.kind is not CommitKind.CATALOG:
            continue
        named = folders(warehouse.path, warehouse.commits.catalog(commit))
        dropped_at |= {folder: commit.committed_at for folder in last_named if folder not in named | set(dropped_at)}
        last_named |= dict.fromkeys(named, commit.committed_at)
    return sorted(folder for folder, moment in dropped_at.items() if folder not in present and moment < before)
