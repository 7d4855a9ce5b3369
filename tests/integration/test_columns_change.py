"""What no view reads may change at a source; where a view reads what changes, the way out that is said works."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from running import Beside

from headwater.api.session import Headwater, open_project
from headwater.engine.service.project_run import ProjectRun
from headwater.errors import HeadwaterError
from headwater.observe.events import Event, SourceConnected, SourceGone
from headwater.observe.status import SourceState
from headwater.sources.embedded import EmbeddedServer

TABLES = """
    CREATE TYPE mood AS ENUM ('good', 'bad');
    CREATE TABLE t (id int PRIMARY KEY, spare int DEFAULT 4, a text, other int, kind mood, num numeric(8, 2), n int);
    CREATE TABLE u (id int, b text, unread date DEFAULT '2024-02-02'); CREATE INDEX ON u (id);
    INSERT INTO t (id, a, kind, n) SELECT g, 'a' || g, 'good', g % 3 FROM generate_series(1, 9) g;
    INSERT INTO u (id, b) SELECT g % 5, 'b' || g FROM generate_series(1, 20) g
"""
COPIED, JOINED = "SELECT id, a FROM shop.t", "SELECT t.id, u.b FROM shop.t JOIN shop.u ON t.id = u.id WHERE t.n < 2"


class World:
    """Two tables, views over them, and what the source itself says that they are."""

    def __init__(self, server: EmbeddedServer, database: str, folder: Path, spark: SparkSession) -> None:
        self._server, self._database, self.folder, self._spark = server, database, folder, spark
        self.execute(TABLES)
        self.events: list[Event] = []
        os.environ["HW_COLUMNS"] = server.url(database)
        folder.mkdir()
        (folder / "headwater.toml").write_text(
            f'[project]\nname = "{database}"\n[sources.shop]\nurl = "${{HW_COLUMNS}}"\n'
            '[relations."shop.u"]\nreading = "probe"\n'
        )

    def execute(self, *statements: str) -> list[tuple[object, ...]]:
        """Run each statement in a transaction of its own."""
        return [self._server.execute(sql, database=self._database) for sql in statements][-1]

    def write(self, **views: str) -> None:
        (self.folder / "views").mkdir(exist_ok=True)
        for old in (self.folder / "views").glob("*.sql"):
            old.unlink()
        for name, sql in views.items():
            (self.folder / f"views/{name}.sql").write_text(sql)

    def open(self) -> Headwater:
        return open_project(self.folder)

    def beside(self) -> Beside:
        """Run as `headwater run` does, beside the test."""
        project, events = self.open().project, self.events
        going = ProjectRun(self._spark, project, events.append)
        return Beside(
            project.warehouse,
            events,
            lambda: going.run(until_idle=False, ticks=None, rebuild=(), fail_fast=False),
            going.stop,
        )

    def is_exact(self, **views: str) -> bool:
        return all(self.shown(name) == self.truth(sql) for name, sql in views.items())

    def shown(self, view: str) -> list[str]:
        return sorted(map(repr, (tuple(row.values()) for row in self.open().view(view).arrow().to_pylist())))

    def truth(self, sql: str) -> list[str]:
        return sorted(map(repr, self.execute(sql.replace("shop.", ""))))

    def refused(self) -> HeadwaterError:
        with pytest.raises(HeadwaterError) as refused:
            self.open().run(until_idle=True)
        return refused.value


@pytest.fixture
def world(
    postgres_server: EmbeddedServer, postgres_database: Callable[[], str], tmp_path: Path, spark: SparkSession
) -> Iterator[World]:
    made = World(postgres_server, postgres_database(), tmp_path / "project", spark)
    yield made
    made.open().teardown()


def test_columns_that_no_view_reads_may_change_while_running_and_between_runs(world: World) -> None:
    views = {"copied": COPIED, "joined": JOINED}
    world.write(**views)
    world.open().run(until_idle=True)
    maintainer = world.beside()
    maintainer.wait_until(lambda: maintainer.heard(SourceConnected))
    world.execute(
        "UPDATE t SET a = a || '!' WHERE id < 4",
        "ALTER TABLE t DROP COLUMN spare",
        "UPDATE t SET a = a || '?' WHERE id > 2; DELETE FROM t WHERE id = 1",
        "ALTER TABLE t ADD COLUMN more int DEFAULT 7",
        "INSERT INTO t (id, a, n, more) VALUES (20, 'x', 1, 8), (3 + 18, 'y', 0, 9)",
        "ALTER TABLE t RENAME COLUMN other TO another; ALTER TABLE u ALTER unread TYPE text",
        "UPDATE t SET another = 5, n = 1 - n WHERE n < 2; UPDATE u SET b = b || '.' WHERE id = 2",
        "ALTER TYPE mood ADD VALUE 'odd'",
        "UPDATE t SET kind = 'odd', num = 'NaN' WHERE id IN (2, 20)",
        "ALTER TABLE t DROP COLUMN kind; INSERT INTO u (id, b, unread) VALUES (20, 'new', 'never')",
        "DELETE FROM t WHERE id = 20; INSERT INTO t (id, a, n) VALUES (20, 'again', 1)",
    )
    maintainer.wait_until(lambda: world.is_exact(**views))
    assert not maintainer.heard(SourceGone)
    maintainer.stop()
    assert all(view.kept for view in world.open().check().views)

    world.execute(
        "INSERT INTO t (id, a, n) VALUES (30, 'before', 1)",
        "ALTER TABLE t DROP COLUMN num; ALTER TABLE t ADD COLUMN added int DEFAULT 3",
        "INSERT INTO t (id, a, n, added) VALUES (31, 'after', 1, 4); UPDATE t SET added = 5 WHERE id = 2",
        "ALTER TABLE u DROP COLUMN unread",
        "UPDATE u SET b = b || '.' WHERE id = 2",
    )
    views["newer"] = "SELECT id, added FROM shop.t"
    world.write(**views)
    world.open().run(until_idle=True)
    assert world.is_exact(**views)
    world.execute("UPDATE t SET added = 6, a = a || '-' WHERE id IN (2, 30)", "TRUNCATE t")
    world.execute("INSERT INTO t (id, a, n) VALUES (2, 'new', 1)")
    world.open().run(until_idle=True)
    assert world.is_exact(**views)
    assert all(view.kept for view in world.open().check().views)


def test_a_column_that_a_view_reads_is_lost_and_each_way_out_works(world: World) -> None:
    views = {"copied": COPIED, "joined": JOINED}
    world.write(**views)
    world.open().run(until_idle=True)
    maintainer = world.beside()
    maintainer.wait_until(lambda: maintainer.heard(SourceConnected))
    world.execute("ALTER TABLE t DROP COLUMN a", "INSERT INTO t (id, n) VALUES (40, 1)")
    with pytest.raises(HeadwaterError, match="changed its shape") as lost:  # no source is left that could go on
        maintainer.wait_until(lambda: False)
    assert (lost.value.code, 'column "a"' in lost.value.detail) == ("HW-331", True)
    [source] = world.open().status().sources
    assert source.state is SourceState.LOST
    assert 'column "a" (text) is gone' in source.last_error
    assert source.hint == lost.value.hint
    assert source.retry_in_seconds is None

    world.write(copied="SELECT id, n FROM shop.t", joined=JOINED)  # "change the views that read it, then run again"
    [warning] = [text for text in world.open().plan().warnings if "lost" in text]
    assert "change or remove the views" in warning
    world.open().run(until_idle=True)
    assert world.is_exact(copied="SELECT id, n FROM shop.t", joined=JOINED)
    assert [one.state for one in world.open().status().sources] == [SourceState.NOT_STARTED]
    assert not [text for text in world.open().plan().warnings if "lost" in text]

    views = {"copied": "SELECT id, n FROM shop.t", "joined": JOINED}
    world.execute(  # "or put the column back: then teardown and run"
        "ALTER TABLE t RENAME COLUMN n TO m",
        "UPDATE t SET m = 0 WHERE id = 3",
        "ALTER TABLE t RENAME COLUMN m TO n",
    )
    assert world.refused().code == "HW-331"
    assert world.refused().code == "HW-331", "the log holds the gap"
    assert world.open().status().sources[0].state is SourceState.LOST
    world.open().teardown(sources=("shop",))
    assert world.open().status().sources[0].state is SourceState.NOT_STARTED
    world.open().run(until_idle=True)
    assert world.is_exact(**views)

    world.execute(
        "INSERT INTO t (id, n) VALUES (41, 1)", "ALTER TABLE t RENAME COLUMN n TO m", "DELETE FROM t WHERE id = 3"
    )
    views = {name: sql.replace(" n ", " m ").replace("t.n", "t.m") for name, sql in views.items()}
    world.write(**views)  # a column that views read under its new name, with rows in the log under the old one
    world.open().run(until_idle=True)
    assert world.is_exact(**views)

    world.execute("ALTER TABLE t ALTER m TYPE bigint USING m + 1")
    views["copied"] = "SELECT id FROM shop.t"
    world.write(**views)
    for verb in (world.open().plan, lambda: world.open().run(until_idle=True)):
        with pytest.raises(HeadwaterError, match='column "m"') as retyped:
            verb()
        assert retyped.value.code == "HW-338"
    world.open().teardown(sources=("shop",))
    world.open().run(until_idle=True)
    assert world.is_exact(**views)
