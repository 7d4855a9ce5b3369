"""Databases that somebody writes to, a batch of transactions at a time: TPC-H, and the demo's department store."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.refresh import Refresh
from bench.setting import servers
from bench.stream import apply
from bench.tpch_views import PLACES, QUERIES
from headwater.demo.servers import example_folder, fill, running_servers
from headwater.demo.writers import ROLES

TRANSACTIONS = 20
"""In a batch, about."""
_ROWS = 12
"""That one of them changes, about."""


@dataclass(frozen=True)
class World:
    """Databases by their names, the texts of views over them, and what writes a batch of transactions."""

    urls: dict[str, str]
    texts: Mapping[str, str]
    write: Callable[[], int]
    """Writes, and returns how many transactions that were."""


@contextmanager
def tpch_world(scale: float) -> Iterator[World]:
    """Run TPC-H's three databases; all tables change (`refresh`)."""
    with servers(scale, PLACES) as urls:
        connections = {name: psycopg.connect(url, autocommit=True) for name, url in urls.items()}
        refresh = Refresh(11, connections)

        def write() -> int:
            changes = refresh.take(TRANSACTIONS * _ROWS)
            apply(connections, changes)
            return len(changes)

        yield World(urls=urls, texts=_texts(QUERIES), write=write)
        for connection in connections.values():
            connection.close()


@contextmanager
def store_world() -> Iterator[World]:
    """Run the department store's three databases; everybody acts as in the demo, one after the other."""
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder, running_servers(Path(folder)) as running:
        for name, server in running.items():
            fill(name, server)
            server.execute("ANALYZE")
        urls = {name: server.url() for name, server in running.items()}
        connections: dict[str, psycopg.Connection[Any]] = {
            name: psycopg.connect(url, autocommit=True) for name, url in urls.items()
        }
        drawn = random.Random(11)

        def write() -> int:
            for role in drawn.choices(ROLES, [role.per_second for role in ROLES], k=TRANSACTIONS):
                with connections[role.source].transaction():
                    drawn.choice(role.acts)(connections[role.source], drawn)
            return TRANSACTIONS

        yield World(urls=urls, texts=_texts(example_folder() / "views"), write=write)
        for connection in connections.values():
            connection.close()


def _texts(folder: Path) -> dict[str, str]:
    return {file.stem: file.read_text() for file in sorted(folder.glob("*.sql"))}
