"""What many tests share, made once and taken down at the end, whatever happens in between: servers, and Spark."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from s3_server import IDENTITY, S3Server, s3_server
from volume import THOROUGH

from headwater.sources.embedded import EmbeddedServer
from headwater.spark.session import spark_session
from headwater.storage.object_store import reach
from headwater.views.text.bounds import allow_depth

allow_depth()  # now: hypothesis refuses a test in which the limit of calls changes

_numbers = itertools.count(1)

# For a virtual machine that lives minutes, the best code is compiled too late; children inherit it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m")

os.environ |= IDENTITY  # before Spark starts: tasks have it from there


_INTERPRETED = "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN"
_LIVE = {"spark", "three_servers", "postgres_server"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need Spark or a server, so that the others can run beside them in a process of their own.

    Those that only `make thorough` plays are left out of every other run.
    """
    for item in items:
        if _LIVE & set(getattr(item, "fixturenames", ())):
            item.add_marker("live")
    if not THOROUGH:
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[EmbeddedServer]:
    """One PostgreSQL server for the whole run; give every test a database of its own with `postgres_database`."""
    # Not below pytest's own temporary directory: as root that one is closed to the account the server runs as.
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    server = EmbeddedServer(directory, settings={"fsync": "off"})
    try:
        server.start()
        yield server
    finally:
        server.kill()  # nobody needs what it would write to disk when stopped
        shutil.rmtree(directory)


@pytest.fixture
def postgres_database(postgres_server: EmbeddedServer) -> Callable[[], str]:
    """Return a function that makes a fresh database on the shared server and returns its name."""

    def make() -> str:
        name = f"test_{next(_numbers)}"
        postgres_server.execute(f"CREATE DATABASE {name}")
        return name

    return make


@pytest.fixture(scope="session")
def three_servers() -> Iterator[dict[str, EmbeddedServer]]:
    """Three PostgreSQL servers that know nothing of each other, by the names of the sources they serve."""
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    directory.chmod(0o711)
    servers = {
        name: EmbeddedServer(
            directory / name,
            settings={"fsync": "off", "max_replication_slots": "30", "max_prepared_transactions": "10"},
        )
        for name in ("crm", "shop", "geo")
    }
    try:
        for server in servers.values():
            server.start()
        yield servers
    finally:
        for server in servers.values():
            server.kill()  # as above
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One server that speaks S3 for the whole run. Every test has an address of its own there."""
    with s3_server() as server:
        yield server


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An address at which nothing is, once in a folder and once on an object store."""
    if request.param == "folder":
        return str(tmp_path / "warehouse")
    server: S3Server = request.getfixturevalue("s3")
    address = server.address()
    reach(address, server.options)
    return address


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """Return the one Spark session of this process, as every run of Headwater has it.

    But for this: a test's queries run a few times each, and compiling code for them takes longer than running them. So
    Spark interprets them; it compiles in `make thorough`, and in the demo, which a test plays in a process of its own.
    """
    if not THOROUGH:
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{_INTERPRETED} pyspark-shell"
    return spark_session()
