"""`python -m bench.tracing`: how long it takes to trace one row of a two-level view, by what is kept for it.

Of each way many rows are traced for warming up, and then a few others, each once, by `Headwater.trace`: what a Python
program calls, from the condition to the source rows. Meanwhile a writer changes lineitems, and the view has not
come to that: what is asked of sources has to be brought back. All ways have to find the same rows.
Writes bench/results/tracing.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from pyspark.sql import SparkSession

from bench.measure import BusyWriter, job_number
from bench.report import Report
from bench.setting import Setting, keep_text, project, servers, setting
from bench.stream import apply
from bench.traces import draw_conditions, time_traces
from headwater.api.session import Headwater, open_project
from headwater.lineage.result import TraceResult
from headwater.model.keeping import LineageKind, LineageWish
from headwater.project.resolve import resolve_project
from headwater.views.steps.keep_lineage import joins_with_lineage

VIEW = """
SELECT c_nationkey, c_mktsegment, COUNT(*) AS customers, SUM(revenue) AS revenue
FROM (
    SELECT c.c_custkey, c.c_nationkey, c.c_mktsegment, SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue
    FROM crm.customer c
    JOIN sales.orders o ON o.o_custkey = c.c_custkey
    JOIN sales.lineitem l ON l.l_orderkey = o.o_orderkey
    GROUP BY c.c_custkey, c.c_nationkey, c.c_mktsegment
) AS customers
WHERE revenue > 4000000
GROUP BY c_nationkey, c_mktsegment
"""
"""What good customers are worth, by nation and segment."""

WAYS = {"lineage": (LineageKind.VIEW,), "split": (LineageKind.SPLIT,), "nothing": ()}
"""The views of the project without replicas, and what is kept for each; all have the same text."""

NAMES = {
    "lineage": "a lineage view (LV)",
    "split": "split lineage tables (SLT)",
    "replicas": "replicas",
    "nothing": "nothing",
}
COLUMNS = ("kept", "warm ms", "cold ms", "traced rows", "source rows", "read from", "Spark jobs", "bootstrap s")
CHANGES = 200
PAUSE_SECONDS = 1.0
WARMING = 3
"""So many times as many rows as are measured are traced before."""


@dataclass(frozen=True)
class TraceFigures:
    """Several traces of one row each, by one way; seconds, and what the median one found."""

    cold_seconds: float
    seconds: float
    spread: tuple[float, float]
    source_rows: int
    origins: str
    jobs: float
    found: Sequence[TraceResult]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.tracing", description=__doc__)
    parser.add_argument("--scale", type=float, nargs="+", default=[0.1, 1.0], help="TPC-H scale factors")
    parser.add_argument("--rows", type=int, default=9, help="rows that are traced by each way")
    options = parser.parse_args()
    os.environ.setdefault("SPARK_DRIVER_MEMORY", "8g")

    from headwater.spark.session import spark_session  # noqa: PLC0415 - after the memory is set

    spark = spark_session()
    report = Report("tracing.md")
    about = (
        "Medians of warm traces of one row each; least and most in brackets. A writer goes on meanwhile, and nobody "
        "merges the small files of the change log: what sources answer is brought back over more and more of them."
    )
    report.begin("Tracing one row of a two-level view", spark, about)
    for scale in options.scale:
        with servers(scale) as urls:
            report.say()
            report.say(f"## Scale factor {scale:g}")
            report.table(*COLUMNS)
            with setting(spark, urls, "probe", dict.fromkeys(WAYS, VIEW), _keep(spark, urls)) as place:
                _require_same(_measure(report, place, tuple(WAYS), options.rows))
            with setting(spark, urls, "replica", {"replicas": VIEW}) as place:
                _measure(report, place, ("replicas",), options.rows)
        report.write()


def _keep(spark: SparkSession, urls: Mapping[str, str]) -> str:
    """Return the settings that let each way keep what it is about."""
    with project(urls, "probe", {"nothing": VIEW}) as said:
        [join, *_] = joins_with_lineage(resolve_project(said, spark).views["nothing"].view)
    wishes = {way: [LineageWish(kind=kind, of=join.name) for kind in kinds] for way, kinds in WAYS.items()}
    return "".join(keep_text(way, wished) for way, wished in wishes.items())


def _measure(report: Report, place: Setting, ways: Sequence[str], count: int) -> list[TraceFigures]:
    """Let the views fall behind a little, and trace."""
    place.maintainer.upkeep.stop()  # else what is kept is written anew some time while it is read
    apply(place.connections, place.stream.take(CHANGES))
    place.catch_up()
    place.maintain()
    opened = open_project(place.resolved.project.folder)
    conditions = draw_conditions(opened.view(ways[0]).arrow(), (1 + WARMING) * count)
    found = []
    for way in ways:
        with BusyWriter(place.urls, PAUSE_SECONDS):
            figures = _trace(opened, place.spark, way, conditions[:-count], conditions[-count:])
        report.row(*_cells(way, figures, place.bootstrap_seconds))
        found.append(figures)
    return found


def _trace(
    opened: Headwater, spark: SparkSession, way: str, warming: Sequence[str], conditions: Sequence[str]
) -> TraceFigures:
    def trace(condition: str) -> TraceResult:
        return opened.trace(way, where=condition)

    cold, *_ = time_traces(trace, warming)
    jobs = job_number(spark)
    traces = time_traces(trace, conditions)
    seconds = sorted(one.seconds for one in traces)
    return TraceFigures(
        cold_seconds=cold.seconds,
        seconds=median(seconds),
        spread=(seconds[0], seconds[-1]),
        source_rows=round(median(one.source_rows for one in traces)),
        origins=", ".join(sorted({found.origin.value for one in traces for found in one.result.relations})),
        jobs=(job_number(spark) - jobs) / len(traces),
        found=[one.result for one in traces],
    )


def _require_same(ways: Sequence[TraceFigures]) -> None:
    """Hold that all ways found the same rows."""
    first, *others = [[_rows(one) for one in figures.found] for figures in ways]
    assert all(other == first for other in others), "all ways find the same source rows"


def _rows(result: TraceResult) -> dict[str, list[str]]:
    return {
        one.relation: sorted(map(repr, one.rows.select(sorted(one.rows.column_names)).to_pylist()))
        for one in result.relations
    }


def _cells(way: str, f: TraceFigures, bootstrap_seconds: float) -> tuple[str, ...]:
    low, high = f.spread
    return (
        NAMES[way],
        f"{f.seconds * 1000:.0f} ({low * 1000:.0f}–{high * 1000:.0f})",
        f"{f.cold_seconds * 1000:.0f}",
        str(len(f.found)),
        str(f.source_rows),
        f.origins,
        f"{f.jobs:.0f}",
        f"{bootstrap_seconds:.0f}",
    )


if __name__ == "__main__":
    main()
