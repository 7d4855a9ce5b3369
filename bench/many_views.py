"""`python -m bench.many_views`: how long views take to compile, to be born together, to go on, and to catch up.

Sources are scripted, in memory, and rows are few: what is measured is what a view costs, whatever it holds.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from pyspark.sql import SparkSession

from bench.heavy_views import HEAVY, RELATIONS, small_views
from bench.report import Report
from headwater.engine.service.maintainer import Maintainer
from headwater.engine.service.start import start_maintainer
from headwater.model.keeping import AllGroupTables, Continuous
from headwater.model.project import DEFAULT_ALGORITHM, Project, Reading, RetainTicks, SourceDeclaration, ViewFile
from headwater.model.relation import Relation
from headwater.observe.events import ignore_event
from headwater.project.resolve import ResolvedProject, resolve_project
from headwater.sources.scripted import Changes, ScriptedSource, Values
from headwater.spark.types import SelectTypes
from headwater.views.compile.compile_view import compile_view
from headwater.warehouse.query import Warehouse

_WAIT_SECONDS = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.many_views", description=__doc__)
    parser.add_argument("--views", type=int, default=66, help="small views of one project")
    parser.add_argument("--batch-views", type=int, default=24, help="small views of the project that goes on")
    parser.add_argument("--ticks", type=int, default=200, help="transactions of a batch")
    options = parser.parse_args()

    from headwater.spark.session import spark_session  # noqa: PLC0415 - as the other benches do

    spark = spark_session()
    report = Report("many_views.md")
    report.begin("Many views", spark, "Scripted sources, few rows; Spark has just been started.")
    report.table("what", "seconds")
    texts = small_views(options.views)
    report.row(f"{len(texts)} small views understood, cold", f"{_resolve_seconds(spark, texts):.1f}")
    for name, seconds in (compiled := _compile_seconds(spark, HEAVY)).items():
        report.row(f"{name} compiled", f"{seconds:.2f}")
    report.row("worst of these", f"{max(compiled.values()):.2f}")
    other = _compile_seconds(
        spark, {name: text for name, text in small_views(2 * options.views).items() if name not in texts}
    )
    report.row(f"{len(other)} other small views, median", f"{statistics.median(other.values()):.3f}")
    with _maintained(spark, texts) as (maintainer, _):
        started = time.perf_counter()
        _settle(maintainer)
        report.row(f"{len(texts)} small views born", f"{time.perf_counter() - started:.1f}")
    with _maintained(spark, small_views(options.batch_views)) as (maintainer, source):
        _settle(maintainer)
        rng = random.Random(7)
        for number in range(4):
            started, jobs = time.perf_counter(), _job_count(maintainer)
            _commit(maintainer, source, rng, options.ticks)
            _settle(maintainer)
            report.row(
                f"batch {number + 1} of {options.ticks} ticks over {options.batch_views} views, "
                f"{_job_count(maintainer) - jobs} Spark jobs",
                f"{time.perf_counter() - started:.2f}",
            )
    report.write()


def _job_count(maintainer: Maintainer) -> int:
    commits = Warehouse.open(maintainer.warehouse.path).commits.read()
    return sum(one.record.statistics.spark_job_count for one in commits if one.record.statistics is not None)


def _compile_seconds(spark: SparkSession, texts: Mapping[str, str]) -> dict[str, float]:
    catalog = {relation.name: relation for relation in RELATIONS}
    seconds = {}
    for name, text in texts.items():
        started = time.perf_counter()
        compile_view(name, text, catalog, SelectTypes(spark=spark, view=name).columns)
        seconds[name] = time.perf_counter() - started
    return seconds


def _resolve_seconds(spark: SparkSession, texts: Mapping[str, str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        _resolved(spark, texts, Path(folder), _source())
        return time.perf_counter() - started


def _source() -> ScriptedSource:
    """Return a source whose relations have a few rows each."""
    source, rng = ScriptedSource("shop", RELATIONS), random.Random(5)
    source.commit({one.name: {_row(rng, one, key): 1 for key in range(1, 21)} for one in RELATIONS})
    return source


def _row(rng: random.Random, relation: Relation, key: int) -> Values:
    def value(kind: str) -> object:
        if kind == "string":
            return rng.choice("abcde")
        return Decimal(rng.randint(0, 9999)) / 100 if kind.startswith("decimal") else rng.randint(1, 20)

    return (key, *(value(one.type) for one in relation.columns[1:]))


def _change(rng: random.Random, source: ScriptedSource) -> Changes:
    """Return a transaction that replaces a row of a relation that small views read."""
    chosen = rng.choice(["store_sales", "item", "date_dim"])
    relation = next(one for one in RELATIONS if one.name.name == chosen)
    rows = source.database.state(relation.name, source.database.seen())
    old = rng.choice([row for row, count in rows.items() if count])
    return {relation.name: {old: -1, _row(rng, relation, int(str(old[0]))): 1}}


def _resolved(spark: SparkSession, texts: Mapping[str, str], folder: Path, source: ScriptedSource) -> ResolvedProject:
    said = SourceDeclaration(
        name=source.name, url_text="", statement_timeout_seconds=60.0, probe_connections=4, declared_in="bench"
    )
    views = tuple(
        ViewFile(
            name=name,
            sql=sql,
            file=folder / f"{name}.sql",
            guarantee=None,
            algorithm=DEFAULT_ALGORITHM,
            maintenance=None,
            refresh=Continuous(),
            group_tables=AllGroupTables(),
        )
        for name, sql in texts.items()
    )
    project = Project(
        name="bench",
        file=folder / "headwater.toml",
        warehouse=str(folder / "warehouse"),
        retention=RetainTicks(count=1_000_000),
        batch_ticks=1_000,
        batch_interval_seconds=0.0,
        default_reading=Reading.REPLICA,
        readings={},
        sources=(said,),
        views=views,
    )
    return resolve_project(project, spark, connect=lambda _, __: source)


@contextmanager
def _maintained(spark: SparkSession, texts: Mapping[str, str]) -> Iterator[tuple[Maintainer, ScriptedSource]]:
    with tempfile.TemporaryDirectory() as folder:
        source = _source()
        maintainer = start_maintainer(spark, _resolved(spark, texts, Path(folder), source), ignore_event)
        try:
            maintainer.begin()
            yield maintainer, source
        finally:
            maintainer.close()
            maintainer.release()


def _commit(maintainer: Maintainer, source: ScriptedSource, rng: random.Random, count: int) -> None:
    positions = [source.commit(_change(rng, source)) for _ in range(count)]
    maintainer.acceptor.wait_for(positions[-1], _WAIT_SECONDS)


def _settle(maintainer: Maintainer) -> None:
    while maintainer.step() or maintainer.is_bringing_in():
        maintainer.acceptor.wait_for_news(0.005)
    stopped = {view.name: view.stopped for view in maintainer.views.values() if view.stopped is not None}
    assert not stopped, f"views stopped: {stopped}"
    assert not maintainer.unborn(), f"views were not born: {maintainer.unborn()}"


if __name__ == "__main__":
    main()
