"""Folders of views, auxiliary tables and replicas that the catalog once had and no longer has, or never had."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from headwater.storage.data_file import delete_folder
from headwater.warehouse.catalog import Catalog
from headwater.warehouse.commit_record import CommitKind
from headwater.warehouse.folders import replica_folder, segment_folder, view_folder
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

    For a maintainer that has just taken the lease and fills nothing yet. The folders stay: a number is never given
    twice, so that a dead maintainer's last job on Spark cannot write into what the next maintainer is filling.
    """
    head = warehouse.head()
    found = {
        str(one) for kind in ("views", "replicas", "segments") for one in Path(warehouse.path, kind).glob("*/[0-9]*")
    }
    unknown = sorted(
        folder
        for folder in found - folders(warehouse.path, warehouse.commits.catalog(head))
        if any(Path(folder).iterdir())
    )
    if not unknown:
        return []
    named: set[str] = set()
    for commit in warehouse.commits.read():
        if commit.kind is CommitKind.CATALOG:
            named |= folders(warehouse.path, warehouse.commits.catalog(commit))
    unnamed = [folder for folder in unknown if folder not in named]
    for folder in unnamed:
        for content in Path(folder).iterdir():
            delete_folder(str(content))
    return unnamed
