"""What must be known of a source in the next run: a small file of the warehouse, and rows where it is polled.

sources/<source>.json   a text
sources/<source>/       the states in which a polled source was seen: notes, and Arrow files
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.fs as pafs

from headwater.storage.notes import read_text, write_text
from headwater.storage.object_store import ObjectStore, store_at
from headwater.storage.storage_errors import parse_stored, stored


class SourceMemory:
    """See `headwater.sources.source.Memory`."""

    def __init__(self, warehouse: str, source: str) -> None:
        """Say where. Nothing is read yet, and the warehouse need not be there."""
        self._warehouse = warehouse
        self._file = f"sources/{source}.json"

    def read(self) -> str | None:
        """Return the text written last, or None if none was. One that is damaged is refused by the file's name."""
        text = read_text(self._warehouse, self._file)
        if text is not None:
            parse_stored(f"{self._warehouse}/{self._file}", text, dict)
        return text

    def write(self, text: str) -> None:
        """Replace the text, durably. What is there already is not written again."""
        if text != read_text(self._warehouse, self._file):
            write_text(self._warehouse, self._file, text, durable=True)


class SourceFiles:
    """See `headwater.sources.source.StateFiles`."""

    def __init__(self, warehouse: str, source: str) -> None:
        """Say where. Nothing is read yet, and the warehouse need not be there."""
        self._address = f"{warehouse}/sources/{source}"

    def names(self) -> list[str]:
        """Return the names of all files."""
        with stored(self._address):
            return self._store.names()

    def text(self, name: str) -> str | None:
        """Return the text of a file, or None if it is not there."""
        return read_text(self._address, name)

    def write_new_text(self, name: str, text: str) -> bool:
        """Make a file, durably, unless it is there."""
        with stored(self._address):
            return self._store.put_if_absent(name, text.encode())

    def table(self, name: str) -> pa.Table:
        """Return the rows of a file: mapped in a folder of this machine, read from an object store."""
        with stored(f"{self._address}/{name}"):
            system, path = self._store.files()
            whole = f"{path}/{name}"
            if isinstance(system, pafs.LocalFileSystem):
                return pa.ipc.open_file(pa.memory_map(whole)).read_all()
            with system.open_input_file(whole) as opened:
                return pa.ipc.open_file(opened).read_all()

    def write_table(self, name: str, schema: pa.Schema, parts: Iterable[pa.Table]) -> None:
        """Write rows, durably."""
        with (
            stored(f"{self._address}/{name}"),
            self._store.writing(name) as sink,
            pa.ipc.new_file(sink, schema) as file,
        ):
            for part in parts:
                file.write_table(part.cast(schema))

    def delete(self, name: str) -> None:
        """Delete a file."""
        with stored(f"{self._address}/{name}"):
            self._store.delete(name)

    @property
    def _store(self) -> ObjectStore:
        return store_at(self._address)
