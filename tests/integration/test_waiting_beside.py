"""Whoever waits beside a maintainer for a source's log to be followed need not wait until it tells by itself."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import AuditedWorld, audited_world
from pyspark.sql import SparkSession
from running import running

from headwater.engine.service.wait_until_followed import wait_until_followed
from headwater.observe.events import ViewBorn
from headwater.project.resolve import resolve_project
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

SQL = "SELECT s.no AS no, s.amount AS amount FROM shop.sales AS s"
OUTSIDE = "CREATE TABLE IF NOT EXISTS nobodys_business (no int); INSERT INTO nobodys_business VALUES (1)"
"""Nothing that a view reads: the log grows, and its follower is told nothing of it."""


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def test_an_idle_source_is_hastened(world: AuditedWorld, spark: SparkSession) -> None:
    world.write_project({"sold": SQL})
    with running(world, spark) as maintainer:
        maintainer.wait_until(lambda: maintainer.heard(ViewBorn))
        resolved = resolve_project(world.open().project, spark)
        warehouse = Warehouse.open(maintainer.path)
        waited = []
        for _ in range(4):
            time.sleep(1)
            world.execute("shop", OUTSIDE)
            with resolved.sources["shop"].snapshot() as snapshot:
                began = time.monotonic()
                wait_until_followed(resolved, warehouse, snapshot.positions)
                waited.append(time.monotonic() - began)
    assert max(waited) < 2, waited
