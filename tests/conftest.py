"""Servers that many tests share: started once, stopped at the end, whatever happens in between."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headwater.sources.embedded import EmbeddedServer

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedServer]:
    """One PostgreSQL server for the whole run; give every test a database of its own with `postgres_database`."""
    # Not below pytest's own temporary directory: as root that one is closed to the account the server runs as.
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    try:
        with EmbeddedServer(directory, settings={"fsync": "off"}) as server:
            yield server
    finally:
        shutil.rmtree(directory)


@pytest.fixture
def postgres_database(postgres_server: EmbeddedServer) -> Callable[[], str]:
    """Return a function that makes a fresh database on the shared server and returns its name."""

    def make() -> str:
        name = f"test_{next(_numbers)}"
        postgres_server.execute(f"CREATE DATABASE {name}")
        return name

    return make
