"""`python -m bench.captures`: one UPDATE of a million rows, and of three million, on its way into the change log.

An embedded server, a follower and the accepting thread; no Spark, no batches. What the process takes at most above what
it took before, as the system counts it (mapped pages are not) and as Arrow does, has to be much the same for both.
Writes bench/results/captures.md.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from bench.report import Report
from headwater.changelog import ChangeLog
from headwater.changelog.accept import Acceptor
from headwater.model.memory_budget import DEFAULT_BYTES, MemoryBudget
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.observe.events import ignore_event
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.postgres import PostgresSource

SIZES = (1_000_000, 3_000_000)
ITEMS = RelationName(source="shop", name="items")
TABLE = """
    DROP TABLE IF EXISTS items;
    CREATE TABLE items (id int PRIMARY KEY, dim int, price numeric(12, 2), name text, day date);
    ALTER TABLE items REPLICA IDENTITY FULL;
"""
FILL = """
    INSERT INTO items
    SELECT n, n % 100000, n / 7.0, 'item number ' || n, date '2026-01-01' + n % 365 FROM generate_series(1, {rows}) n
"""
UPDATE = "UPDATE items SET price = price + 1"


def main() -> None:
    """Measure, print and write."""
    report = Report("captures.md")
    report.say(f"# Captures, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    report.say()
    report.say(
        f"{os.cpu_count()} cores; load before: {os.getloadavg()[0]:.1f}. One UPDATE of all rows of a table of five"
        " columns, each an old and a new row, from a PostgreSQL server on the same machine into the change log."
    )
    for memory_bytes in (DEFAULT_BYTES, DEFAULT_BYTES // 10):
        report.say()
        report.say(f'## `memory = "{memory_bytes / 10**6:,.0f} MB"`')
        report.table("rows updated", "seconds", "signed rows/s", "memory at most", "of it Arrow", "held in the tail")
        with tempfile.TemporaryDirectory() as folder, EmbeddedServer(Path(folder) / "server") as server:
            for rows in SIZES:
                measure(report, server, Path(folder), rows, MemoryBudget.of(memory_bytes))
    report.write()


def measure(report: Report, server: EmbeddedServer, folder: Path, rows: int, budget: MemoryBudget) -> None:
    server.execute(TABLE)
    server.execute(FILL.format(rows=rows))
    source = PostgresSource(
        name="shop", url=server.url(), project=f"bench{rows}", spill_bytes=budget.spill_bytes(source_count=1)
    )
    slot = source.new_slot()
    log = ChangeLog.create(str(folder / f"log{rows}"))
    log.take_over(1, budget.tail_bytes)
    log.claim("shop", slot)
    log.begin("shop", source.prepare([ITEMS], slot, is_new=True))
    relations = source.inspect([ITEMS]).relations
    log.declare(relations)
    acceptor = Acceptor(log, ignore_event, lambda capture: capture, budget=budget)
    acceptor.follow(source, relations)
    acceptor.start()
    before, peak = (own_megabytes(), pa.total_allocated_bytes() / 10**6), Peak()
    peak.start()
    began = time.perf_counter()
    server.execute(UPDATE)
    while log.last_tick < 1:
        acceptor.raise_error()
        time.sleep(0.02)
    seconds = time.perf_counter() - began
    peak.stop()
    acceptor.stop()
    counted = log.row_count(ITEMS, Tick(0), Tick(1))
    assert counted == 2 * rows, f"{counted} rows are in the log"
    report.row(
        f"{rows:,}",
        f"{seconds:.0f}",
        f"{counted / seconds:,.0f}",
        f"{peak.own - before[0]:.0f} MB",
        f"{peak.arrow - before[1]:.0f} MB",
        f"{log.tail.byte_count / 10**6:.0f} MB",
    )
    source.teardown(slot, log.positions())


class Peak:
    """Looks again and again how much memory the process has, and Arrow in it, and keeps the most."""

    def __init__(self) -> None:
        self.own = self.arrow = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            self.own = max(self.own, own_megabytes())
            self.arrow = max(self.arrow, pa.total_allocated_bytes() / 10**6)


def own_megabytes() -> float:
    """Return the memory that is this process's own: mapped pages are not."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    kilobytes = re.search(r"RssAnon:\s+(\d+)", status)
    assert kilobytes is not None
    return int(kilobytes[1]) / 1000


if __name__ == "__main__":
    main()
