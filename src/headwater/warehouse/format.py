"""The warehouse's format number: a warehouse of another format is upgraded or refused, never misread.

Only `run` upgrades, and says so first. Readers read an older warehouse as it is, and write nothing.

| format | what is new |
|---|---|
| 2 | segments are named by what they mean |
| 3 | replicas may hold a part of their relation's rows; a reader of format 2 would take that for all of them |
| 4 | a commit carries what it adds to kept tables (`journal`); before, `changes` had it first, and `commits` said so |
"""

from __future__ import annotations

import json

from headwater.errors import WarehouseRefused
from headwater.storage.notes import read_note, read_text, write_text
from headwater.storage.object_store import store_at
from headwater.storage.storage_errors import stored
from headwater.warehouse.folders import PASSING

FORMAT = 4
_READABLE = (2, 3, FORMAT)
"""What is read as it is: in format 2 replicas hold all rows; up to format 3 nothing is in a journal."""
_FILE = "format.json"
_HALF_MADE = (".", PASSING, "lost+found", "changelog", "commits", "journal", "format.json", "project.json")


def write_format(warehouse: str) -> None:
    """Mark a folder as a warehouse of this format."""
    write_text(warehouse, _FILE, json.dumps({"format": FORMAT}), durable=True)


def is_warehouse(warehouse: str) -> bool:
    """Tell whether a folder is a warehouse, of whatever format."""
    return read_text(warehouse, _FILE) is not None


def refuse_occupied(warehouse: str) -> None:
    """Refuse to make a warehouse in a folder that holds something else. What a killed maker left is no obstacle."""
    if is_warehouse(warehouse):
        return
    with stored(warehouse):
        others = [name for name in store_at(warehouse).names() if not name.startswith(_HALF_MADE)]
    if others:
        raise WarehouseRefused(
            f'"{warehouse}" is not empty and is not a warehouse',
            code="HW-438",
            detail=f"it holds {', '.join(others[:3])}{' and others' if len(others) > 3 else ''}",  # noqa: PLR2004
            hint="set [warehouse] path to a folder of its own, or empty this one",
        )


def check_format(warehouse: str) -> int:
    """Return the format of a warehouse. A folder that is none, or one of a format that cannot be read, is refused."""
    found: int | None = read_note(warehouse, _FILE, lambda said: said["format"])
    if found is None:
        raise WarehouseRefused(
            f'"{warehouse}" is not a warehouse',
            code="HW-403",
            detail=f"it has no {_FILE}",
            hint="run `headwater run` first, or name the folder that headwater.toml calls the warehouse",
        )
    if found not in _READABLE:
        raise WarehouseRefused(
            f'the warehouse "{warehouse}" has format {found}; this Headwater reads and writes format {FORMAT}',
            code="HW-404",
            detail="formats differ in what is stored where, so reading it could show wrong rows",
            hint="use the Headwater version that wrote it, or let a new warehouse be filled from the sources",
        )
    return found
