"""`python -m bench.tpch_views`: each TPC-H query as a view, a batch of changes against Spark computing it anew.

Writes bench/results/tpch.md and tpch.png. Both sides are warm; recomputation reads Parquet files of whole tables, with
just the columns it needs, and writes its result, so nothing of what it would have to fetch from sources is counted.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import psycopg
from pyspark.sql import SparkSession

from bench import tpch
from bench.measure import BatchFigures, measure_batches
from bench.refresh import Refresh
from bench.setting import Setting, servers, setting
from headwater.explain.costs import explain_cost
from headwater.model.relation import RelationName
from headwater.views.laws.join import renamed_sql

RESULTS = Path(__file__).parent / "results"
QUERIES = Path(__file__).parents[1] / "tests" / "tpch" / "queries"
SHARES = (0.0001, 0.001, 0.01, 0.1)
WARM_BATCHES = 10
MEASURED_ONCE = 50_000
"""Changed rows of batches that are measured just once."""
MOST_TRIES = 5
"""How often batches are drawn again if they change nothing that the view reads."""
PLACES = {table: source for source, tables in tpch.SOURCES.items() for table in tables}


@dataclass(frozen=True)
class ViewFigures:
    """One view at one scale: seconds to compute it anew, and a batch for each share of changed rows."""

    view: str
    scale: float
    recompute_seconds: float
    batches: Mapping[float, BatchFigures]
    told: Mapping[float, bool]
    """Whether `explain` says, after batches of this size, that recomputing would be faster."""
    estimated_seconds: float
    """What `explain` takes recomputing for."""
    codes: tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.tpch_views", description=__doc__)
    parser.add_argument("--scale", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--shares", type=float, nargs="+", default=list(SHARES), help="changed rows of all rows")
    parser.add_argument("--views", nargs="+", default=sorted(file.stem for file in QUERIES.glob("*.sql")))
    parser.add_argument("--most-rows", type=int, default=1_000_000, help="changed rows of the largest batch measured")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "8g")

    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the memory is set

    spark = spark_session()
    found: list[ViewFigures] = []
    for scale in options.scale:
        folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
        try:
            tables = whole_tables(spark, scale, folder)
            with servers(scale, PLACES) as urls:
                for view in options.views:
                    recomputed = measure_recompute(spark, _sql(view), tables, folder / "result", options.repeats)
                    found.append(_measure(spark, urls, view, scale, recomputed, options))
                    print(_row(found[-1], options.shares), flush=True)
                    write(spark, found, options.shares)
        finally:
            shutil.rmtree(folder)


def _sql(view: str) -> str:
    return (QUERIES / f"{view}.sql").read_text()


def whole_tables(spark: SparkSession, scale: float, folder: Path) -> dict[RelationName, str]:
    """Write every table as Parquet, once, and return the names by which Spark reads them."""
    names = {}
    for table, file in tpch.generate(scale, tpch.cache_folder() / str(scale)).items():
        spark.read.csv(str(file), schema=tpch.spark_columns(table)).write.parquet(str(folder / table))
        spark.read.parquet(str(folder / table)).createOrReplaceTempView(f"whole_{table}")
        names[RelationName(source=PLACES[table], name=table)] = f"whole_{table}"
    return names


def measure_recompute(
    spark: SparkSession, sql: str, tables: Mapping[RelationName, str], result: Path, repeats: int
) -> float:
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        spark.sql(renamed_sql(sql, tables)).write.mode("overwrite").parquet(str(result))
        times.append(time.perf_counter() - started)
    return median(times[1:])


def _measure(
    spark: SparkSession,
    urls: dict[str, str],
    view: str,
    scale: float,
    recompute_seconds: float,
    options: argparse.Namespace,
) -> ViewFigures:
    with setting(spark, urls, "replica", {view: _sql(view)}) as place:
        refresh = Refresh(11, {name: psycopg.connect(url, autocommit=True) for name, url in urls.items()})
        smallest = round(options.shares[0] * refresh.row_count)
        measure_batches(place, smallest, WARM_BATCHES, refresh.take)
        batches, told = {}, {}
        for share in options.shares:
            rows = round(share * refresh.row_count)
            if rows > options.most_rows:
                continue
            batches[share] = _touching(place, refresh, rows, options.repeats if rows < MEASURED_ONCE else 1)
            explained = explain_cost(place.resolved, view)
            told[share] = explained.is_recomputing_faster
        codes = tuple(sorted({reason.code for reason in place.resolved.views[view].view.reasons}))
    return ViewFigures(view, scale, recompute_seconds, batches, told, explained.recompute_seconds, codes)


def _touching(place: Setting, refresh: Refresh, rows: int, repeats: int) -> BatchFigures:
    """Return the median of batches in which something changes that the view reads: in small ones often nothing does."""
    for _ in range(MOST_TRIES):
        place.ear.computed.clear()
        measured = measure_batches(place, rows, repeats, refresh.take)
        if len(place.ear.computed) > repeats // 2:
            break
    return measured


def write(spark: SparkSession, found: list[ViewFigures], shares: list[float]) -> None:
    """Write what is measured so far: the table, and the chart."""
    RESULTS.mkdir(exist_ok=True)
    header = [
        "scale",
        "view",
        "recompute ms (estimate)",
        *(f"{share:.2%} changed: batch ms (× faster)" for share in shares),
    ]
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, Spark {spark.version}"
    taken = f"Medians, warm; of {MEASURED_ONCE:,} changed rows or more one batch."
    lines = [
        f"# TPC-H views: a batch of changes against Spark recompute, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "",
        f"{machine}; load now: {os.getloadavg()[0]:.1f}. {taken}",
        "What is computed anew within a view is named by its code; see `headwater explain`. Where `explain` said after",
        "a batch that recomputing would be faster, there is an R; its estimate of recomputing is in brackets.",
        "",
        _right(found),
        "",
        f"| {' | '.join(header)} | anew |",
        "|---" * (len(header) + 1) + "|",
        *(_row(figures, shares) for figures in found),
        "",
        "![speed-up per view](tpch.png)",
    ]
    (RESULTS / "tpch.md").write_text("\n".join(lines) + "\n")
    draw(found, shares, RESULTS / "tpch.png")


def _row(figures: ViewFigures, shares: list[float]) -> str:
    whole, estimate = figures.recompute_seconds, 1000 * figures.estimated_seconds
    cells = [
        f"{batch.seconds * 1000:.0f} ({whole / batch.seconds:.1f}){' R' if figures.told[share] else ''}"
        if (batch := figures.batches.get(share))
        else "–"
        for share in shares
    ]
    codes = ", ".join(figures.codes)
    return (
        f"| {figures.scale:g} | {figures.view} | {whole * 1000:.0f} ({estimate:.0f}) | {' | '.join(cells)} | {codes} |"
    )


def _right(found: list[ViewFigures]) -> str:
    """Return how often `explain` was right about which is faster."""
    said = [
        (figures.told[share], batch.seconds > figures.recompute_seconds)
        for figures in found
        for share, batch in figures.batches.items()
    ]
    right, faster = sum(told is slower for told, slower in said), sum(slower for _, slower in said)
    return f"Recomputing was faster in {faster} of {len(said)}; `explain` told which one is in {right} of them."


def draw(found: list[ViewFigures], shares: list[float], file: Path) -> None:
    """Draw how many times faster a batch is than computing anew, one mark per share of changed rows."""
    import matplotlib as mpl  # noqa: PLC0415 - only a chart needs it

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above
    from matplotlib import ticker  # noqa: PLC0415 - as above

    scales = list(dict.fromkeys(figures.scale for figures in found))
    figure, panels = plt.subplots(len(scales), figsize=(11, 4.5 * len(scales)), layout="constrained", squeeze=False)
    for scale, axes in zip(scales, panels[:, 0], strict=True):
        shown = [figures for figures in found if figures.scale == scale]
        places = {figures.view: place for place, figures in enumerate(shown)}
        for share, marker in zip(shares, "osD^", strict=False):
            speed = {
                places[figures.view]: figures.recompute_seconds / batch.seconds
                for figures in shown
                if (batch := figures.batches.get(share))
            }
            axes.plot(list(speed), list(speed.values()), marker, label=f"{share:.2%} of all rows changed")
        axes.axhline(1, color="grey", linewidth=1)
        axes.set_yscale("log")
        axes.set_xticks(list(places.values()), list(places))
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
        axes.set_ylabel("times faster than recompute")
        axes.set_title(f"TPC-H views, scale factor {scale:g}: a batch of changes against Spark recompute")
    panels[0, 0].legend(ncols=len(shares), loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False)
    figure.savefig(file, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
