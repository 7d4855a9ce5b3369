"""Global transactions that a person let go: a small file for each in the warehouse, which the maintainer notices.

A file is written whole and never changed or removed, so that a part that comes late does not wait either, and so that
several may release at once. Nobody has to run for it: what is released now is done by the next maintainer.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime

import pyarrow.fs as pafs

from headwater.changelog.data_file import place, read_note, sync, write_text

_FOLDER = "released"


def note_release(warehouse: str, global_id: str) -> None:
    """Write down, durably, that the parts of a global transaction need not wait for each other."""
    path = f"{_FOLDER}/{hashlib.sha256(global_id.encode()).hexdigest()[:32]}.json"
    write_text(warehouse, path, json.dumps({"id": global_id, "released_at": datetime.now(UTC).isoformat()}))
    sync(warehouse, path)


class Releases:
    """What was released in a warehouse, looked at again and again; each file is read once."""

    def __init__(self, warehouse: str) -> None:
        """Know nothing yet."""
        self._warehouse = warehouse
        self._read: set[str] = set()

    def look(self) -> list[str]:
        """Return the ids that were released since the last look."""
        system, base = place(self._warehouse)
        selector = pafs.FileSelector(f"{base}/{_FOLDER}", allow_not_found=True)
        names = {file.base_name for file in system.get_file_info(selector) if file.extension == "json"}
        found = []
        for name in sorted(names - self._read):
            released = read_note(self._warehouse, f"{_FOLDER}/{name}", lambda said: str(said["id"]))
            if released is not None:
                found.append(released)
            self._read.add(name)
        return found
