from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.errors import SourceRefused
from headwater.model.position import are_reached
from headwater.model.relation import COUNT
from headwater.model.settings import CaptureSettings
from headwater.model.transaction import ORDINAL
from headwater.sources.postgres import PostgresSource, row_buffer

TYPES_SQL = """
CREATE TYPE mood AS ENUM ('sad', 'so "happy"');
CREATE DOMAIN price AS numeric(8,2) CHECK (VALUE >= 0);
CREATE DOMAIN code AS char(5);
CREATE TABLE everything (
    id int PRIMARY KEY, b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, n2 numeric(12,2),
    n38 numeric(38,10), t text, vc varchar(20), c char(6), nm name, ch "char", u uuid, j json, jb jsonb, ip inet,
    net cidr, mac macaddr, tm time, tmz timetz, iv interval, by bytea, d date, ts timestamp, tsz timestamptz,
    m mood, p price, cd code, ai int[], at text[], an numeric(10,2)[], ad date[], af float8[], au uuid[], ab bool[],
    pt point, big numeric(50,2), x xml, tiny numeric(2,-2), mm mood[]
)
"""
TYPES_ROWS = """
INSERT INTO everything (id) VALUES (1);
INSERT INTO everything VALUES (2, true, -32768, 2147483647, -9223372036854775808, 1.1, 0.1,
    12345678901234567890.123456789, 1.50, 1234567890123456789012345678.0123456789,
    'it''s "quoted", a\\b' || chr(10) || chr(13) || 'ünïcode ☃ 𝄞', '', 'ab',
    'nm', 'x', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '{"a":  1}', '{"a":  1}', '10.0.0.1', '10.0.0.0/8',
    '08:00:2b:01:02:03', '12:00:00.5', '12:00:00+02', '1 year 2 days 03:04:05.5', '\\xdeadbeef00', '9999-12-31',
    '2024-02-29 12:34:56.123456', '2024-02-29 12:34:56.1+05:30', 'so "happy"', 9.99, 'xy', '{1,NULL,3}',
    ARRAY['a', NULL, 'NULL', '', 'q"u\\o,{te}', E'line\\nbreak'], '{1.5,2}', '{2024-01-01,0001-01-01}',
    '{NaN,Infinity,-0}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{t,f,NULL}', '(1,2)', 1, NULL, 100, '{sad}');
INSERT INTO everything (id, b, f4, f8, n, t, vc, c, by, d, ts, tsz, ai, at) VALUES
    (3, false, 'NaN', '-Infinity', 0, '', ' ', '', '', '0001-01-01', '0001-01-01 00:00:00',
     '9999-12-31 23:59:59.999999+00',
     '{}', '{}'),
    (4, false, 1e-45, 1e308, -0.000000000000000001, E'\\\\.', 'NULL', ' a ', '\\x',
     '2000-01-01', '1969-12-31 23:59:59.9', '1900-01-01 00:00+00',
     '{-1}', '{""}'),
    (5, false, 3.4028235e38, -0.0, 1.10000000000000000000000000000000000000000000,
     E'\\n', E'\\t', E'a\\n', '\\x00', '1582-10-10', '1582-10-10 00:00',
     '1582-10-10 00:00+00', NULL, NULL)
"""


def test_every_type_reads_the_same_from_the_log_and_from_a_snapshot(world: Any) -> None:
    world.execute(TYPES_SQL)
    world.declare("everything")
    follower = world.follow()
    world.execute(TYPES_ROWS)
    captures = world.captures(follower)
    everything = world.relations["everything"]
    logged = pa.concat_tables([capture.rows[everything.name] for capture in captures])
    logged = logged.drop_columns([ORDINAL, COUNT]).sort_by("id").combine_chunks()
    read = world.read("everything").sort_by("id").combine_chunks()
    assert logged.schema == read.schema == everything.arrow_schema()
    for name in read.column_names:
        assert repr(logged[name].to_pylist()) == repr(read[name].to_pylist()), name
    second = read.slice(1, 1).to_pylist()[0]
    assert second["c"] == "ab"
    assert second["cd"] == "xy"
    assert second["vc"] == ""
    assert second["u"] == "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
    assert second["at"] == ["a", None, "NULL", "", 'q"u\\o,{te}', "line\nbreak"]
    assert repr(second["af"]) == "[nan, inf, 0.0]"
    assert repr(read["f8"].to_pylist()[4]) == "0.0", "it was -0.0"
    assert second["by"] == b"\xde\xad\xbe\xef\x00"
    assert read["t"].to_pylist()[0] is None
    assert {name for name, _ in everything.unusable} == {"pt", "big", "tiny", "mm"}
    world.execute("UPDATE everything SET i4 = coalesce(i4, 0) / 2; DELETE FROM everything WHERE id < 3")
    captures += world.captures(follower)
    assert world.signed(captures, everything) == world.bag(world.read("everything"))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("n numeric", "'NaN'"),
        ("n numeric", "'Infinity'"),
        ("n numeric", "1e30"),
        ("n numeric", "0.0000000000000000001"),
        ("n numeric(5,2)", "'NaN'"),
        ("n date", "'infinity'"),
        ("n date", "'0044-03-15 BC'"),
        ("n timestamp", "'10000-01-01'"),
        ("n timestamptz", "'-infinity'"),
        ("n int[]", "'{{1,2},{3,4}}'"),
        ("n int[]", "'[0:1]={1,2}'"),
    ],
)
def test_a_value_that_cannot_be_kept_exactly_is_refused_by_name(world: Any, column: str, value: str) -> None:
    world.execute(f"CREATE TABLE odd (id int PRIMARY KEY, {column})")
    world.declare("odd")
    follower = world.follow()
    world.execute(f"INSERT INTO odd VALUES (1, NULL), (2, {value})")
    with pytest.raises(SourceRefused, match=r"odd.* holds a value") as logged:
        world.captures(follower)
    with pytest.raises(SourceRefused) as read:
        world.read("odd")
    assert str(logged.value) == str(read.value)
    assert 'column "n"' in read.value.detail


def test_changes_net_to_what_is_there(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int, amount numeric(8,2)); CREATE TABLE notes (id int, text text)")
    world.declare("sales", "notes")
    follower = world.follow()
    with world.connect() as connection:
        connection.execute("INSERT INTO sales VALUES (1, 1), (1, 1), (2, 2), (3, NULL)")
        connection.execute("INSERT INTO notes VALUES (1, 'a'), (1, '')")
        connection.commit()
        connection.execute("UPDATE sales SET amount = 5 WHERE id = 1")
        connection.execute("SAVEPOINT a")
        connection.execute("DELETE FROM sales")
        connection.execute("ROLLBACK TO SAVEPOINT a")
        connection.execute("SAVEPOINT b")
        connection.execute("DELETE FROM sales WHERE id = 2")
        connection.execute("RELEASE SAVEPOINT b")
        connection.execute("UPDATE notes SET text = NULL WHERE text = ''")
        connection.commit()
        connection.execute("INSERT INTO sales VALUES (9, 9)")
        connection.rollback()
    captures = world.captures(follower)
    assert len(world.transactions(captures)) == 2
    for name, relation in world.relations.items():
        assert world.signed(captures, relation) == world.bag(world.read(name))
    assert world.bag(world.read("sales"))["1", "Decimal('5.00')"] == 2
    ordinals = captures[-1].rows[world.relations["notes"].name][ORDINAL].to_pylist()
    assert ordinals[-1] == len(captures[-1].transactions) - 1


def test_two_databases_of_one_server_are_two_sources(world: Any, postgres_database: Any, make_world: Any) -> None:
    database = postgres_database()
    source = PostgresSource("stock", world.server.url(database), world.database)
    other = make_world(server=world.server, database=database, source=source)
    found = []
    for each in (world, other):
        each.execute("CREATE TABLE sales (id int)")
        each.declare("sales")
        follower = each.follow()
        each.execute("INSERT INTO sales VALUES (1)")
        found.append(each.transactions(each.captures(follower))[0].position.source)
    other.stop_following()
    assert other.teardown()
    assert found == ["shop", "stock"]


def test_an_unchanged_large_value_comes_from_the_old_row(world: Any) -> None:
    world.execute(
        "CREATE TABLE papers (id int PRIMARY KEY, n int, body text); ALTER TABLE papers ALTER body SET STORAGE EXTERNAL"
    )
    world.declare("papers")
    follower = world.follow()
    world.execute("INSERT INTO papers VALUES (1, 1, repeat('x', 100000)), (2, 1, NULL)")
    world.execute("UPDATE papers SET n = 2")
    captures = world.captures(follower)
    assert world.signed(captures, world.relations["papers"]) == world.bag(world.read("papers"))


def test_truncate_is_told_with_the_rows_written_after_it(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int); CREATE TABLE notes (id int)")
    world.declare("sales", "notes")
    world.execute("INSERT INTO sales VALUES (1), (2); INSERT INTO notes VALUES (5)")
    follower = world.follow()
    world.captures(follower)
    world.execute("INSERT INTO sales VALUES (7)")
    world.execute(
        "INSERT INTO sales VALUES (3); INSERT INTO notes VALUES (6); TRUNCATE sales; INSERT INTO sales VALUES (4)"
    )
    world.execute("INSERT INTO sales VALUES (8)")
    captures = world.captures(follower)
    sales = world.relations["sales"]
    told = [
        (capture.transactions[ordinal].identity, names)
        for capture in captures
        for ordinal, names in capture.truncated.items()
    ]
    third = world.transactions(captures)[1]
    assert told == [(third.identity, (sales.name,))]
    assert world.signed(captures, sales) == Counter([("7",), ("4",), ("8",)])
    assert world.signed(captures, world.relations["notes"]) == Counter([("6",)])


def test_a_large_transaction_goes_through_files(world: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(row_buffer, "FULL_ROWS", 5_000)
    world.set_capture(CaptureSettings(), spill_bytes=500_000)
    world.execute("CREATE TABLE sales (id int PRIMARY KEY, text text)")
    world.declare("sales")
    follower = world.follow()
    world.execute("INSERT INTO sales VALUES (-1, 'before')")
    world.execute(
        "INSERT INTO sales SELECT n, 'text ' || n FROM generate_series(1, 60000) n; DELETE FROM sales WHERE id % 2 = 0"
    )
    world.execute("INSERT INTO sales VALUES (-2, 'after')")
    allocated = pa.total_allocated_bytes()
    captures = world.captures(follower)
    assert pa.total_allocated_bytes() - allocated < max(
        table.nbytes for capture in captures for table in capture.rows.values()
    )
    assert not list(tmp_path.iterdir())
    assert len(world.transactions(captures)) == 3
    assert world.signed(captures, world.relations["sales"]) == world.bag(world.read("sales"))


def test_what_was_acknowledged_is_forgotten_and_nothing_else(world: Any) -> None:
    """Nothing for us is no reason: that, too, has to be durable first, or a restart would find more forgotten."""
    world.execute("CREATE TABLE sales (id int); CREATE TABLE other (id int)")
    world.declare("sales")
    follower = world.follow()
    world.execute("INSERT INTO sales VALUES (1)")
    found = world.transactions(world.captures(follower))
    follower.acknowledge(found[-1].position)
    follower.next_capture(0.05)
    world.execute("INSERT INTO other SELECT generate_series(1, 10000)")
    world.captures(follower)
    [idle_to] = follower.followed_to().values()
    assert idle_to.offset > found[-1].position.offset + 10_000

    def confirmed() -> int:
        follower.next_capture(0.02)
        [(offset,)] = world.execute(
            f"SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = '{world.slot}'"
        )
        return int(offset)

    assert {confirmed() for _ in range(20)} == {found[-1].position.offset}
    follower.acknowledge(idle_to)
    deadline = time.monotonic() + 20
    while confirmed() < idle_to.offset:
        assert time.monotonic() < deadline
    world.execute("INSERT INTO sales VALUES (2)")
    world.captures(follower)
    assert len(world.transactions(world.captures(world.follow()))) == 1


@pytest.mark.parametrize("writer", ["asynchronous commits", "an open transaction"])
def test_what_is_seen_before_it_is_logged_is_reached_soon(world: Any, writer: str) -> None:
    world.execute("CREATE TABLE sales (id int)")
    world.declare("sales")
    follower = world.follow()
    world.captures(follower)
    waits = []
    with world.connect() as connection:
        connection.autocommit = writer == "asynchronous commits"
        connection.execute("SET synchronous_commit = off")
        for number in range(20):
            connection.execute("INSERT INTO sales VALUES (%s)", (number,))
            with world.source.snapshot() as snapshot:
                started_at = time.monotonic()
                world.captures(follower, snapshot.position)
                waits.append(time.monotonic() - started_at)
    assert sorted(waits)[len(waits) // 2] < 0.1


def test_hasten_wakes_a_follower_that_sleeps(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int)")
    world.declare("sales")
    follower = world.follow()
    world.captures(follower)
    reached = threading.Event()

    def run() -> None:
        while not reached.is_set():
            follower.next_capture(5.0)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        with world.connect() as connection:
            connection.execute("INSERT INTO sales VALUES (1)")
            with world.source.snapshot() as snapshot:
                follower.hasten(snapshot.position)
                deadline = time.monotonic() + 2
                while not are_reached(snapshot.positions, follower.followed_to()):
                    assert time.monotonic() < deadline
                    time.sleep(0.001)
    finally:
        reached.set()
        world.execute("INSERT INTO sales VALUES (2)")
        thread.join()
