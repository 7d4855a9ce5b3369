"""`python -m bench.sources`: what kinds of source give: captured rows/s, ms for a probe of 1,000 keys, rows/s read.

A server of each kind on this machine, the same table and the same changes; no Spark. Writes bench/results/sources.md.
MariaDB is measured where its server is installed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from bench.report import Report
from headwater.deltas.extent import WHOLE
from headwater.model.position import Positions, are_reached
from headwater.model.relation import Relation, RelationName
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.registry import connect
from headwater.sources.source import Source, SourceSettings

ROOT = Path(__file__).resolve().parent.parent
ROWS = 400_000
SMALL_TRANSACTIONS = 5_000
PROBES = 9
ITEMS = RelationName(source="shop", name="items")
TABLE = "CREATE TABLE items (id int PRIMARY KEY, dim int, price decimal(12, 2), name varchar(40), day date)"
INDEX = "CREATE INDEX by_dim ON items (dim)"
FILL = {
    "postgresql": "INSERT INTO items SELECT n, n % 100000, n / 7.0, 'item number ' || n, date '2026-01-01' + n % 365"
    f" FROM generate_series(1, {ROWS}) n",
    "mariadb": "INSERT INTO items SELECT seq, seq % 100000, seq / 7.0, CONCAT('item number ', seq),"
    f" DATE '2026-01-01' + INTERVAL seq % 365 DAY FROM seq_1_to_{ROWS}",
}
UPDATE = "UPDATE items SET price = price + 1"


def main() -> None:
    """Measure, print and write."""
    report = Report("sources.md")
    report.say(f"# Sources, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    report.say()
    report.say(
        f"{os.cpu_count()} cores; load before: {os.getloadavg()[0]:.1f}. A table of five columns and {ROWS:,} rows. An"
        " update counts as two captured rows. Servers run on the same machine."
    )
    report.say()
    report.table("source", "captured rows/s", "small transactions/s", "probe of 1,000 keys, ms", "read rows/s")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o711)
        postgres = stack.enter_context(EmbeddedServer(folder / "postgres", settings={"fsync": "off"}))
        measure(report, "postgresql", postgres.url, lambda sql: _each(postgres.execute, sql))
        sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "contracts")]
        from mariadb_server import MariadbServer  # noqa: PLC0415 — of the tests, where MariaDB is installed
        from tests.debian_packages import installed  # noqa: PLC0415

        if installed("mariadbd", "mariadb-server") is None:
            report.row("mariadb", "not installed", "", "", "")
        else:
            mariadb = MariadbServer(folder / "mariadb")
            mariadb.start()
            stack.callback(mariadb.stop)
            mariadb.execute("CREATE DATABASE shop CHARACTER SET utf8mb4")
            measure(
                report,
                "mariadb",
                mariadb.url,
                lambda sql: _each(lambda one: mariadb.execute(one, "shop"), sql),
            )
    report.write()


def _each(execute: Callable[[str], object], statements: Sequence[str]) -> None:
    for one in statements:
        execute(one)


def measure(report: Report, kind: str, url: Callable[[], str], execute: Callable[[Sequence[str]], None]) -> None:
    identity = ["ALTER TABLE items REPLICA IDENTITY FULL"] if kind == "postgresql" else []
    execute([TABLE, INDEX, *identity])
    source = connect(SourceSettings(name="shop", url=url, project="bench"))
    slot = source.new_slot()
    start = source.prepare([ITEMS], slot, is_new=True)
    relations = source.inspect([ITEMS]).relations
    execute([FILL[kind]])
    execute([UPDATE])
    large, held = captured(source, relations, slot, start)
    execute([f"UPDATE items SET dim = dim + 1 WHERE id = {n}" for n in range(1, SMALL_TRANSACTIONS + 1)])
    small, _ = captured(source, relations, slot, held)
    report.row(
        kind,
        f"{3 * ROWS / large:,.0f}",
        f"{SMALL_TRANSACTIONS / small:,.0f}",
        f"{1000 * probed(source, relations[0]):.1f}",
        f"{ROWS / read(source, relations[0]):,.0f}",
    )
    source.teardown(slot, held)


def captured(source: Source, relations: Sequence[Relation], slot: str, start: Positions) -> tuple[float, Positions]:
    """Return how long it takes to follow what waits in the log, and how far it was followed."""
    with source.snapshot([ITEMS]) as snapshot, snapshot.reader() as reader:
        end = reader.positions
    follower = source.follow(relations, slot, start)
    began = time.perf_counter()
    while not are_reached(end, follower.followed_to()):
        for position in end.values():
            follower.hasten(position)
        follower.next_capture(1.0)
    seconds = time.perf_counter() - began
    found = follower.followed_to()
    follower.close()
    return seconds, found


def probed(source: Source, relation: Relation) -> float:
    """Return how long a probe of 1,000 keys takes, each of which has four rows."""
    taken = []
    with source.snapshot([ITEMS]) as snapshot, snapshot.reader() as reader:
        for number in range(PROBES):
            keys = pa.table({"dim": pa.array(range(10_000 + 1000 * number, 11_000 + 1000 * number), pa.int32())})
            began = time.perf_counter()
            found = reader.probe(relation, relation.column_names, ("dim",), keys)
            taken.append(time.perf_counter() - began)
            assert found.num_rows == 1000 * (ROWS // 100_000)
    return sorted(taken)[PROBES // 2]


def read(source: Source, relation: Relation) -> float:
    """Return how long it takes to read a relation in chunks."""
    count, began = 0, time.perf_counter()
    with source.snapshot([ITEMS], bootstrap=True) as snapshot:
        for chunk in snapshot.chunks(relation, 100_000):
            with snapshot.reader() as reader:
                count += sum(one.num_rows for one in reader.read(relation, relation.column_names, chunk, WHOLE))
    assert count == ROWS
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
