"""Where everything is in a warehouse's folder.

A generation is a folder of its own, so that a changed view starts afresh while the old one stays readable.

    format.json  project.json  lease.json  changelog/  journal/
    views/<name>/<generation>/{changes,checkpoint}/
    segments/<segment>/<generation>/{changes,checkpoint}/
    replicas/<relation>/<generation>/checkpoint/
    sources/<source>.json
"""

from __future__ import annotations

from pathlib import Path

from headwater.model.relation import RelationName


def changelog_folder(warehouse: str) -> str:
    """Return where the change log is."""
    return f"{warehouse}/changelog"


def journal_folder(warehouse: str) -> str:
    """Return where the commits are, with what they add to kept tables."""
    return f"{warehouse}/journal"


def older_commits_folder(warehouse: str) -> str:
    """Return where the commits were before there was a journal. No new ones are written there."""
    return f"{warehouse}/commits"


def view_folder(warehouse: str, name: str, generation: int) -> str:
    """Return where a generation of a view is.

    >>> view_folder("w", "sales_by_city", 3)
    'w/views/sales_by_city/3'
    """
    return f"{warehouse}/views/{name}/{generation}"


def segment_folder(warehouse: str, table: str) -> str:
    """Return the folder of an auxiliary table, which is named by segment and generation.

    >>> segment_folder("w", segment_table("group_1f3a", 3))
    'w/segments/group_1f3a/3'
    """
    return f"{warehouse}/segments/{table}"


def segment_table(segment: str, generation: int) -> str:
    """Return the name of a generation of a segment's auxiliary table in the catalog.

    >>> segment_table("group_1f3a", 3)
    'group_1f3a/3'
    """
    return f"{segment}/{generation}"


def segment_of_table(table: str) -> str:
    """Return the segment that an auxiliary table holds.

    >>> segment_of_table("group_1f3a/3")
    'group_1f3a'
    """
    return table.rpartition("/")[0]


def replica_folder(warehouse: str, relation: RelationName, generation: int) -> str:
    """Return where a generation of a relation's copy is.

    >>> replica_folder("w", RelationName(source="shop", name="sales"), 1)
    'w/replicas/shop.sales/1'
    """
    return f"{warehouse}/replicas/{relation}/{generation}"


def staging_folder(warehouse: str) -> Path:
    """Return where a bootstrap puts what it has read so far."""
    return Path(warehouse) / "staging"


BATCH_SCRATCH = "batch"
"""Whose scratch the batches use, one after the other."""


def scratch_folder(warehouse: str, name: str) -> str:
    """Return where a piece of work writes what is too large to be held and what no table keeps."""
    return f"{warehouse}/scratch/{name}"


def status_file(warehouse: str) -> Path:
    """Return where the maintainer says how it is doing."""
    return Path(warehouse) / "status.json"


def next_generation(folder: str) -> int:
    """Return the number after the highest generation beside this one, even one that a crash left behind."""
    siblings = Path(folder).parent.glob("[0-9]*")
    return 1 + max((int(one.name) for one in siblings), default=0)
