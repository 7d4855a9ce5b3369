"""`python -m bench.bootstrap`: the first reading of TPC-H, by tasks of Spark and by threads, one and two at a time.

Every way reads the same relations in a snapshot of its own into files, in turns, several rounds; medians are shown.
Processor time is that of this process, Spark and its Python workers, and beside it that of the servers. With a latency
every connection takes as much longer to be there: a task opens one for each chunk. Writes bench/results/bootstrap.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import psycopg
from pyspark.sql import SparkSession

from bench.report import Report
from bench.setting import project, servers
from headwater.changelog.change_log import ChangeLog
from headwater.deltas.extent import WHOLE, Content
from headwater.engine.bootstrap.corrections import Corrections, MissedTicks
from headwater.engine.bootstrap.make_replica import keep_chunks, make_replica
from headwater.engine.bootstrap.staging import StagedRelation, stage_relation
from headwater.engine.bootstrap.task_reading import reading_by_tasks
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.settings import BootstrapSettings
from headwater.observe.events import ignore_event
from headwater.project.resolve import ResolvedProject, resolve_project
from headwater.storage.spark_files import read_files

PLACES = {"orders": "sales", "lineitem": "sales", "customer": "sales"}
VIEWS = {
    "orders": "SELECT * FROM sales.orders",
    "lineitem": "SELECT * FROM sales.lineitem",
    "customer": "SELECT * FROM sales.customer",
}
TICKS = os.sysconf("SC_CLK_TCK")
WAYS = ("threads", "tasks")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one reading took."""

    seconds: float
    own_seconds: float
    server_seconds: float
    rows: int


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.bootstrap", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--chunk-rows", type=int, nargs="+", default=[500_000, 50_000])
    parser.add_argument("--latency-ms", type=float, default=20.0)
    options = parser.parse_args()
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "3g")

    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the memory is set

    spark = spark_session()
    report = Report("bootstrap.md")
    report.begin("First readings", spark, f"TPC-H at scale factor {options.scale:g}: orders, lineitem, customer.")
    with servers(options.scale, PLACES) as urls, project(urls, "replica", VIEWS) as said:
        resolved = resolve_project(said, spark)
        with psycopg.connect(urls["sales"], autocommit=True) as connection:
            postmaster = parent(connection.info.backend_pid)
            for latency in (0.0, options.latency_ms):
                delay_logins(connection, latency)
                for chunk_rows in options.chunk_rows:
                    compare(report, spark, resolved, postmaster, chunk_rows, latency, options.rounds)
            delay_logins(connection, 0.0)
        after_reading(report, spark, resolved, postmaster)
    report.write()


def compare(
    report: Report,
    spark: SparkSession,
    resolved: ResolvedProject,
    postmaster: int,
    chunk_rows: int,
    latency: float,
    rounds: int,
) -> None:
    """Read in every way, in turns, and show what it took."""
    costs: dict[tuple[str, int], list[Cost]] = defaultdict(list)
    for number in range(rounds + 1):
        for way in WAYS:
            for readers in (1, 2):
                settings = BootstrapSettings(chunk_rows=chunk_rows, readers=readers)
                with read(spark, resolved, settings, way, postmaster) as (cost, _):
                    if number:  # the first round warms up
                        costs[way, readers].append(cost)
    report.say()
    report.say(f"## Chunks of {chunk_rows:,} rows, {latency:g} ms for each connection")
    report.table("read by", "seconds", "rows/s", "µs of processor a row", "and of the server", "against one")
    for way in WAYS:
        one = costs[way, 1]
        for readers in (1, 2):
            own = costs[way, readers]
            report.row(
                f"{readers} of {way}",
                f"{median(cost.seconds for cost in own):.1f}",
                f"{median(cost.rows / cost.seconds for cost in own):,.0f}",
                f"{median(1e6 * cost.own_seconds / cost.rows for cost in own):.2f}",
                f"{median(1e6 * cost.server_seconds / cost.rows for cost in own):.2f}",
                f"{ratio(one, own, 'seconds'):.2f} × as fast, processor {1 / ratio(one, own, 'own_seconds'):.2f} ×",
            )


def ratio(one: list[Cost], other: list[Cost], what: str) -> float:
    """Return how many times more one takes than the other."""
    return median(getattr(cost, what) for cost in one) / median(getattr(cost, what) for cost in other)


def after_reading(report: Report, spark: SparkSession, resolved: ResolvedProject, postmaster: int) -> None:
    """Show what it takes to make replicas of what was read."""
    settings = BootstrapSettings(readers=2)
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    report.say()
    report.say("## From what was read to a replica")
    report.table("relation", "its rows", "seconds", "µs of processor a row")
    log = ChangeLog.create(str(folder / "changelog"))
    log.declare(resolved.followed("sales"))
    with read(spark, resolved, settings, "tasks", postmaster) as (_, staged):
        for name, one in staged.items():
            schema = one.relation.arrow_schema(one.wanted)
            rows = read_files(spark, [str(chunk.path) for chunk in one.chunks], schema)
            content = Content(columns=one.wanted)
            corrections = Corrections.find(spark, one, MissedTicks(log=log, tick=Tick(0)), 0)
            again = partial(make_replica, spark, str(folder), one.relation, content, rows, Tick(1))
            kept = partial(keep_chunks, spark, str(folder), content, one, corrections, Tick(1))
            for what, make in (("written again", again), ("files kept", kept)):
                began, spent = time.perf_counter(), cpu_seconds(os.getpid(), but=postmaster)
                make().release()
                seconds, used = time.perf_counter() - began, cpu_seconds(os.getpid(), but=postmaster) - spent
                report.row(str(name), what, f"{seconds:.1f}", f"{1e6 * used / one.row_count:.2f}")
    shutil.rmtree(folder)


@contextmanager
def read(
    spark: SparkSession, resolved: ResolvedProject, settings: BootstrapSettings, way: str, postmaster: int
) -> Iterator[tuple[Cost, Mapping[RelationName, StagedRelation]]]:
    """Read all relations in one snapshot, and give what it took and what was read."""
    said = replace(resolved.project, settings=replace(resolved.project.settings, bootstrap=settings))
    source, relations = resolved.sources["sales"], resolved.followed("sales")
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    try:
        began, own, server = time.perf_counter(), cpu_seconds(os.getpid(), but=postmaster), cpu_seconds(postmaster)
        staged: dict[RelationName, StagedRelation] = {}
        with source.snapshot([relation.name for relation in relations]) as snapshot:
            tasks = (
                reading_by_tasks(spark, said, source, snapshot, print, spared_cores=0)
                if way == "tasks"
                else nullcontext()
            )
            with tasks as reading:
                for relation in relations:
                    wanted = relation.column_names
                    staged[relation.name] = stage_relation(
                        folder, source, snapshot, relation, wanted, WHOLE, ignore_event, settings, reading
                    )
        cost = Cost(
            seconds=time.perf_counter() - began,
            own_seconds=cpu_seconds(os.getpid(), but=postmaster) - own,
            server_seconds=cpu_seconds(postmaster) - server,
            rows=sum(one.row_count for one in staged.values()),
        )
        yield cost, staged
    finally:
        shutil.rmtree(folder)


def delay_logins(connection: psycopg.Connection, milliseconds: float) -> None:
    """Let every connection to the database take longer to be there."""
    connection.execute("DROP EVENT TRIGGER IF EXISTS slowly")
    if milliseconds:
        connection.execute(
            "CREATE OR REPLACE FUNCTION slowly() RETURNS event_trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN PERFORM pg_sleep({milliseconds / 1000}); END $$"
        )
        connection.execute("CREATE EVENT TRIGGER slowly ON login EXECUTE FUNCTION slowly()")


def cpu_seconds(root: int, *, but: int | None = None) -> float:
    """Return the processor time of a process and all that came of it, but for one of them and what came of that."""
    children: dict[int, list[int]] = defaultdict(list)
    spent: dict[int, float] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            said = entry.read_text()
        except OSError:  # it has ended
            continue
        pid, values = int(said.split(" ", 1)[0]), said.rpartition(")")[2].split()
        children[int(values[1])].append(pid)
        spent[pid] = sum(map(int, values[11:15])) / TICKS
    total, left = 0.0, [root]
    while left:
        pid = left.pop()
        if pid != but:
            total += spent.get(pid, 0.0)
            left += children[pid]
    return total


def parent(pid: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


if __name__ == "__main__":
    main()
