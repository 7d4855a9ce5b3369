"""Partitioned tables: a root and its partitions at once, partitions that come and go, and the application's writes."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.errors import SourceRefused
from headwater.model.relation import RelationName
from headwater.model.settings import CaptureSettings
from headwater.project.file import load
from headwater.project.resolve import connect_source
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.postgres import PostgresSource
from headwater.sources.source import ProcessMemory

ROOT = (
    "CREATE TABLE pt (id int PRIMARY KEY, note text) PARTITION BY RANGE (id);"
    "CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (0) TO (10);"
    "CREATE TABLE pt2 (note text, id int NOT NULL);"
    "ALTER TABLE pt ATTACH PARTITION pt2 FOR VALUES FROM (10) TO (20);"
    "CREATE TABLE pt3 PARTITION OF pt FOR VALUES FROM (20) TO (40) PARTITION BY RANGE (id);"
    "CREATE TABLE pt31 PARTITION OF pt3 FOR VALUES FROM (20) TO (30);"
)

MADE_FILLED_AND_ATTACHED = (
    "CREATE TABLE made (LIKE pt); INSERT INTO made VALUES (71, 'x');"
    "ALTER TABLE pt ATTACH PARTITION made FOR VALUES FROM (70) TO (80)"
)
ATTACHED_WITH_PARTITIONS = (
    "CREATE TABLE whole (LIKE pt) PARTITION BY RANGE (id);"
    "CREATE TABLE part PARTITION OF whole FOR VALUES FROM (80) TO (90);"
    "INSERT INTO whole VALUES (81, 'x'); ALTER TABLE pt ATTACH PARTITION whole FOR VALUES FROM (80) TO (90)"
)


@pytest.fixture(scope="module")
def old_server() -> Iterator[EmbeddedServer]:
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    try:
        with EmbeddedServer(directory, version=16, settings={"fsync": "off"}) as server:
            yield server
    finally:
        shutil.rmtree(directory)


@pytest.fixture(params=[16, 18])
def either(request: pytest.FixtureRequest, make_world: Any) -> Iterator[Any]:
    """Return a world on each of the two versions of PostgreSQL."""
    if request.param == 18:
        yield request.getfixturevalue("world")
        return
    server = request.getfixturevalue("old_server")
    source = PostgresSource(name="shop", url=server.url(), project="old", memory=ProcessMemory())
    world = make_world(server=server, database="postgres", source=source)
    yield world
    world.stop_following()
    world.teardown()
    world.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO public")


def added(before: Counter[Any], changes: Counter[Any]) -> Counter[Any]:
    total = Counter(before)
    total.update(changes)
    return Counter({row: count for row, count in total.items() if count})


def test_a_root_its_branch_and_its_partition_are_followed_at_once(either: Any) -> None:
    either.execute(ROOT)
    either.execute("INSERT INTO pt SELECT n, 'old' FROM generate_series(2, 29) n")
    followed = ("pt", "pt1", "pt2", "pt3")
    either.declare(*followed)
    before = {name: either.bag(either.read(name)) for name in followed}
    follower = either.follow()
    either.execute("INSERT INTO pt VALUES (0, 'new'); UPDATE pt SET note = 'changed' WHERE id % 3 = 0")
    either.execute(
        "UPDATE pt SET id = 30 - id WHERE id = 29; DELETE FROM pt1 WHERE id = 5; DELETE FROM pt2 WHERE id = 15"
    )
    either.execute("UPDATE pt SET id = 5 WHERE id = 14")
    captures = either.captures(follower)
    for name in followed:
        assert either.signed(captures, either.relations[name])
        assert added(before[name], either.signed(captures, either.relations[name])) == either.bag(either.read(name))


def test_a_truncated_root_is_truncated_and_a_truncated_partition_stops_it(either: Any) -> None:
    either.execute(ROOT)
    either.declare("pt", "pt1")
    follower = either.follow()
    either.execute("INSERT INTO pt VALUES (1, 'a'), (21, 'b')")
    either.execute("TRUNCATE pt")
    truncated = [names for capture in either.captures(follower) for names in capture.truncated.values()]
    assert [sorted(name.name for name in names) for names in truncated] == [["pt", "pt1"]]
    either.execute("TRUNCATE pt1")
    with pytest.raises(SourceRefused, match="came or went") as refused:
        either.captures(follower)
    assert refused.value.code == "HW-344"
    assert "public.pt1 was truncated alone" in refused.value.detail


def test_later_partitions_are_followed_until_a_change_lacks_the_old_row(either: Any) -> None:
    either.execute(ROOT)
    either.declare("pt")
    follower = either.follow()
    either.execute("CREATE TABLE pt4 PARTITION OF pt FOR VALUES FROM (40) TO (50); INSERT INTO pt VALUES (41, 'x')")
    either.execute("CREATE TABLE pt5 (LIKE pt); ALTER TABLE pt ATTACH PARTITION pt5 FOR VALUES FROM (50) TO (60)")
    either.execute("INSERT INTO pt VALUES (51, 'y')")
    either.execute("ALTER TABLE pt4 REPLICA IDENTITY FULL; UPDATE pt SET note = 'z' WHERE id = 41")
    captures = either.captures(follower)
    assert either.signed(captures, either.relations["pt"]) == either.bag(either.read("pt"))
    follower = either.follow(captures[-1].transactions[-1].position)  # inserts go on, and so does a new connection
    either.execute("INSERT INTO pt VALUES (52, 'w')")
    assert either.signed(either.captures(follower), either.relations["pt"]) == Counter([("52", "'w'")])
    either.execute("UPDATE pt SET note = 'v' WHERE id = 51")  # the application's own UPDATE does not fail
    with pytest.raises(SourceRefused, match=r"partition public.pt5 of .shop.pt.") as refused:
        either.captures(follower)
    assert refused.value.code == "HW-345"


def test_a_root_without_a_key_is_refused_before_it_harms_the_application(either: Any) -> None:
    either.execute("CREATE TABLE log (id int, note text) PARTITION BY RANGE (id)")
    either.execute("CREATE TABLE log1 PARTITION OF log FOR VALUES FROM (0) TO (10)")
    refusals = either.source.inspect([RelationName(source="shop", name="log")]).refusals
    assert [refusal.code for refusal in refusals] == ["HW-343"]
    with pytest.raises(SourceRefused, match="no primary key"):
        either.declare("log")
    either.declare("log1")
    either.execute("CREATE TABLE log2 PARTITION OF log FOR VALUES FROM (10) TO (20)")
    follower = either.follow()
    either.execute("INSERT INTO log VALUES (1, 'a'), (11, 'b')")
    either.execute("UPDATE log SET note = 'c'; DELETE FROM log WHERE id = 11")
    assert either.signed(either.captures(follower), either.relations["log1"]) == either.bag(either.read("log1"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DROP TABLE pt1", "public.pt1 no longer belongs to it"),
        ("ALTER TABLE pt DETACH PARTITION pt1", "public.pt1 no longer belongs to it"),
        ("ALTER TABLE pt3 DETACH PARTITION pt31", "public.pt31 no longer belongs to it"),
        ("ALTER TABLE pt ATTACH PARTITION filled FOR VALUES FROM (60) TO (70)", "public.filled was attached with rows"),
        ("ALTER TABLE pt3 ATTACH PARTITION other FOR VALUES FROM (30) TO (40)", "public.other was attached with rows"),
        (
            MADE_FILLED_AND_ATTACHED,
            "public.made was attached with rows",
        ),
        (
            ATTACHED_WITH_PARTITIONS,
            "public.part was attached with rows",
        ),
        ("CREATE UNLOGGED TABLE hasty PARTITION OF pt FOR VALUES FROM (90) TO (91)", "public.hasty is not logged"),
    ],
)
def test_rows_that_come_or_go_without_the_log_are_noticed(world: Any, change: str, why: str) -> None:
    world.execute(ROOT)
    world.execute("CREATE TABLE filled (LIKE pt); INSERT INTO filled VALUES (61, 'there before')")
    world.execute("CREATE TABLE other (LIKE pt); INSERT INTO other VALUES (31, 'there before')")
    world.execute("INSERT INTO pt VALUES (1, 'a')")
    world.declare("pt")
    follower = world.follow()
    world.captures(follower)
    world.execute(change)
    for look in (follower._partitions.look, world.follow):
        with pytest.raises(SourceRefused) as refused:
            look()
        assert why in refused.value.detail
        assert refused.value.code == ("HW-332" if look == world.follow and "hasty" in change else "HW-344")


def test_a_partition_that_came_and_went_unseen_is_noticed(world: Any) -> None:
    for end in ("DROP TABLE pt4", "ALTER TABLE pt DETACH PARTITION pt4; ALTER TABLE pt4 RENAME TO kept"):
        world.execute(ROOT)
        world.declare("pt")
        world.execute("CREATE TABLE pt4 PARTITION OF pt FOR VALUES FROM (40) TO (50); INSERT INTO pt VALUES (41, 'x')")
        world.execute(end)
        with pytest.raises(SourceRefused, match="came or went"):
            world.captures(world.follow())
        world.teardown()
        world.execute("DROP TABLE pt")
    world.execute("CREATE TABLE stranger (id int PRIMARY KEY)")
    world.execute(ROOT)
    world.declare("pt", "stranger")
    world.execute("INSERT INTO stranger VALUES (1); DROP TABLE stranger")
    del world.relations["stranger"]
    assert world.captures(world.follow()) == []  # what nobody follows may go


def test_what_joined_is_remembered_in_the_next_run(world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTITIONED", world.server.url(world.database))
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "all.sql").write_text("SELECT p.id FROM shop.pt p")
    (tmp_path / "headwater.toml").write_text(
        f'[project]\nname = "{world.database}"\n[sources.shop]\nurl = "${{PARTITIONED}}"\n'
    )
    project = load(tmp_path)
    world.execute(ROOT)
    world.source = connect_source(project, "shop")
    world.declare("pt")
    captures = world.captures(world.follow())
    world.execute("CREATE TABLE pt4 PARTITION OF pt FOR VALUES FROM (40) TO (50); INSERT INTO pt VALUES (41, 'x')")
    captures = world.captures(world.follow())
    assert world.signed(captures, world.relations["pt"]) == Counter([("41", "'x'")])
    world.stop_following()
    world.execute("DROP TABLE pt4")
    world.source = connect_source(project, "shop")
    world.declare("pt")
    with pytest.raises(SourceRefused, match="came or went"):
        world.follow(captures[-1].transactions[-1].position)
    world.teardown()
    world.declare("pt")  # read again
    assert world.captures(world.follow()) == []


def test_a_savepoint_around_a_new_partition_is_no_alarm(world: Any) -> None:
    world.execute(ROOT)
    world.declare("pt")
    follower = world.follow()
    with world.connect() as connection:
        connection.execute("INSERT INTO pt VALUES (2, 'outer')")
        with connection.transaction():
            connection.execute("CREATE TABLE pt4 PARTITION OF pt FOR VALUES FROM (40) TO (50)")
        connection.execute("INSERT INTO pt VALUES (41, 'x')")
    assert world.signed(world.captures(follower), world.relations["pt"]) == world.bag(world.read("pt"))


def test_a_table_that_begins_to_be_inherited_from_is_noticed(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.execute("CREATE TABLE parent (id int PRIMARY KEY)")
    world.declare("parent")
    follower = world.follow()
    world.execute("CREATE TABLE child () INHERITS (parent)")
    assert follower.next_capture(0.0) is None, "it is looked at every few seconds"
    monkeypatch.setattr(follower, "_settings", CaptureSettings(partition_check_interval_seconds=0.0))
    with pytest.raises(SourceRefused, match="came or went"):
        follower.next_capture(0.0)


def test_a_publication_of_before_goes_on_where_it_was(world: Any) -> None:
    world.execute(ROOT)
    world.declare("pt")
    channel = f"headwater_{world.database}_shop"
    world.execute(f"ALTER PUBLICATION {channel} SET (publish_via_partition_root = true)")
    world.execute("INSERT INTO pt VALUES (1, 'a'), (11, 'b'); UPDATE pt SET note = 'c' WHERE id = 11")
    world.declare("pt")
    follower = world.follow()
    world.execute("INSERT INTO pt VALUES (2, 'd'); UPDATE pt SET note = 'e' WHERE id = 11")
    assert world.signed(world.captures(follower), world.relations["pt"]) == world.bag(world.read("pt"))


def test_a_partition_of_a_tree_that_nobody_follows_any_more_is_no_alarm(world: Any) -> None:
    world.execute(ROOT)
    world.declare("pt", "pt1", "pt3")
    del world.relations["pt"]
    world.declare("pt1", "pt3")
    follower = world.follow()
    world.execute("INSERT INTO pt VALUES (1, 'a'), (11, 'b'), (21, 'c')")
    captures = world.captures(follower)
    assert world.signed(captures, world.relations["pt1"]) == Counter([("1", "'a'")])
    assert world.signed(captures, world.relations["pt3"]) == Counter([("21", "'c'")])


def test_a_followed_table_that_becomes_a_partition_is_followed_in_both(world: Any) -> None:
    world.execute(ROOT)
    world.execute("CREATE TABLE alone (LIKE pt INCLUDING INDEXES)")
    world.declare("pt", "alone")
    follower = world.follow()
    world.execute("INSERT INTO alone VALUES (41, 'a')")
    world.execute("DELETE FROM alone")
    captures = world.captures(follower)
    world.execute("ALTER TABLE pt ATTACH PARTITION alone FOR VALUES FROM (40) TO (50)")
    world.execute("INSERT INTO pt VALUES (42, 'b')")
    captures += world.captures(follower)
    for name in ("pt", "alone"):
        assert world.signed(captures, world.relations[name]) == Counter([("42", "'b'")])


def test_a_reader_s_rights_on_the_root_suffice(world: Any) -> None:
    role = f"partition_reader_{world.database}"
    world.execute(ROOT)
    world.execute(f"CREATE ROLE {role} LOGIN REPLICATION; GRANT SELECT ON pt TO {role}")
    name = RelationName(source="shop", name="pt")
    reader = PostgresSource(name="shop", url=world.server.url(world.database, role), project=world.database)
    try:
        for statement in reader.inspect([name]).owner_sql:
            world.execute(statement)
        world.source = reader
        world.declare("pt")
        world.execute("CREATE TABLE pt5 (LIKE pt)")
        world.execute("ALTER TABLE pt ATTACH PARTITION pt5 FOR VALUES FROM (50) TO (60)")
        world.execute("INSERT INTO pt VALUES (51, 'x')")
        assert world.signed(world.captures(world.follow()), world.relations["pt"]) == Counter([("51", "'x'")])
    finally:
        world.stop_following()
        world.source = PostgresSource(name="shop", url=world.server.url(world.database), project=world.database)
        world.teardown()
        world.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
