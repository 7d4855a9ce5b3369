"""What is measured: batches of many sizes, recomputation, a hot key, and how fresh a view is under a steady load."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Self

import psycopg
from pyspark.sql import SparkSession

from bench import tpch
from bench.setting import PLACES, Setting
from bench.stream import Change, apply

LEAST_WARM_GROUPS, MOST_WARM_GROUPS = 12, 20
"""Of ten batches each: a Java machine goes on to compile what Spark runs for a hundred of them."""
WARM_RECOMPUTES = 6


@dataclass(frozen=True)
class BatchFigures:
    """The median batch of one size; seconds, and what it took."""

    transactions: int
    changed_rows: int
    view_rows: int
    seconds: float
    spread: tuple[float, float]
    parts: dict[str, float]
    capture_seconds: float
    log_seconds: float
    probe_count: float
    answer_rows: float
    answer_bytes: float
    spark_jobs: float

    @property
    def rows_per_second(self) -> float:
        return self.changed_rows / self.seconds


def job_number(spark: SparkSession) -> int:
    """Return how many Spark jobs have run so far, whoever started them."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())  # type: ignore[union-attr]  # noqa: SLF001 - a status tracker tells of one group at a time


def measure_batches(
    setting: Setting, transactions: int, repeats: int, make: Callable[[int], list[Change]]
) -> BatchFigures:
    """Apply transactions, let the log have them, and time the batch that brings the view up to date."""
    runs = []
    for _ in range(repeats):
        changes = make(transactions)
        rows = apply(setting.connections, changes)
        committed = time.perf_counter()
        logged_before = setting.maintainer.acceptor.append_seconds
        setting.catch_up()
        captured = time.perf_counter()
        setting.ear.commits.clear()
        setting.ear.probes.clear()
        jobs = job_number(setting.spark)
        started = time.perf_counter()
        setting.maintain()
        seconds = time.perf_counter() - started
        commits = [commit for _, commit in setting.ear.commits]
        parts: dict[str, float] = {}
        for commit in commits:
            for part, spent in commit.seconds.items():
                parts[part] = parts.get(part, 0.0) + spent
        runs.append(
            BatchFigures(
                transactions=transactions,
                changed_rows=rows,
                view_rows=sum(commit.row_count for commit in commits),
                seconds=seconds,
                spread=(seconds, seconds),
                parts=parts,
                capture_seconds=captured - committed,
                log_seconds=setting.maintainer.acceptor.append_seconds - logged_before,
                probe_count=len(setting.ear.probes),
                answer_rows=sum(probe.row_count for probe in setting.ear.probes),
                answer_bytes=sum(probe.byte_count for probe in setting.ear.probes),
                spark_jobs=job_number(setting.spark) - jobs,
            )
        )
    runs.sort(key=lambda run: run.seconds)
    middle = runs[len(runs) // 2]
    return BatchFigures(**{**middle.__dict__, "spread": (runs[0].seconds, runs[-1].seconds)})


@dataclass(frozen=True)
class WarmUp:
    """How many batches it took until they no longer became faster; the first one's seconds, and the last ones'."""

    batch_count: int
    cold_seconds: float
    warm_seconds: float


def warm_until_flat(setting: Setting) -> WarmUp:
    """Maintain batches of 20 transactions, ten at a time, until ten are not a tenth faster than the ten before."""
    medians: list[float] = []
    cold = 0.0
    while len(medians) < MOST_WARM_GROUPS and (len(medians) < LEAST_WARM_GROUPS or medians[-1] < 0.9 * medians[-2]):
        group = [measure_batches(setting, 20, 1, setting.stream.take).seconds for _ in range(10)]
        cold = cold or group[0]
        medians.append(median(group))
    return WarmUp(batch_count=10 * len(medians), cold_seconds=cold, warm_seconds=medians[-1])


def measure_recompute(spark: SparkSession, scale: float, folder: Path, repeats: int) -> tuple[float, float, float]:
    """Run the view's SQL over Parquet files of the whole tables and write the result; (median, least, most) seconds."""
    files = tpch.generate(scale, tpch.cache_folder() / str(scale))
    for table in PLACES:
        columns = spark.read.csv(str(files[table]), schema=tpch.spark_columns(table))
        columns.select(*_NEEDED[table]).write.mode("overwrite").parquet(str(folder / table))
        spark.read.parquet(str(folder / table)).createOrReplaceTempView(f"whole_{table}")
    sql = RECOMPUTE
    times = []
    for _ in range(WARM_RECOMPUTES + repeats):
        started = time.perf_counter()
        spark.sql(sql).write.mode("overwrite").parquet(str(folder / "result"))
        times.append(time.perf_counter() - started)
    warm = times[WARM_RECOMPUTES:]
    return median(warm), min(warm), max(warm)


RECOMPUTE = """
SELECT c.c_custkey, c.c_mktsegment, o.o_orderkey, o.o_orderdate, l.l_linenumber,
       l.l_extendedprice * (1 - l.l_discount) AS revenue
FROM whole_customer c JOIN whole_orders o ON c.c_custkey = o.o_custkey
JOIN whole_lineitem l ON l.l_orderkey = o.o_orderkey
WHERE c.c_mktsegment <> 'HOUSEHOLD' AND o.o_orderdate >= DATE '1995-01-01'
"""
_NEEDED = {
    "customer": ("c_custkey", "c_mktsegment"),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate"),
    "lineitem": ("l_orderkey", "l_linenumber", "l_extendedprice", "l_discount"),
}


@dataclass(frozen=True)
class Freshness:
    """Seconds from a source's commit to a commit of the warehouse that has it."""

    transactions: int
    rate: float
    median_seconds: float
    p95_seconds: float


def measure_freshness(setting: Setting, seconds: float, rate: int) -> Freshness:
    """Let transactions arrive steadily while the maintainer runs, and time each from commit to readable."""
    changes = setting.stream.take(int(seconds * rate))
    committed: list[tuple[str, int, float]] = []
    writer = threading.Thread(target=_write_steadily, args=(setting.urls, changes, rate, committed))
    first = setting.maintainer.log.last_tick
    setting.ear.commits.clear()
    writer.start()
    while writer.is_alive():
        if not setting.maintainer.step():
            setting.maintainer.acceptor.wait_for_news(0.05)
    setting.catch_up()
    setting.maintain()
    writer.join()
    ticks = {
        (transaction.source, transaction.identity): tick
        for tick, transaction in setting.maintainer.log.transactions(None, first, setting.maintainer.log.last_tick)
    }
    waits = sorted(
        next(at for at, commit in setting.ear.commits if commit.hi >= ticks[source, identity]) - when
        for source, identity, when in committed
        if (source, identity) in ticks
    )
    return Freshness(
        transactions=len(waits),
        rate=len(changes) / (committed[-1][2] - committed[0][2]),
        median_seconds=waits[len(waits) // 2],
        p95_seconds=waits[int(0.95 * len(waits))],
    )


def _write_steadily(
    urls: dict[str, str], changes: list[Change], rate: int, committed: list[tuple[str, int, float]]
) -> None:
    connections = {name: psycopg.connect(url) for name, url in urls.items()}
    started = time.perf_counter()
    for number, change in enumerate(changes):
        ahead = started + number / rate - time.perf_counter()
        if ahead > 0:
            time.sleep(ahead)
        connection = connections[change.source]
        with connection.pipeline():
            for statement, values in change.statements:
                connection.execute(statement, values)
            identity = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
            connection.commit()
        assert identity is not None
        committed.append((change.source, identity[0], time.time()))
    for connection in connections.values():
        connection.close()


class BusyWriter:
    """Changes a few rows all the time, so that every probe meets changes it must be rebased over."""

    def __init__(self, urls: dict[str, str], pause_seconds: float = 0.02) -> None:
        self._urls = urls
        self._pause = pause_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._urls["sales"], autocommit=True) as connection:
            while not self._stop.wait(self._pause):
                self.count += 1
                connection.execute(
                    "UPDATE lineitem SET l_discount = %s WHERE l_orderkey = %s AND l_linenumber = 1",
                    ((self.count % 11) / 100, 1 + self.count % 7),
                )


def peak_megabytes() -> int:
    """Return the largest resident memory so far of this process and its children (the JVM), together."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields["Name"].strip() == "java" or status.parent.name == "self" or _is_us(status.parent.name):
            total += int(fields.get("VmHWM", "0 kB").split()[0])
    return total // 1024


def _is_us(process: str) -> bool:
    return process == Path("/proc/self").resolve().name
