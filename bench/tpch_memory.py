"""`python -m bench.tpch_memory`: all 22 TPC-H queries as views of one project, within little memory.

What the maintainer's Python process has of its own (mapped files are not) is sampled while all views are made and then
brought forward by batches of changes. At the end each view is compared with what Spark computes anew from the rows of
the databases. Writes bench/results/tpch_memory.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

from bench import tpch
from bench.large import Memory, own_megabytes
from bench.refresh import Refresh
from bench.report import Report
from bench.setting import Setting, servers, setting
from bench.stream import apply
from bench.tpch_views import PLACES, QUERIES
from headwater.model.relation import RelationName
from headwater.views.laws.join import renamed_sql

SHARES = (0.0001, 0.001, 0.01)


def dump(urls: dict[str, str], folder: Path) -> dict[str, Path]:
    """Write every table of the servers as it is now."""
    files = {}
    for table, source in PLACES.items():
        files[table] = folder / f"{table}.csv"
        copied = f"COPY {table} TO STDOUT (FORMAT csv)"
        with psycopg.connect(urls[source]) as connection, connection.cursor().copy(copied) as rows:
            files[table].write_bytes(b"".join(rows))
    return files


def wrong_views(spark: SparkSession, place: Setting, urls: dict[str, str], texts: dict[str, str]) -> list[str]:
    """Return the views that do not show what Spark computes anew from the rows of the databases."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as name:
        names = {}
        for table, file in dump(urls, Path(name)).items():
            frame = spark.read.csv(str(file), schema=tpch.spark_columns(table), enforceSchema=True)
            frame.createOrReplaceTempView(f"now_{table}")
            names[RelationName(source=PLACES[table], name=table)] = f"now_{table}"
        wrong = []
        for view, sql in texts.items():
            live = place.maintainer.views[view]
            shown = live.table.state_dataframe(spark, live.frontier)
            right = spark.sql(renamed_sql(sql, names))
            shown = shown.select(*right.columns)
            if shown.exceptAll(right).count() or right.exceptAll(shown).count():
                wrong.append(view)
        return wrong


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.tpch_memory", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--memory", default="1 GB")
    parser.add_argument("--java", default="3g")
    parser.add_argument("--views", nargs="+", default=sorted(file.stem for file in QUERIES.glob("*.sql")))
    options = parser.parse_args()
    os.environ["SPARK_DRIVER_MEMORY"] = options.java

    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the memory is set

    spark = spark_session()
    report = Report("tpch_memory.md")
    about = f"Scale factor {options.scale:g}, {len(options.views)} views, Java {options.java}, Python {options.memory}."
    report.begin("All TPC-H views within little memory", spark, about)
    texts = {view: (QUERIES / f"{view}.sql").read_text() for view in options.views}
    idle = own_megabytes()
    memory = f'memory = "{options.memory}"\n'
    with ExitStack() as opened:
        urls = opened.enter_context(servers(options.scale, PLACES))
        with Memory() as made:
            place = opened.enter_context(setting(spark, urls, "replica", texts, memory))
        report.say()
        report.say(
            f"All views made in {place.bootstrap_seconds:.0f} s, with at most {made.most - idle:.0f} MB above idle."
        )
        refresh = Refresh(5, place.connections)
        report.table("changed rows", "of all", "batches s", "MB above idle at most", "threads")
        for share in SHARES:
            rows = apply(place.connections, refresh.take(round(share * refresh.row_count)))
            with Memory() as computing:
                place.catch_up()
                started = time.perf_counter()
                place.maintain()
                seconds = time.perf_counter() - started
            held, threads = computing.most - idle, threading.active_count()
            report.row(f"{rows:,}", f"{share:.2%}", f"{seconds:.1f}", f"{held:.0f}", str(threads))
        wrong = wrong_views(spark, place, urls, texts)
        report.say()
        report.say(
            f"Views that differ from what Spark computes anew from the databases' rows: {len(wrong)} {wrong or ''}"
        )
    report.write()
    assert not wrong


if __name__ == "__main__":
    main()
