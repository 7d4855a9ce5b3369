"""What must be known of a source in the next run, in a small file of the warehouse, beside what was read of it."""

from __future__ import annotations

from headwater.storage.notes import read_text, write_text
from headwater.storage.storage_errors import parse_stored


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
