"""Where everything is in a warehouse, below its address.

A generation is a folder of its own, so that a changed view starts afresh while the old one stays readable. Its number
is reserved before anything is written there, and never given again: a maintainer that lost its lease, or a dead one's
last job on Spark, cannot write into what another is filling.

    format.json  project.json  lease.json  changelog/  journal/
    views/<name>/<generation>/{changes,checkpoint}/
    segments/<segment>/<generation>/{changes,checkpoint}/
    replicas/<relation>/<generation>/checkpoint/
    sources/<source>.json  status.json  certificates/  staging/
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from headwater.model.relation import RelationName
from headwater.storage.object_store import store_at
from headwater.storage.storage_errors import stored

RESERVED = "reserved"
"""What stands in the folder of a generation from the start, so that its number is taken."""
PASSING = "check-"
"""How the names begin of what is needed for a while."""
STATUS = "status.json"
"""Where the maintainer says how it is doing."""


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


def staging_folder(warehouse: str) -> str:
    """Return where a bootstrap puts what it has read so far."""
    return f"{warehouse}/staging"


BATCH_SCRATCH = "batch"
"""Whose scratch the batches use, one after the other."""


def scratch_folder(warehouse: str, name: str) -> str:
    """Return where a piece of work writes what is too large to be held and what no table keeps."""
    return f"{warehouse}/scratch/{name}"


def passing_name(now: datetime) -> str:
    """Return a new name for what is needed for a while. Housekeeping deletes it if its process did not."""
    return f"{PASSING}{now:%Y-%m-%d}-{uuid.uuid4()}"


def is_past(name: str, now: datetime) -> bool:
    """Tell whether a name is of something that was needed for a while, days ago.

    >>> is_past("check-2026-11-18-1f", datetime(2026, 11, 19)), is_past("check-2026-11-18-1f", datetime(2026, 11, 22))
    (False, True)
    """
    return PASSING <= name < f"{PASSING}{now - timedelta(days=2):%Y-%m-%d}"


def generations_beside(folder: str) -> list[int]:
    """Return the numbers of the generations beside a folder, also of those that a crash left behind."""
    with stored(folder):
        return sorted(int(name) for name in store_at(folder.rpartition("/")[0]).names() if name.isdecimal())


def reserve_generation(folder: str) -> int:
    """Return a number that no generation beside this one has, and that nobody else is given."""
    number = 1 + max(generations_beside(folder), default=0)
    beside = folder.rpartition("/")[0]
    with stored(folder):
        while not store_at(beside).put_if_absent(f"{number}/{RESERVED}", b""):
            number += 1
    return number
