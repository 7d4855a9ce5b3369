"""`python -m bench.lookups`: looking keys up in ten million rows, with much and with little memory.

The rows are those of a replica or a group table: a text that they are looked up by, and two numbers. A thousand batches
of a hundred changes are laid on top; then 200 lookups ask for a hundred keys each that were not asked for before. No
Spark, no sources. What `[maintenance] memory` says is tried at its default and at a tenth of it. Writes
bench/results/lookups.md.
"""

from __future__ import annotations

import os
import random
import re
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

from bench.report import Report
from headwater.model.memory_budget import DEFAULT_BYTES, MemoryBudget
from headwater.storage.layered_rows import LayeredRows
from headwater.storage.mapped_rows import MappedFolder

ROWS = 10_000_000
ROWS_PER_PART = 250_000
BATCHES, CHANGES = 1_000, 100
LOOKUPS, KEYS = 200, 100
MANY_KEYS = 10_000


def main() -> None:
    """Measure, print and write."""
    report = Report("lookups.md")
    report.say(f"# Lookups, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    report.say()
    report.say(f"{os.cpu_count()} cores; load before: {os.getloadavg()[0]:.1f}. {ROWS:,} rows, keys are texts.")
    for memory_bytes in (DEFAULT_BYTES // 10, DEFAULT_BYTES):
        report.say()
        report.say(f'## `memory = "{memory_bytes / 10**6:,.0f} MB"`')
        report.say()
        with tempfile.TemporaryDirectory() as folder:
            measure(report, MappedFolder(Path(folder) / "mapped", MemoryBudget.of(memory_bytes).rows))
    report.write()


def measure(report: Report, folder: MappedFolder) -> None:
    report.table("what", "measured")
    rows, chance, before = LayeredRows(schema=part(0, 1).schema, folder=folder), random.Random(1), own_megabytes()
    report.row("rows stored", f"{seconds(lambda: rows.fill(parts())):.1f} s")
    report.row("indexes of the key made", f"{seconds(lambda: rows.make_indexes([('key',)])):.1f} s")
    laid = sorted(seconds(lambda: rows.add(changes(chance))) * 1000 for _ in range(BATCHES))
    report.row(f"a batch of {CHANGES} changes laid on top, mean of {BATCHES:,}", f"{sum(laid) / BATCHES:.2f} ms")
    report.row("the slowest of these, which merges runs", f"{laid[-1]:.0f} ms")
    times = sorted(seconds(lambda: found(rows, chance, KEYS)) * 1000 for _ in range(LOOKUPS))
    report.row(f"{KEYS} keys, median of {LOOKUPS}", f"{median(times):.1f} ms")
    report.row(f"{KEYS} keys, 95 %", f"{times[LOOKUPS * 95 // 100]:.1f} ms")
    report.row(f"{MANY_KEYS:,} keys", f"{seconds(lambda: found(rows, chance, MANY_KEYS)) * 1000:.0f} ms")
    report.row(f"{MANY_KEYS:,} keys counted and not read", f"{seconds(lambda: counted(rows, chance)) * 1000:.0f} ms")
    report.row("memory of the process that the rows added", f"{own_megabytes() - before:.0f} MB")
    report.row("what they took from their share", f"{folder.share.held_bytes / 10**6:.0f} MB")
    report.row("the share", f"{folder.share.limit_bytes / 10**6:.0f} MB")
    report.row("mapped", f"{folder.share.mapped_bytes / 10**6:,.0f} MB")
    rows.release()


def key(number: int) -> str:
    return f"customer-{number:09d}"


def part(start: int, count: int) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "key": [key(int(number) * 7919 % ROWS) for number in numbers],
            "amount": numbers * 0.5,
            "number": numbers,
            "_count": np.ones(count, np.int64),
        }
    )


def parts() -> Iterator[pa.Table]:
    for start in range(0, ROWS, ROWS_PER_PART):
        yield part(start, ROWS_PER_PART)


def changes(chance: random.Random) -> pa.Table:
    rows = part(ROWS + chance.randrange(ROWS), CHANGES)
    return rows.set_column(0, "key", pa.array([key(chance.randrange(ROWS)) for _ in range(CHANGES)]))


def found(rows: LayeredRows, chance: random.Random, count: int) -> None:
    sought = pa.table({"key": [key(chance.randrange(ROWS)) for _ in range(count)]})
    assert rows.matching(("key",), sought).num_rows >= count * 0.99


def counted(rows: LayeredRows, chance: random.Random) -> None:
    sought = pa.table({"key": [key(chance.randrange(ROWS)) for _ in range(MANY_KEYS)]})
    assert rows.count_matching(("key",), sought) >= MANY_KEYS * 0.99


def seconds(work: object) -> float:
    assert callable(work)
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def own_megabytes() -> float:
    """Return the memory that is this process's own: mapped pages are not."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    kilobytes = re.search(r"RssAnon:\s+(\d+)", status)
    assert kilobytes is not None
    return int(kilobytes[1]) / 1024


if __name__ == "__main__":
    main()
