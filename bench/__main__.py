"""`python -m bench`: everything in one run, printed as it is measured and written to bench/results/latest.md."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from bench.measure import (
    BatchFigures,
    BusyWriter,
    measure_batches,
    measure_freshness,
    measure_recompute,
    peak_megabytes,
    warm_until_flat,
)
from bench.report import Report
from bench.setting import servers, setting

COLUMNS = (
    "transactions",
    "changed rows",
    "view rows",
    "batch ms",
    "of recompute",
    "rows/s",
    "snapshot ms",
    "ask ms",
    "law on Spark ms",
    "commit ms",
    "capture and log ms",
    "of it log ms",
    "probed relations",
    "rows asked",
    "kB asked",
    "Spark jobs",
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--scale", type=float, nargs="+", default=[0.1, 1.0], help="TPC-H scale factors")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 100, 1000, 10000], help="transactions in a batch")
    parser.add_argument("--readings", nargs="+", default=["probe", "replica"])
    parser.add_argument("--repeats", type=int, default=9, help="batches of each size (a third for the largest)")
    parser.add_argument("--freshness-seconds", type=float, default=20)
    options = parser.parse_args()
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "8g")

    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the memory is set

    spark = spark_session()
    report = Report("latest.md")
    about = "Medians; least and most in brackets. An update counts as two changed rows."
    report.begin("Headwater bench", spark, about)
    for scale in options.scale:
        with servers(scale) as urls:
            _measure_scale(report, spark, scale, urls, options)
        report.write()


def _measure_scale(
    report: Report, spark: SparkSession, scale: float, urls: dict[str, str], options: argparse.Namespace
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    whole, least, most = measure_recompute(spark, scale, folder, 6)
    shutil.rmtree(folder)
    report.say()
    report.say(f"## Scale factor {scale:g}")
    report.say()
    report.say(
        f"Full Spark recompute with Parquet write, warm: {whole * 1000:.0f} ms ({least * 1000:.0f}–{most * 1000:.0f})"
    )
    for reading in options.readings:
        with setting(spark, urls, reading) as place:
            report.say()
            report.say(f"### reading = {reading!r}: bootstrap {place.bootstrap_seconds:.1f} s")
            report.say()
            warm = warm_until_flat(place)
            report.say(
                f"The first batch took {warm.cold_seconds * 1000:.0f} ms; after {warm.batch_count} batches of 20 "
                f"transactions they took {warm.warm_seconds * 1000:.0f} ms and no longer became faster."
            )
            report.table(*COLUMNS)
            for size in options.sizes:
                repeats = options.repeats if size < 10_000 else max(3, options.repeats // 3)
                with BusyWriter(urls):
                    figures = measure_batches(place, size, repeats, place.stream.take)
                report.say(_row(str(size), figures, whole))
            hot = measure_batches(place, 2000, 3, place.stream.hot)
            report.say(_row("2000 on one hot key", hot, whole))
            fresh = measure_freshness(place, options.freshness_seconds, 100)
            report.say()
            report.say(
                f"Freshness at {fresh.rate:.0f} transactions/s, from the source's commit to a readable tick: median "
                f"{fresh.median_seconds * 1000:.0f} ms, 95 % within {fresh.p95_seconds * 1000:.0f} ms "
                f"({fresh.transactions} transactions)"
            )
            report.say(f"Peak memory so far, Python and JVM: {peak_megabytes()} MB; load now: {os.getloadavg()[0]:.1f}")


def _row(name: str, f: BatchFigures, whole: float) -> str:
    ms = {part: f"{f.parts.get(part, 0) * 1000:.0f}" for part in ("snapshot", "probe", "spark", "commit")}
    low, high = f.spread
    return (
        f"| {name} | {f.changed_rows} | {f.view_rows} | {f.seconds * 1000:.0f} ({low * 1000:.0f}–{high * 1000:.0f}) "
        f"| {f.seconds / whole:.2f} | {f.rows_per_second:.0f} | {ms['snapshot']} | {ms['probe']} | {ms['spark']} "
        f"| {ms['commit']} | {f.capture_seconds * 1000:.0f} | {f.log_seconds * 1000:.0f} "
        f"| {f.probe_count:.0f} | {f.answer_rows:.0f} | {f.answer_bytes / 1024:.0f} | {f.spark_jobs:.0f} |"
    )


if __name__ == "__main__":
    main()
