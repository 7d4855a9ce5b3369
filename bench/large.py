"""`python -m bench.large`: one transaction that changes a million rows, and three million, of a view over two tables.

Facts in one database join dims in another, both read as replicas. An UPDATE changes facts; the batch is timed from when
the change log has it until it can be read, and compared with Spark computing the same view anew from files of both
tables, result written, in the same session. So is one changed row of a view that is recomputed as a whole. What the
driver's Python process holds is sampled all the while (memory of its own, without mapped files), and compared with
what it held when idle. Writes bench/results/large.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Self

from pyspark.sql import SparkSession

from bench.report import Report
from bench.setting import SERVER, Setting, setting
from headwater.sources.embedded import EmbeddedServer

VIEW = "SELECT f.id, f.amount, f.note, d.name, d.region FROM sales.facts f JOIN crm.dims d ON d.id = f.dim"
RECOMPUTED = (
    "SELECT f.dim, count(*) AS n, max(f.note) AS last, sum(f.amount) AS total FROM sales.facts f GROUP BY f.dim"
)
AS_A_WHOLE = '[views.again]\nmaintenance = "recompute-self"\n'
FACTS, DIMS = 3_000_000, 100_000
PLACES = {"facts": "sales", "dims": "crm"}
MAKE = {
    "facts": f"""
        CREATE TABLE facts (id bigint PRIMARY KEY, dim bigint NOT NULL, amount numeric(12, 2), note text);
        ALTER TABLE facts REPLICA IDENTITY FULL;
        INSERT INTO facts SELECT n, n % {DIMS}, (n % 9973) / 10.0, 'note of fact ' || n
            FROM generate_series(1, {{rows}}) n;
        ANALYZE facts""",
    "dims": f"""
        CREATE TABLE dims (id bigint PRIMARY KEY, name text, region text);
        ALTER TABLE dims REPLICA IDENTITY FULL;
        INSERT INTO dims SELECT n, 'dimension ' || n, 'region ' || n % 10 FROM generate_series(0, {DIMS} - 1) n;
        ANALYZE dims""",
}


@dataclass
class Memory:
    """The most memory of its own that this process had in a block, in MB."""

    most: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            self.most = max(self.most, own_megabytes())


def own_megabytes() -> float:
    """Return the memory of this process that no file backs."""
    said = Path("/proc/self/status").read_text()
    [kilobytes] = re.findall(r"RssAnon:\s+(\d+)", said)
    return int(kilobytes) / 1024


@contextmanager
def servers(facts: int) -> Iterator[dict[str, str]]:
    """Start a server for each table, with its rows."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    folder.chmod(0o755)
    running = {source: EmbeddedServer(folder / source, settings=SERVER) for source in PLACES.values()}
    try:
        for table, source in PLACES.items():
            running[source].start()
            for statement in MAKE[table].format(rows=facts).split(";"):
                running[source].execute(statement)
        yield {name: server.url() for name, server in running.items()}
    finally:
        for server in running.values():
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def store(spark: SparkSession, facts: int, folder: Path) -> None:
    """Write both tables as files for Spark, which then needs nobody to recompute the view."""
    of_facts = (
        "id", f"id % {DIMS} AS dim", "CAST(id % 9973 / 10 AS decimal(12, 2)) AS amount",
        "concat('note of fact ', id) AS note",
    )  # fmt: skip
    of_dims = "id", "concat('dimension ', id) AS name", "concat('region ', id % 10) AS region"
    spark.range(1, facts + 1).selectExpr(*of_facts).write.parquet(str(folder / "facts"), compression="zstd")
    spark.range(DIMS).selectExpr(*of_dims).write.parquet(str(folder / "dims"), compression="zstd")


def recompute(spark: SparkSession, folder: Path, sql: str) -> float:
    """Compute a view from files on Spark, and write it."""
    for name in PLACES:
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(f"whole_{name}")
    sql = sql.replace("sales.facts", "whole_facts").replace("crm.dims", "whole_dims")
    started = time.perf_counter()
    spark.sql(sql).write.mode("overwrite").parquet(str(folder / "result"), compression="zstd")
    return time.perf_counter() - started


@dataclass(frozen=True)
class Measured:
    """One large transaction: seconds, and MB beyond those of the idle process."""

    capture_seconds: float
    batch_seconds: float
    """Until it is committed and readable."""
    after_seconds: float
    """What the maintainer takes from there to be ready for the next batch."""
    parts: Mapping[str, float]
    view_rows: int
    capture_megabytes: float
    batch_megabytes: float


def change(place: Setting, statement: str) -> Measured:
    """Run a statement at the source, let the log have it, and bring the view up to date."""
    idle = own_megabytes()
    place.connections["sales"].execute(statement)
    with Memory() as capturing:
        started = time.perf_counter()
        place.catch_up()
        capture_seconds = time.perf_counter() - started
    place.ear.commits.clear()
    with Memory() as computing:
        started, began = time.perf_counter(), time.time()
        place.maintain()
        whole_seconds = time.perf_counter() - started
    batch_seconds = max(at for at, _ in place.ear.commits) - began
    commits = [commit for _, commit in place.ear.commits]
    parts = {part: sum(commit.seconds.get(part, 0.0) for commit in commits) for part in ("probe", "spark", "commit")}
    return Measured(
        capture_seconds=capture_seconds,
        batch_seconds=batch_seconds,
        after_seconds=whole_seconds - batch_seconds,
        parts=parts,
        view_rows=sum(commit.row_count for commit in commits),
        capture_megabytes=capturing.most - idle,
        batch_megabytes=computing.most - idle,
    )


def require_exact(place: Setting) -> None:
    """Compare the view with the table it shows: counts and a sum tell enough here."""
    view = place.maintainer.views["joined"]
    shown = view.table.state_dataframe(place.spark, view.frontier)
    [(count, total)] = shown.selectExpr("count(*)", "sum(amount)").collect()
    row = place.connections["sales"].execute("SELECT count(*), sum(amount) FROM facts").fetchone()
    assert row == (count, total), f"the view is wrong: {row} and {(count, total)}"


def compare(report: Report, place: Setting, folder: Path, counts: list[int], repeats: int) -> None:
    """Measure transactions that change so many facts, and recomputing in turns with them."""
    change(place, f"UPDATE facts SET amount = amount + 1 WHERE id <= {counts[0]}")  # the virtual machine warms up
    whole = [recompute(place.spark, folder, VIEW) for _ in range(2)]
    report.table(
        "changed rows", "capture s", "batch s", "then s", "probe s", "law s", "commit s", "recompute s", "ratio",
        "view rows",
        "MB in capture", "MB in batch",
    )  # fmt: skip
    for count in counts:
        runs = []
        for _ in range(repeats):
            runs.append(change(place, f"UPDATE facts SET amount = amount + 1 WHERE id <= {count}"))
            whole.append(recompute(place.spark, folder, VIEW))
        require_exact(place)
        one = sorted(runs, key=lambda run: run.batch_seconds)[len(runs) // 2]
        again = median(whole[2:])
        report.row(
            f"{count:,}",
            f"{one.capture_seconds:.1f}",
            f"{one.batch_seconds:.1f} ({', '.join(f'{run.batch_seconds:.1f}' for run in runs)})",
            f"{one.after_seconds:.1f}",
            f"{one.parts['probe']:.1f}",
            f"{one.parts['spark']:.1f}",
            f"{one.parts['commit']:.1f}",
            f"{again:.1f}",
            f"{one.batch_seconds / again:.2f}",
            f"{one.view_rows:,}",
            f"{max(run.capture_megabytes for run in runs):.0f}",
            f"{max(run.batch_megabytes for run in runs):.0f}",
        )


def change_one(report: Report, place: Setting, folder: Path, repeats: int) -> None:
    """Measure a transaction that changes one fact, for a view that is recomputed as a whole."""
    runs, whole = [], []
    for number in range(repeats + 1):
        one = change(place, f"UPDATE facts SET amount = amount + 1 WHERE id = {number + 7}")
        again = recompute(place.spark, folder, RECOMPUTED)
        if number:
            runs.append(one)
            whole.append(again)
    seconds, again = median(run.batch_seconds for run in runs), median(whole)
    report.table("a recomputed view, one changed row", "batch s", "recompute s", "ratio", "MB in batch")
    held = max(run.batch_megabytes for run in runs)
    report.row("", f"{seconds:.1f}", f"{again:.1f}", f"{seconds / again:.2f}", f"{held:.0f}")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.large", description=__doc__)
    parser.add_argument("--facts", type=int, default=FACTS)
    parser.add_argument("--changes", type=int, nargs="+", default=[1_000_000, 3_000_000])
    parser.add_argument("--recomputed", type=int, default=1_000_000, help="facts of the view that is recomputed, or 0")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--report", default="large.md")
    options = parser.parse_args()
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "6g")

    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the memory is set

    spark = spark_session()
    report = Report(options.report)
    about = f"Spark at {spark.sparkContext.master}. {DIMS:,} dims."
    report.begin("Large transactions", spark, about)
    for facts in filter(None, (options.facts, options.recomputed)):
        whole = facts == options.facts
        views, settings = ({"joined": VIEW}, "") if whole else ({"again": RECOMPUTED}, AS_A_WHOLE)
        folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
        with servers(facts) as urls, setting(spark, urls, "replica", views, settings) as place:
            store(spark, facts, folder)
            report.say()
            report.say(f"## {facts:,} facts")
            report.say()
            report.say(f"Bootstrap: {place.bootstrap_seconds:.1f} s.")
            if whole:
                compare(report, place, folder, options.changes, options.repeats)
            else:
                change_one(report, place, folder, options.repeats)
        shutil.rmtree(folder, ignore_errors=True)
    report.write()


if __name__ == "__main__":
    main()
