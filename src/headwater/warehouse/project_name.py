"""Which project a warehouse belongs to: another project's `run` would drop its views, so another project is refused.

The name is written before the warehouse counts as one, and never changed. A warehouse from before there were names
belongs to the first project that maintains it.
"""

from __future__ import annotations

import json

from headwater.errors import WarehouseRefused
from headwater.storage.notes import read_note, write_text

FILE = "project.json"


def project_of(warehouse: str) -> str | None:
    """Return the name of the project that a warehouse belongs to, or None if none has been written yet."""
    return read_note(warehouse, FILE, lambda said: str(said["project"]))


def note_project(warehouse: str, name: str) -> None:
    """Write down, durably, which project a warehouse belongs to."""
    write_text(warehouse, FILE, json.dumps({"project": name}), durable=True)


def refuse_other_project(warehouse: str, name: str) -> None:
    """Refuse a project that a warehouse does not belong to."""
    theirs = project_of(warehouse)
    if theirs in (None, name):
        return
    raise WarehouseRefused(
        f'"{warehouse}" is the warehouse of project "{theirs}", not of "{name}"',
        code="HW-431",
        detail=f'"{name}" has other views, and its `run` would drop those of "{theirs}"',
        hint=f'set another [warehouse] path in headwater.toml. If the project was renamed, name it "{theirs}" again; '
        f'to keep the new name, run `headwater teardown` under the old one and remove "{warehouse}/{FILE}": the '
        "next `headwater run` reads the sources again, and the views' history begins there",
    )
