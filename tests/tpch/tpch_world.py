"""TPC-H in three databases with audit triggers, at a thousandth of scale factor 1 and with one order in three."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import tpch_queries
from audited import AuditedWorld
from bench import tpch

from headwater.judge.audit import audit_sql
from headwater.project.file import load
from headwater.project.resolve import connect_sources
from headwater.sources.embedded import EmbeddedServer

SCALE = 0.001
ONE_ORDER_IN = 3
PROBED = ("sales.lineitem", "crm.customer", "supply.partsupp")
"""Relations whose old rows are asked for at their source, while writers go on; the others are replicated."""

_numbers = itertools.count(1)


def small_views(names: tuple[str, ...] = tpch_queries.names()) -> dict[str, str]:
    return {name: tpch_queries.small(name) for name in names}


@contextmanager
def tpch_world(servers: Mapping[str, EmbeddedServer], folder: Path) -> Iterator[AuditedWorld]:
    """Make fresh databases with TPC-H rows on three servers, given by source, and take everything down again.

    Rows that a writer takes away wait in the schema `gone`, in the same transaction, until one brings them back.
    """
    database = f"tpch_{os.getpid()}_{next(_numbers)}"
    world = AuditedWorld(servers=servers, database=database, folder=folder, names=tpch.SOURCES)
    files = tpch.generate(SCALE, tpch.cache_folder() / f"{SCALE}-{ONE_ORDER_IN}", ONE_ORDER_IN)
    for source, tables in tpch.SOURCES.items():
        servers[source].execute(f"CREATE DATABASE {database}")
        for table in tables:
            tpch.create(world.url(source), table)
        gone = "".join(f"CREATE TABLE gone.{table} (LIKE {table});" for table in tables)
        world.execute(source, f"{audit_sql(tables)} CREATE SCHEMA gone; {gone}")
        with psycopg.connect(world.url(source), autocommit=True) as connection:
            for table in tables:
                tpch.fill(connection, table, files[table])
    os.environ.update(world.environment)
    try:
        yield world
    finally:
        if (folder / "headwater.toml").exists():
            for source in connect_sources(load(folder)).values():
                for slot in source.slots().present:
                    source.teardown(slot, {})
