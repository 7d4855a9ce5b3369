"""Views that somebody wants up to date: a small file for each in the warehouse, which the maintainer notices.

It says up to which tick. What the view has reached already is done, so nobody has to remove a file; a later request
replaces it. Nobody has to run for it: the next maintainer sees it too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow.fs as pafs

from headwater.changelog.data_file import place, read_note, write_text
from headwater.position import Tick

_FOLDER = "refreshes"


def note_refresh(warehouse: str, view: str, upto: Tick) -> None:
    """Write down that a view is wanted at a tick."""
    write_text(warehouse, f"{_FOLDER}/{view}.json", json.dumps({"view": view, "upto": upto}))


def requested_refreshes(warehouse: str) -> dict[str, Tick]:
    """Return the views that were asked for, and at which tick they are wanted."""
    system, base = place(warehouse)
    selector = pafs.FileSelector(f"{base}/{_FOLDER}", allow_not_found=True)
    names = [file.base_name for file in system.get_file_info(selector) if file.extension == "json"]
    found = [read_note(warehouse, f"{_FOLDER}/{name}", _request) for name in names]
    return dict(one for one in found if one is not None)


def _request(said: Mapping[str, Any]) -> tuple[str, Tick]:
    return str(said["view"]), Tick(int(said["upto"]))
