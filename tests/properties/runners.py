"""Runners of batches' queries for tests, which hold as many rows as a test wants."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from volume import HELD_ROWS

from headwater.engine.state.runner import Runner

HELD, STORED, MIXED = int(HELD_ROWS or 10**9), 0, 3
"""How many rows are held: all (or what this run says), none, or as few as make bags of both forms meet."""


@contextmanager
def runner_of(spark: SparkSession, held_rows: int = HELD) -> Iterator[Runner]:
    """Return a runner whose files are gone afterwards."""
    folder = tempfile.mkdtemp(prefix="headwater-test-")
    try:
        yield Runner(spark=spark, held_rows=held_rows, scratch=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
