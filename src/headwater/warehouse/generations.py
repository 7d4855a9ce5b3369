"""Folders of views, auxiliary tables and replicas that the catalog once had and no longer has, or never had."""

from __future__ import annotations

from datetime import datetime

from headwater.storage.object_store import store_at
from headwater.warehouse.catalog import Catalog
from headwater.warehouse.commit_record import CommitKind
from headwater.warehouse.folders import RESERVED, generations_beside, replica_folder, segment_folder, view_folder
from headwater.warehouse.query import Warehouse


def folders(warehouse: str, catalog: Catalog) -> set[str]:
    """Return the folders of everything a catalog names."""
    views = {view_folder(warehouse, view.name, view.generation) for view in catalog.views.values()}
    auxiliary = {segment_folder(warehouse, table) for view in catalog.views.values() for table in view.segments}
    copies = catalog.replicas.values()
    return views | auxiliary | {replica_folder(warehouse, copy.relation, copy.generation) for copy in copies}


def abandoned(warehouse: Warehouse, before: datetime) -> list[str]:
    """Return the folders that were dropped from the catalog before a moment.

    A folder that no catalog ever named is left alone here: it may be one that is being filled.
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


def clear_unnamed(warehouse: Warehouse) -> list[str]:
    """Empty the folders that no catalog ever named, and return them: a bootstrap was killed before its commit.

    For a maintainer that has just taken the lease and fills nothing yet. Their numbers stay reserved.
    """
    head = warehouse.head()
    found = _generations(warehouse.path) - folders(warehouse.path, warehouse.commits.catalog(head))
    unknown = sorted(folder for folder in found if set(store_at(folder).names()) - {RESERVED})
    if not unknown:
        return []
    named: set[str] = set()
    for commit in warehouse.commits.read():
        if commit.kind is CommitKind.CATALOG:
            named |= folders(warehouse.path, warehouse.commits.catalog(commit))
    unnamed = [folder for folder in unknown if folder not in named]
    for folder in unnamed:
        store = store_at(folder)
        store.put_if_absent(RESERVED, b"")  # older versions did not
        for name in store.names():
            if name != RESERVED:
                store.delete(name)
    return unnamed


def _generations(warehouse: str) -> set[str]:
    """Return the folders of all generations that are there."""
    kinds = (f"{warehouse}/{kind}" for kind in ("views", "replicas", "segments"))
    tables = [f"{kind}/{name}" for kind in kinds for name in store_at(kind).names()]
    return {f"{table}/{number}" for table in tables for number in generations_beside(f"{table}/0")}
