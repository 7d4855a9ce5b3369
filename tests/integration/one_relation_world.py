"""A project over one relation of a scripted source, and a maintainer that is stepped by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random

from pyspark.sql import SparkSession

from headwater.engine.service.maintainer import Maintainer
from headwater.engine.service.start import start_maintainer
from headwater.model.guarantee import Guarantee
from headwater.model.keeping import Continuous, Maintenance
from headwater.model.project import DEFAULT_ALGORITHM, Project, Reading, RetainTicks, SourceDeclaration, ViewFile
from headwater.model.relation import Column, Relation, RelationName
from headwater.model.settings import DEFAULTS, Settings
from headwater.observe.events import ignore_event
from headwater.project.resolve import ResolvedProject, resolve_project
from headwater.sources.scripted import ScriptedSource
from headwater.sources.source import shown_positions

R = RelationName(source="shop", name="r")
RELATION = Relation(
    name=R, columns=tuple(Column(name=name, type="int", native="int4") for name in ("k", "x", "y")), key=("k",)
)


def resolved(
    spark: SparkSession,
    folder: Path,
    source: ScriptedSource,
    views: Mapping[str, str],
    batch_ticks: int = 1_000,
    settings: Settings = DEFAULTS,
) -> ResolvedProject:
    """Understand views by their names and texts; all show every tick, and one called "recomputed" is."""
    said = SourceDeclaration(
        name="shop", url_text="", statement_timeout_seconds=60.0, probe_connections=4, declared_in="test"
    )
    files = tuple(
        ViewFile(
            name=name,
            sql=sql,
            file=folder / f"{name}.sql",
            guarantee=Guarantee.COMPLETE,
            algorithm=DEFAULT_ALGORITHM,
            maintenance=Maintenance.RECOMPUTE_SELF if name == "recomputed" else None,
            refresh=Continuous(),
        )
        for name, sql in views.items()
    )
    project = Project(
        name="catch_up",
        file=folder / "headwater.toml",
        warehouse=str(folder / "warehouse"),
        retention=RetainTicks(count=1_000_000),
        batch_ticks=batch_ticks,
        batch_interval_seconds=0.0,
        default_reading=Reading.REPLICA,
        readings={},
        sources=(said,),
        views=files,
        settings=settings,
    )
    return resolve_project(project, spark, connect=lambda _, __: source)


@contextmanager
def stepped(spark: SparkSession, meant: ResolvedProject) -> Iterator[Maintainer]:
    maintainer = start_maintainer(spark, meant, ignore_event)
    try:
        maintainer.begin()
        yield maintainer
    finally:
        maintainer.close()
        maintainer.release()


def settle(maintainer: Maintainer) -> None:
    shop = maintainer.resolved.sources["shop"]
    maintainer.acceptor.wait_for(shown_positions(shop, maintainer.resolved.followed_names("shop")), 60)
    while maintainer.step() or maintainer.is_bringing_in():
        maintainer.acceptor.wait_for_news(0.005)
    assert not maintainer.unborn()
    assert not [view.stopped for view in maintainer.views.values() if view.stopped is not None]


def write(source: ScriptedSource, rng: Random, count: int) -> None:
    """Commit transactions that each put a row in the place of another."""
    for _ in range(count):
        held = source.database.state(R, source.database.seen((R,)))
        old = rng.choice(sorted(row for row, times in held.items() if times))
        new = (old[0], rng.randint(0, 3), rng.randint(0, 9))
        source.commit({R: {old: -1, new: 1}} if new != old else {})


def started_source() -> ScriptedSource:
    source = ScriptedSource("shop", (RELATION,))
    source.commit({R: {(k, k % 3, k): 1 for k in range(20)}})
    return source
