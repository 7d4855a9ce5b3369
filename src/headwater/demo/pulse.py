"""The state of sources and views at a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

import psycopg
import pyarrow.parquet as pq

from headwater.demo.maintained import Maintained
from headwater.demo.scenes import DemoListener, Pulse, SourcePulse, ViewPulse
from headwater.demo.servers import TABLES
from headwater.demo.writers import Writer
from headwater.model.position import LSN
from headwater.warehouse.history import view_history
from headwater.warehouse.query import Warehouse

_SIZE_EVERY = 4
"""Views are measured in every fourth pulse only: it reads the table of commits."""


class Pulses:
    """Tells a listener pulses, with connections of its own. A context manager."""

    def __init__(self, urls: Mapping[str, str], maintainer: Maintained, listener: DemoListener) -> None:
        """Watch these. Nothing is connected before the block begins."""
        self._urls = urls
        self._maintainer = maintainer.maintainer
        self._listener = listener
        self._connections: dict[str, psycopg.Connection[Any]] = {}
        self._born_with: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._taken = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Connect."""
        for name, url in self._urls.items():
            self._connections[name] = self._stack.enter_context(psycopg.connect(url, autocommit=True))
        return self

    def __exit__(self, *exception: object) -> None:
        """Disconnect."""
        self._stack.close()

    def tell(self, writers: Sequence[Writer], part: float) -> None:
        """Tell how everything is doing, when this part of the writing is over."""
        if self._taken % _SIZE_EVERY == 0:
            self._measure()
        self._taken += 1
        views = {name: view.frontier for name, view in list(self._maintainer.views.items())}
        pulse = Pulse(
            part=part,
            accepted=self._maintainer.log.last_tick,
            sources=tuple(self._source(name, writers) for name in self._urls),
            views=tuple(
                ViewPulse(name=name, frontier=views.get(name), row_count=self._sizes.get(name))
                for name in self._maintainer.resolved.views
            ),
        )
        self._listener(pulse)

    def _source(self, name: str, writers: Sequence[Writer]) -> SourcePulse:
        reached = self._maintainer.acceptor.accepted_to().get(name)
        [[now]] = self._connections[name].execute("SELECT pg_current_wal_insert_lsn()::text").fetchall()
        return SourcePulse(
            name=name,
            tables=", ".join(TABLES[name]),
            commit_count=sum(writer.commit_count for writer in writers if writer.role.source == name),
            position=reached,
            lag_bytes=None if reached is None else max(0, LSN.parse(now) - reached.offset),
        )

    def _measure(self) -> None:
        """Count the rows of every view: those it was born with, and what came and went in every commit since."""
        if not self._maintainer.views:
            return
        warehouse = Warehouse.open(self._maintainer.warehouse.path)
        commits = warehouse.commits.read()
        for name in list(self._maintainer.views):
            if name not in self._born_with:
                files = warehouse.kept_table(name).checkpoint.snapshot().files
                self._born_with[name] = sum(pq.read_metadata(file).num_rows for file in files)
            changed = sum(commit.rows_added - commit.rows_removed for commit in view_history(commits, name))
            self._sizes[name] = self._born_with[name] + changed
