from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import LoginRefused, SourceLost, SourceRefused, SourceUnavailable
from headwater.model.position import Position
from headwater.model.relation import Identity, RelationName
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.postgres import PostgresSource
from headwater.sources.postgres import source as source_module


def test_a_table_that_changes_its_shape_is_refused_by_name(world: Any) -> None:
    changes = {
        "ALTER TABLE sales RENAME TO sold": 'called "shop.sold"',
        "ALTER TABLE sales DROP COLUMN amount": 'column "amount" (integer) is gone',
        "ALTER TABLE sales ALTER amount TYPE bigint": "is now bigint",
        "ALTER TABLE sales ALTER code TYPE uuid USING NULL": "was text and is now uuid",
        "ALTER TABLE sales REPLICA IDENTITY DEFAULT": "no longer FULL",
    }
    for change, detail in changes.items():
        world.execute(
            "DROP TABLE IF EXISTS sales, sold; CREATE TABLE sales (id int PRIMARY KEY, amount int, code text)"
        )
        world.declare("sales")
        follower = world.follow()
        world.execute("INSERT INTO sales (id) VALUES (1)")
        world.execute(change)
        name = "sold" if "RENAME" in change else "sales"
        world.execute(f"INSERT INTO {name} (id) VALUES (2)")
        with pytest.raises(SourceRefused) as refused:
            world.captures(follower)
        assert detail in refused.value.detail
        world.stop_following()
        world.teardown()
    world.execute("DROP TABLE IF EXISTS sales, sold; CREATE TABLE sales (id int PRIMARY KEY, code varchar(3))")
    world.declare("sales")
    follower = world.follow()
    world.execute("INSERT INTO sales VALUES (1, 'a')")
    world.execute("ALTER TABLE sales ADD COLUMN more int DEFAULT 5; ALTER TABLE sales ALTER code TYPE varchar(9)")
    world.execute("INSERT INTO sales VALUES (2, 'abcd', 7)")
    assert world.signed(world.captures(follower), world.relations["sales"]) == world.bag(world.read("sales"))


def test_generated_columns_do_not_break_the_owner_s_writes(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
    world.declare("sales")
    follower = world.follow()
    world.execute("INSERT INTO sales VALUES (1), (2)")
    world.execute("UPDATE sales SET id = 3 WHERE id = 1; DELETE FROM sales WHERE id = 2")
    assert world.relations["sales"].column_names == ("id", "twice")
    assert world.signed(world.captures(follower), world.relations["sales"]) == world.bag(world.read("sales"))
    world.execute("CREATE TABLE virtual (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL)")
    with pytest.raises(SourceRefused, match="cannot be followed"):
        world.declare("virtual")


def test_an_ordinary_account_is_told_what_the_owner_must_run(world: Any) -> None:
    role = f"plain_{world.database}"
    world.execute(f"CREATE TABLE sales (id int PRIMARY KEY); CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    name = RelationName(source="shop", name="sales")
    url = world.server.url(world.database, f"{role}:secret")
    source = PostgresSource(name="shop", url=url, project=world.database)
    assert "secret" not in repr(source)
    with pytest.raises(SourceRefused, match="REPLICATION"):
        source.prepare([name], source.new_slot(), is_new=True)
    world.execute(f"ALTER ROLE {role} REPLICATION")
    inspection = source.inspect([name])
    assert not inspection.may_run_owner_sql
    assert inspection.relations[0].identity is Identity.KEY
    assert inspection.relations[0].key == ("id",)
    with pytest.raises(SourceRefused, match="needs its owner") as refused:
        source.prepare([name], source.new_slot(), is_new=True)
    for statement in inspection.owner_sql:
        assert statement in refused.value.hint
        world.execute(statement)
    assert source.inspect([name]).owner_sql == ()
    slot = source.new_slot()
    start = source.prepare([name], slot, is_new=True)
    assert source.prepare([name], slot, is_new=False) == start
    relations = source.inspect([name]).relations
    follower = source.follow(relations, slot, start)
    with source.snapshot(bootstrap=True) as snapshot, world.connect() as writer:
        assert world.whole(snapshot, relations[0]).num_rows == 0
        writer.execute("SET synchronous_commit = off")
        writer.execute("INSERT INTO sales VALUES (1)")
        with source.snapshot() as later:
            world.captures(follower, later.position)
    follower.close()
    source.close()
    assert len(world.source.teardown(slot, {}).dropped) == 2
    assert world.execute(f"SELECT slot_name FROM pg_replication_slots WHERE slot_name = '{slot}'") == []
    assert world.execute("SELECT pubname FROM pg_publication") == []
    world.execute(f"DROP TABLE sales; DROP OWNED BY {role}; DROP ROLE {role}")


def test_relations_that_cannot_be_followed_are_refused(world: Any) -> None:
    world.execute(
        "CREATE UNLOGGED TABLE hasty (id int); CREATE VIEW seen AS SELECT 1 AS id; CREATE TABLE parent (id int)"
    )
    world.execute("CREATE TABLE child () INHERITS (parent)")
    for name in ("hasty", "seen", "parent", "missing"):
        with pytest.raises(SourceRefused, match=name):
            world.declare(name)


def test_a_server_that_does_not_answer_or_refuses_is_named_without_the_password(world: Any) -> None:
    with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1:1/db") as down:
        PostgresSource(name="shop", url="postgresql://u:secret@127.0.0.1:1/db", project="p").snapshot()
    with pytest.raises(SourceRefused, match="cannot be read") as unreadable:
        PostgresSource(name="shop", url="postgresql://u:se/secret@h:1/db", project="p")
    with pytest.raises(SourceRefused, match="cannot be read"):
        PostgresSource(name="shop", url="postgresql://u:se@cret@h:1/db", project="p")
    hba = world.server.directory / "pg_hba.conf"
    before = hba.read_text()
    world.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
    try:
        hba.write_text("host all locked all scram-sha-256\n" + before)
        world.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)
        url = world.server.url(world.database, "locked:secret")
        with pytest.raises(LoginRefused, match="password authentication failed") as wrong:
            PostgresSource(name="shop", url=url, project="p").snapshot()
    finally:
        hba.write_text(before)
        world.execute("SELECT pg_reload_conf()")
        world.execute("DROP ROLE locked")
    for error in (down, unreadable, wrong):
        assert "secret" not in str(error.value)


def test_a_crash_spoils_snapshots_and_loses_nothing(make_world: Any) -> None:
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    try:
        with EmbeddedServer(directory, version=16, settings={"wal_level": "replica", "fsync": "off"}) as server:
            server.execute("CREATE TABLE sales (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
            name = RelationName(source="shop", name="sales")
            source = PostgresSource(name="shop", url=server.url(), project="crash")
            slot = source.new_slot()
            with pytest.raises(SourceRefused, match="wal_level"):
                source.prepare([name], slot, is_new=True)
            server.stop()
            server.settings["wal_level"] = "logical"
            server.start()
            source.prepare([name], slot, is_new=True)
            relations = source.inspect([name]).relations
            assert relations[0].column_names == ("id",)
            [(generated, why)] = relations[0].unusable
            assert (generated, "generated as (id * 2)" in why, "before PostgreSQL 18" in why) == ("twice", True, True)
            world = make_world(
                server=server, database="postgres", source=source, relations={"sales": relations[0]}, slot=slot
            )
            follower = world.follow()
            server.execute("INSERT INTO sales VALUES (1)")
            first = world.transactions(world.captures(follower))
            follower.next_capture(0.0)
            snapshot = source.snapshot()
            server.kill()
            assert not snapshot.is_valid()
            with snapshot, pytest.raises(SourceUnavailable):
                follower.next_capture(5.0)
            with pytest.raises(SourceUnavailable):
                source.snapshot()
            server.start()
            server.execute("INSERT INTO sales VALUES (2); UPDATE sales SET id = 3 WHERE id = 2")
            captures = world.captures(world.follow(held_to=first[-1].position))
            assert world.signed(captures, relations[0]) == Counter([("3",)])
            world.stop_following()
            assert world.teardown() == (f"replication slot {slot}", "publication headwater_crash_shop")
            assert world.teardown() == ()
    finally:
        shutil.rmtree(directory)


def test_a_lost_slot_and_a_standby_are_named() -> None:
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    settings = {"fsync": "off", "max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    try:
        with EmbeddedServer(directory, settings=settings) as server:
            server.execute("CREATE TABLE sales (id int PRIMARY KEY); CREATE TABLE other (id int, text text)")
            name = RelationName(source="shop", name="sales")
            source = PostgresSource("shop", server.url(), "lost")
            slot = source.new_slot()
            start = source.prepare([name], slot, is_new=True)
            relations = source.inspect([name]).relations
            for _ in range(3):
                server.execute("INSERT INTO other VALUES (1, 'x')")
                server.execute("SELECT pg_switch_wal()")
            server.execute("CHECKPOINT")
            with pytest.raises(SourceLost, match="thrown away log"):
                source.follow(relations, slot, start)
            with pytest.raises(SourceLost, match="thrown away log"):
                source.prepare([name], slot, is_new=False)
            assert source.slots().present[slot].lost
            assert len(source.teardown(slot, {}).dropped) == 2
            with pytest.raises(SourceLost, match="no replication slot"):
                source.prepare([name], slot, is_new=False)
            with pytest.raises(SourceLost, match="no replication slot"):
                source.follow(relations, slot, start)
            server.stop()
            (directory / "standby.signal").touch()
            server.start()
            with pytest.raises(SourceRefused, match="standby"):
                source.prepare([name], slot, is_new=True)
            with pytest.raises(SourceRefused, match="standby"):
                source.snapshot()
    finally:
        shutil.rmtree(directory)


def test_preparing_does_not_queue_behind_a_long_transaction(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "_SET_LOCK_TIMEOUT", b"SET lock_timeout = 100")
    world.execute("CREATE TABLE sales (id int PRIMARY KEY)")
    with world.connect() as connection:
        connection.execute("SELECT * FROM sales")
        with pytest.raises(SourceUnavailable, match="in use"):
            world.declare("sales")
    world.declare("sales")


def test_a_log_of_another_server_is_noticed(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY)")
    world.declare("sales")
    elsewhere = Position(source="shop", history="1:1", offset=1)
    with pytest.raises(SourceLost, match="not the server it was"):
        world.follow(held_to=elsewhere)


def test_a_table_taken_out_of_the_publication_is_noticed(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY); CREATE TABLE notes (id int)")
    world.declare("sales", "notes")
    world.execute(f"ALTER PUBLICATION headwater_{world.database}_shop DROP TABLE notes")
    with pytest.raises(SourceRefused, match="no longer logs"):
        world.follow()
