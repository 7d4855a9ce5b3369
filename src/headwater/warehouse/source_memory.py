"""What must be known of a source in the next run, in a small file of the warehouse, beside what was read of it."""

from __future__ import annotations

from headwater.changelog.data_file import read_text, sync, write_text


class SourceMemory:
    """See `headwater.sources.postgres.partitions.Memory`."""

    def __init__(self, warehouse: str, source: str) -> None:
        """Say where; nothing is read yet, and the warehouse need not be there."""
        self._warehouse = warehouse
        self._file = f"sources/{source}.json"

    def read(self) -> str | None:
        """Return the text written last; None if none was."""
        return read_text(self._warehouse, self._file)

    def write(self, text: str) -> None:
        """Replace the text, durably; what is there already is not written again."""
        if text != self.read():
            write_text(self._warehouse, self._file, text)
            sync(self._warehouse, self._file)
