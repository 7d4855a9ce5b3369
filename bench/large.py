"""`python -m bench.large`: one transaction that changes a million rows, and three million, of a view over two tables.

Facts in one database join dims in another, both read as replicas. An UPDATE changes facts; the batch is timed from when
the change log has it until it is committed, and compared with Spark computing the same view anew from the replicas'
own files, result written, in the same session. What the driver's Python process holds is sampled all the while (memory
of its own, without mapped files), and compared with what it held when idle. Writes bench/results/large.md.
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
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Self

from pyspark.sql import SparkSession

from bench.report import Report
from bench.setting import SERVER, Setting, setting
from headwater.model.relation import RelationName
from headwater.sources.embedded import EmbeddedServer
from headwater.storage.spark_files import read_files

VIEW = "SELECT f.id, f.amount, f.note, d.name, d.region FROM sales.facts f JOIN crm.dims d ON d.id = f.dim"
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


def recompute(place: Setting, folder: Path) -> float:
    """Compute the view from the files of its replicas on Spark, and write it."""
    for name, relation in place.resolved.relations.items():
        reader = place.maintainer.replicas[name]
        files = list(reader.files)
        assert files, "the replica is stored"
        frame = read_files(place.spark, files, relation.arrow_schema(reader.columns))
        frame.createOrReplaceTempView(f"whole_{name.name}")
    sql = VIEW.replace("sales.facts", "whole_facts").replace("crm.dims", "whole_dims")
    started = time.perf_counter()
    place.spark.sql(sql).write.mode("overwrite").parquet(str(folder / "result"))
    return time.perf_counter() - started


@dataclass(frozen=True)
class Measured:
    """One large transaction: seconds, and MB beyond those of the idle process."""

    capture_seconds: float
    batch_seconds: float
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
        started = time.perf_counter()
        place.maintain()
        batch_seconds = time.perf_counter() - started
    commits = [commit for _, commit in place.ear.commits]
    parts = {part: sum(commit.seconds.get(part, 0.0) for commit in commits) for part in ("probe", "spark", "commit")}
    return Measured(
        capture_seconds=capture_seconds,
        batch_seconds=batch_seconds,
        parts=parts,
        view_rows=sum(commit.row_count for commit in commits),
        capture_megabytes=capturing.most - idle,
        batch_megabytes=computing.most - idle,
    )


def require_exact(place: Setting) -> None:
    """Compare the view with its SQL over its replicas as they are now: counts and a sum tell enough here."""
    view = place.maintainer.views["joined"]
    shown = view.table.state_dataframe(place.spark, view.frontier)
    name = RelationName(source="sales", name="facts")
    [(count, total)] = shown.selectExpr("count(*)", "sum(amount)").collect()
    row = place.connections["sales"].execute("SELECT count(*), sum(amount) FROM facts").fetchone()
    assert row == (count, total), f"the view of {name} is wrong: {row} and {(count, total)}"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.large", description=__doc__)
    parser.add_argument("--facts", type=int, default=FACTS)
    parser.add_argument("--changes", type=int, nargs="+", default=[1_000_000, 3_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "6g")

    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the memory is set

    spark: SparkSession = spark_session()
    report = Report("large.md")
    report.say(f"# Large transactions, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    report.say()
    report.say(
        f"{os.cpu_count()} cores; load before: {os.getloadavg()[0]:.1f}. {options.facts:,} facts, {DIMS:,} dims."
    )
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    with servers(options.facts) as urls, setting(spark, urls, "replica", {"joined": VIEW}) as place:
        report.say(f"Bootstrap: {place.bootstrap_seconds:.1f} s.")
        change(place, "UPDATE facts SET amount = amount + 1 WHERE id <= 400000")  # the virtual machine warms up
        whole = [recompute(place, folder) for _ in range(3)]
        report.say()
        report.table(
            "changed rows", "capture s", "batch s", "probe s", "law s", "commit s", "recompute s", "ratio", "view rows",
            "MB in capture", "MB in batch",
        )  # fmt: skip
        for count in options.changes:
            runs = []
            for _ in range(options.repeats):
                runs.append(change(place, f"UPDATE facts SET amount = amount + 1 WHERE id <= {count}"))
                whole.append(recompute(place, folder))
            require_exact(place)
            one = sorted(runs, key=lambda run: run.batch_seconds)[len(runs) // 2]
            again = median(whole[3:])
            report.row(
                f"{count:,}",
                f"{one.capture_seconds:.1f}",
                f"{one.batch_seconds:.1f} ({', '.join(f'{run.batch_seconds:.1f}' for run in runs)})",
                f"{one.parts['probe']:.1f}",
                f"{one.parts['spark']:.1f}",
                f"{one.parts['commit']:.1f}",
                f"{again:.1f}",
                f"{one.batch_seconds / again:.2f}",
                f"{one.view_rows:,}",
                f"{max(run.capture_megabytes for run in runs):.0f}",
                f"{max(run.batch_megabytes for run in runs):.0f}",
            )
    shutil.rmtree(folder, ignore_errors=True)
    report.write()


if __name__ == "__main__":
    main()
