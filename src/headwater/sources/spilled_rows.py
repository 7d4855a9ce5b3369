"""Rows in temporary files that nobody else can see: they take no memory, and are read as if they did.

Each table is written to a file, mapped back, and the file is unlinked, so that the space is freed with the table. Files
are in the system's temporary folder (`TMPDIR`), which has to be on a disk: a folder in memory would save nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa


def spilled(schema: pa.Schema, parts: Iterable[pa.Table]) -> pa.Table:
    """Return the rows of some tables of a schema as one, mapped from a file. One of them at a time is held.

    >>> rows = pa.table({"a": [1, 2]})
    >>> spilled(rows.schema, [rows, rows])["a"].to_pylist()
    [1, 2, 1, 2]
    """
    handle, name = tempfile.mkstemp(prefix="headwater-", suffix=".arrow")
    try:
        with os.fdopen(handle, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for part in parts:
                writer.write_table(part)
        return pa.ipc.open_file(pa.memory_map(name)).read_all()
    finally:
        Path(name).unlink()
