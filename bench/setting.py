"""PostgreSQL servers with TPC-H rows, a project with one join view or others, and a maintainer stepped by hand."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import psycopg
from pyspark.sql import SparkSession

from bench import tpch
from bench.stream import Stream
from headwater.engine.service.maintainer import Maintainer
from headwater.engine.service.start import start_maintainer
from headwater.model.keeping import LineageWish
from headwater.model.project import Project
from headwater.observe.events import BatchCommitted, Event, ProbeAnswered, ViewComputed
from headwater.project.file import load
from headwater.project.resolve import ResolvedProject, resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.source import shown_positions

VIEW = """
SELECT c.c_custkey, c.c_mktsegment, o.o_orderkey, o.o_orderdate, l.l_linenumber,
       l.l_extendedprice * (1 - l.l_discount) AS revenue
FROM crm.customer c
JOIN sales.orders o ON c.c_custkey = o.o_custkey
JOIN sales.lineitem l ON l.l_orderkey = o.o_orderkey
WHERE c.c_mktsegment <> 'HOUSEHOLD' AND o.o_orderdate >= DATE '1995-01-01'
"""
PROJECT = """
[project]
name = "bench_{number}"
{sources}
[defaults]
reading = "{reading}"
[maintenance]
batch_ticks = 1000000
"""
PLACES = {"customer": "crm", "orders": "sales", "lineitem": "sales"}
_numbers = itertools.count()
SERVER = {"shared_buffers": "512MB", "max_wal_size": "4GB", "checkpoint_timeout": "30min"}


@dataclass
class Ear:
    """Remembers what the maintainer said."""

    commits: list[tuple[float, BatchCommitted]] = field(default_factory=list)
    probes: list[ProbeAnswered] = field(default_factory=list)
    computed: list[ViewComputed] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        match event:
            case BatchCommitted():
                self.commits.append((time.time(), event))
            case ProbeAnswered():
                self.probes.append(event)
            case ViewComputed():
                self.computed.append(event)
            case _:
                pass


@dataclass
class Setting:
    """Everything one series of measurements needs."""

    spark: SparkSession
    resolved: ResolvedProject
    maintainer: Maintainer
    ear: Ear
    connections: dict[str, psycopg.Connection]
    urls: dict[str, str]
    bootstrap_seconds: float

    @cached_property
    def stream(self) -> Stream:
        """Transactions on customers, orders and lineitems."""
        customers = self.connections["crm"].execute("SELECT count(*) FROM customer").fetchone()
        orders = self.connections["sales"].execute("SELECT o_orderkey FROM orders ORDER BY 1").fetchall()
        assert customers is not None
        seed = orders[-1][0]  # another one for each stream on these servers, or it would repeat what is there already
        return Stream(seed, customers[0], [key for (key,) in orders])

    def catch_up(self) -> None:
        """Wait until the change log has everything the sources committed."""
        for source in self.resolved.sources.values():
            shown = shown_positions(source, self.resolved.followed_names(source.name))
            assert self.maintainer.acceptor.wait_for(shown, 300), "the log was not followed"

    def maintain(self) -> None:
        """Bring the view to where the log ends now; writers may go on meanwhile."""
        target = self.maintainer.log.last_tick
        while self.maintainer.frontier() < target:
            self.maintainer.step()
            stopped = {view.name: view.stopped for view in self.maintainer.views.values() if view.stopped is not None}
            assert not stopped, f"views stopped: {stopped}"


@contextmanager
def servers(scale: float, places: Mapping[str, str] = PLACES) -> Iterator[dict[str, str]]:
    """Start a server per source with its rows, and give their URLs; `places` says where each table is."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    folder.chmod(0o755)
    running = {name: EmbeddedServer(folder / name, settings=SERVER) for name in dict.fromkeys(places.values())}
    files = tpch.generate(scale, tpch.cache_folder() / str(scale))
    try:
        for server in running.values():
            server.start()
        for table, source in places.items():
            tpch.load(running[source].url(), table, files[table])
        yield {name: server.url() for name, server in running.items()}
    finally:
        for server in running.values():
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def project(urls: Mapping[str, str], reading: str, views: Mapping[str, str], settings: str = "") -> Iterator[Project]:
    """Write a project that reads every relation one way, unless its further settings say otherwise."""
    folder = Path(tempfile.mkdtemp(prefix="headwater-bench-"))
    (folder / "views").mkdir()
    sources = "\n".join(f'[sources.{name}]\nurl = "${{{name.upper()}_URL}}"' for name in urls)
    text = PROJECT.format(number=next(_numbers), reading=reading, sources=sources) + settings
    (folder / "headwater.toml").write_text(text)
    for name, sql in views.items():
        (folder / "views" / f"{name}.sql").write_text(sql)
    os.environ.update({f"{name.upper()}_URL": url for name, url in urls.items()})
    try:
        yield load(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep_text(view: str, wishes: Sequence[LineageWish]) -> str:
    """Return the settings of a view that keeps lineage."""
    return f"[views.{view}]\nkeep = {[str(wish) for wish in wishes]}\n"


@contextmanager
def setting(
    spark: SparkSession,
    urls: dict[str, str],
    reading: str,
    views: Mapping[str, str] = MappingProxyType({"w1": VIEW}),
    settings: str = "",
) -> Iterator[Setting]:
    """Bootstrap the warehouse of a project, and take it down again."""
    with project(urls, reading, views, settings) as said, maintained(spark, said, urls) as place:
        yield place


@contextmanager
def maintained(spark: SparkSession, said: Project, urls: dict[str, str]) -> Iterator[Setting]:
    """Bootstrap the warehouse of a project that is written."""
    ear = Ear()
    resolved = resolve_project(said, spark)
    maintainer = start_maintainer(spark, resolved, ear)
    connections = {name: psycopg.connect(url, autocommit=True) for name, url in urls.items()}
    try:
        started = time.perf_counter()
        maintainer.begin()
        while len(maintainer.views) < len(resolved.views):
            maintainer.step()
            time.sleep(0.02)
        seconds = time.perf_counter() - started
        yield Setting(
            spark=spark,
            resolved=resolved,
            maintainer=maintainer,
            ear=ear,
            connections=connections,
            urls=urls,
            bootstrap_seconds=seconds,
        )
    finally:
        maintainer.close()
        maintainer.release()
        for connection in connections.values():
            connection.close()
        for source in resolved.sources.values():
            for slot in source.slots().present:
                source.teardown(slot, {})
