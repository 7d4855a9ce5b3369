from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql

from headwater.errors import SourceLost, SourceRefused, SourceUnavailable
from headwater.position import Position
from headwater.relation import COUNT, Identity, Relation, RelationName
from headwater.sources.embedded import EmbeddedServer
from headwater.sources.postgres import PostgresSource, gathering, row_buffer
from headwater.sources.postgres import follower as follower_module
from headwater.sources.postgres.follower import PostgresFollower
from headwater.sources.postgres.probing import probe_query
from headwater.transaction import ORDINAL, Capture, Transaction


@dataclass
class World:
    """A database, a source on it, and what its follower returned so far."""

    server: EmbeddedServer
    database: str
    source: PostgresSource
    relations: dict[str, Relation] = field(default_factory=dict)
    _follower: PostgresFollower | None = None

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        return self.server.execute(sql, database=self.database)

    def connect(self, user: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(self.server.url(self.database, user))

    def declare(self, *names: str) -> None:
        wanted = [RelationName(source="shop", name=name) for name in names]
        self.source.prepare(wanted)
        self.relations = {relation.name.name: relation for relation in self.source.inspect(wanted).relations}

    def follow(self, after: Position | None = None) -> PostgresFollower:
        self.stop_following()
        self._follower = self.source.follow(tuple(self.relations.values()), after)
        return self._follower

    def stop_following(self) -> None:
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def captures(self, follower: PostgresFollower, position: Position | None = None) -> list[Capture]:
        """Follow to a position, the present one if none is given."""
        if position is None:
            with self.source.snapshot() as snapshot:
                position = snapshot.position
        follower.hasten(position)
        found = []
        deadline = time.monotonic() + 20
        while follower.followed_to() < position:
            assert time.monotonic() < deadline
            if (capture := follower.next_capture(5.0)) is not None:
                found.append(capture)
        return found

    def read(self, name: str) -> pa.Table:
        relation = self.relations[name]
        with self.source.snapshot() as snapshot:
            return whole(snapshot, relation)


def whole(snapshot: Any, relation: Relation) -> pa.Table:
    tables = [
        table
        for chunk in snapshot.chunks(relation, 1_000)
        for table in snapshot.read(relation, relation.column_names, chunk)
    ]
    return pa.concat_tables(tables) if tables else relation.arrow_schema().empty_table()


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(repr, row.values())) for row in table.to_pylist())


def signed(captures: Sequence[Capture], relation: Relation) -> Counter[tuple[Any, ...]]:
    total: Counter[tuple[Any, ...]] = Counter()
    for capture in captures:
        for row in capture.rows.get(relation.name, pa.table({})).to_pylist():
            count = row.pop(COUNT)
            row.pop(ORDINAL)
            total[tuple(map(repr, row.values()))] += count
    return Counter({row: count for row, count in total.items() if count})


def transactions(captures: Sequence[Capture]) -> list[Transaction]:
    return [transaction for capture in captures for transaction in capture.transactions]


@pytest.fixture
def world(postgres_server: EmbeddedServer, postgres_database: Callable[[], str]) -> Iterator[World]:
    database = postgres_database()
    source = PostgresSource(name="shop", url=postgres_server.url(database), project=database)
    made = World(server=postgres_server, database=database, source=source)
    yield made
    made.stop_following()
    source.teardown()


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


def test_every_type_reads_the_same_from_the_log_and_from_a_snapshot(world: World) -> None:
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
    assert second["by"] == b"\xde\xad\xbe\xef\x00"
    assert read["t"].to_pylist()[0] is None
    assert {name for name, _ in everything.unusable} == {"pt", "big", "tiny", "mm"}
    world.execute("UPDATE everything SET i4 = coalesce(i4, 0) / 2; DELETE FROM everything WHERE id < 3")
    captures += world.captures(follower)
    assert signed(captures, everything) == bag(world.read("everything"))


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
def test_a_value_that_cannot_be_kept_exactly_is_refused_by_name(world: World, column: str, value: str) -> None:
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


def test_changes_net_to_what_is_there(world: World) -> None:
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
    assert len(transactions(captures)) == 2
    for name, relation in world.relations.items():
        assert signed(captures, relation) == bag(world.read(name))
    assert bag(world.read("sales"))["1", "Decimal('5.00')"] == 2
    ordinals = captures[-1].rows[world.relations["notes"].name][ORDINAL].to_pylist()
    assert ordinals[-1] == len(captures[-1].transactions) - 1


def test_an_unchanged_large_value_comes_from_the_old_row(world: World) -> None:
    world.execute(
        "CREATE TABLE papers (id int PRIMARY KEY, n int, body text); ALTER TABLE papers ALTER body SET STORAGE EXTERNAL"
    )
    world.declare("papers")
    follower = world.follow()
    world.execute("INSERT INTO papers VALUES (1, 1, repeat('x', 100000)), (2, 1, NULL)")
    world.execute("UPDATE papers SET n = 2")
    captures = world.captures(follower)
    assert signed(captures, world.relations["papers"]) == bag(world.read("papers"))


def test_truncate_is_told_with_the_rows_written_after_it(world: World) -> None:
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
    third = transactions(captures)[1]
    assert told == [(third.identity, (sales.name,))]
    assert signed(captures, sales) == Counter([("7",), ("4",), ("8",)])
    assert signed(captures, world.relations["notes"]) == Counter([("6",)])


def test_a_large_transaction_goes_through_files(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_buffer, "SEGMENT_ROWS", 5_000)
    monkeypatch.setattr(gathering, "SPILL_ROWS", 20_000)
    world.execute("CREATE TABLE sales (id int PRIMARY KEY, text text)")
    world.declare("sales")
    follower = world.follow()
    world.execute("INSERT INTO sales VALUES (-1, 'before')")
    world.execute(
        "INSERT INTO sales SELECT n, 'text ' || n FROM generate_series(1, 60000) n; DELETE FROM sales WHERE id % 2 = 0"
    )
    world.execute("INSERT INTO sales VALUES (-2, 'after')")
    captures = world.captures(follower)
    assert len(transactions(captures)) == 3
    assert signed(captures, world.relations["sales"]) == bag(world.read("sales"))


def test_what_was_not_acknowledged_comes_again_and_is_dropped_by_position(world: World) -> None:
    world.execute("CREATE TABLE sales (id int)")
    world.declare("sales")
    follower = world.follow()
    for number in range(3):
        world.execute(f"INSERT INTO sales VALUES ({number})")
    first = transactions(world.captures(follower))
    again = transactions(world.captures(world.follow()))
    assert again == first
    later = transactions(world.captures(world.follow(after=first[1].position)))
    assert later == first[2:]


def test_what_was_acknowledged_is_forgotten_and_an_idle_source_holds_nothing_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_module, "_STATUS_SECONDS", 0.02)
    world.execute("CREATE TABLE sales (id int); CREATE TABLE other (id int)")
    world.declare("sales")
    follower = world.follow()
    world.execute("INSERT INTO sales VALUES (1)")
    found = transactions(world.captures(follower))
    follower.acknowledge(found[-1].position)
    follower.next_capture(0.05)
    world.execute("INSERT INTO other SELECT generate_series(1, 10000)")
    world.captures(follower)
    target = world.execute("SELECT pg_current_wal_flush_lsn() - '0/0'")[0][0]
    confirmed = 0
    for _ in range(200):
        follower.next_capture(0.02)
        confirmed = world.execute(
            "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots"
            f" WHERE slot_name = 'headwater_{world.database}'"
        )[0][0]
        if confirmed >= target:
            break
    assert confirmed >= target
    world.execute("INSERT INTO sales VALUES (2)")
    world.captures(follower)
    assert len(transactions(world.captures(world.follow()))) == 1


def test_a_snapshot_knows_which_overlapping_transactions_it_saw(world: World) -> None:
    world.execute("CREATE TABLE sales (id int)")
    world.declare("sales")
    follower = world.follow()
    with world.connect() as early, world.connect() as late:
        early.execute("INSERT INTO sales VALUES (1)")
        late.execute("INSERT INTO sales VALUES (2)")
        late.commit()
        with world.source.snapshot() as snapshot:
            early.commit()
            seen, position = snapshot.seen, snapshot.position
            shown = bag(whole(snapshot, world.relations["sales"]))
    captures = world.captures(follower)
    by_row = {
        capture.rows[world.relations["sales"].name]["id"].to_pylist()[row]: capture.transactions[ordinal]
        for capture in captures
        for row, ordinal in enumerate(capture.rows[world.relations["sales"].name][ORDINAL].to_pylist())
    }
    assert shown == Counter([("2",)])
    assert {number: seen.sees(transaction.identity) for number, transaction in by_row.items()} == {1: False, 2: True}
    assert by_row[2].position <= position


@pytest.mark.parametrize("writer", ["asynchronous commits", "an open transaction"])
def test_what_is_seen_before_it_is_logged_is_reached_soon(world: World, writer: str) -> None:
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


def test_hasten_wakes_a_follower_that_sleeps(world: World) -> None:
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
                while follower.followed_to() < snapshot.position:
                    assert time.monotonic() < deadline
                    time.sleep(0.001)
    finally:
        reached.set()
        world.execute("INSERT INTO sales VALUES (2)")
        thread.join()


def test_a_probe_finds_each_matching_row_as_often_as_it_is_there(world: World) -> None:
    world.execute(
        "CREATE TABLE sales (id int, store char(4), day date, at timestamptz, price numeric(8,2), who text, u uuid,"
        " f float8, ip inet, by bytea, ok bool);"
        "INSERT INTO sales SELECT n % 5, 's' || n % 3, date '2024-01-01' + n % 4, timestamptz '2024-01-01 00:00+00',"
        " n % 7, CASE WHEN n % 2 = 0 THEN 'a\"\\b' END,"
        " ('00000000-0000-0000-0000-00000000000' || n % 3)::uuid, n % 2 * -0.0,"
        " '10.0.0.1', '\\x00ff', n % 2 = 0 FROM generate_series(1, 60) n"
    )
    world.declare("sales")
    sales = world.relations["sales"]
    everything = world.read("sales")
    rows = everything.to_pylist()
    keys: dict[str, pa.Array] = {
        "id": pa.array([1, 3, 99], pa.int64()),
        "store": pa.array(["s1", "s2 ", "S0", "it's", "nul\x00"]),
        "day": pa.array([rows[0]["day"]]),
        "at": pa.array([rows[0]["at"]], pa.timestamp("us", tz="UTC")),
        "price": pa.array([rows[0]["price"]], pa.decimal128(20, 4)),
        "who": pa.array(['a"\\b', "NULL", ""]),
        "u": pa.array([rows[0]["u"], rows[0]["u"].upper() + "A", "not one"]),
        "f": pa.array([0.0, -0.0, float("nan")]),
        "ip": pa.array(["10.0.0.1"]),
        "by": pa.array([b"\x00\xff"]),
        "ok": pa.array([True]),
    }
    with world.source.snapshot() as snapshot:
        for name, values in keys.items():
            answer = snapshot.probe(sales, sales.column_names, (name,), pa.table({name: values}))
            expected = [row for row in rows if row[name] is not None and row[name] in values.to_pylist()]
            assert bag(answer) == Counter(tuple(map(repr, row.values())) for row in expected), name
            assert name in ("store", "u") or expected
        both = pa.table({"id": [1, 2], "store": ["s1", "s2"]})
        answer = snapshot.probe(sales, ("store", "id"), ("id", "store"), both)
        assert answer.schema == sales.arrow_schema(("store", "id"))
        assert bag(answer) == Counter(
            (repr(row["store"]), repr(row["id"])) for row in rows if (row["id"], row["store"]) in [(1, "s1"), (2, "s2")]
        )
        assert bag(snapshot.probe(sales, sales.column_names, (), pa.table({}))) == bag(everything)
        assert snapshot.probe(sales, ("id",), ("id",), both.select(["id"]).slice(0, 0)).num_rows == 0


def test_a_probe_uses_the_index_whatever_the_width_of_its_keys(world: World) -> None:
    world.execute(
        "CREATE TABLE sales (id int PRIMARY KEY, who varchar(20), c char(8));"
        "INSERT INTO sales SELECT n, 'w' || n, 'c' || n FROM generate_series(1, 100000) n;"
        "CREATE INDEX ON sales (who); CREATE INDEX ON sales (c); ANALYZE sales"
    )
    world.declare("sales")
    sales = world.relations["sales"]
    assert sales.indexes == (("id",), ("who",), ("c",))
    numbers = list(range(1, 100_000, 100))
    for name, values in {
        "id": pa.array(numbers, pa.int64()),
        "who": pa.array([f"w{number}" for number in numbers]),
        "c": pa.array([f"c{number}" for number in numbers]),
    }.items():
        query = probe_query(sales, ("id",), (name,), pa.table({name: values}))
        with world.source._address.open() as connection:
            plan = "\n".join(row[0] for row in connection.execute(sql.SQL("EXPLAIN {}").format(query)))
        assert "Index" in plan, plan
        assert "Seq Scan" not in plan, plan


def test_chunks_hold_every_row_once_and_mean_the_same_in_every_snapshot(world: World) -> None:
    world.execute(
        "CREATE TABLE sales (id int, line text, PRIMARY KEY (line, id));"
        "INSERT INTO sales SELECT n, 'it''s ' || n % 5000 FROM generate_series(1, 20000) n; ANALYZE sales"
    )
    world.declare("sales")
    sales = world.relations["sales"]
    assert sales.key == ("line", "id")
    with world.source.snapshot() as snapshot:
        chunks = snapshot.chunks(sales, 3_000)
    assert len(chunks) > 4
    world.execute("INSERT INTO sales VALUES (0, 'zzz'), (0, '')")
    with world.source.snapshot() as snapshot:
        tables = [table for chunk in chunks for table in snapshot.read(sales, ("id", "line"), chunk)]
        assert len(snapshot.chunks(sales, 1_000_000)) == 1
    assert pa.concat_tables(tables).num_rows == 20_002
    assert max(bag(pa.concat_tables(tables)).values()) == 1


def test_threads_share_a_snapshot_and_an_abandoned_read_harms_nobody(world: World) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY); INSERT INTO sales SELECT generate_series(1, 30000)")
    world.declare("sales")
    sales = world.relations["sales"]
    with world.source.snapshot() as snapshot:
        world.execute("DELETE FROM sales")
        counts: list[int] = []
        threads = [threading.Thread(target=lambda: counts.append(whole(snapshot, sales).num_rows)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [30_000] * 6
        assert snapshot.is_valid()
        reading = snapshot.read(sales, ("id",), snapshot.chunks(sales, 10**9)[0])
        next(reading)
        reading.close()  # type: ignore[attr-defined]
    assert not snapshot.is_valid()
    assert world.read("sales").num_rows == 0


def test_a_bootstrap_waits_for_transactions_that_were_open(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.execute("CREATE TABLE sales (id int); CREATE TABLE late (id int)")
    world.declare("sales")
    with world.connect() as connection:
        connection.execute("SET application_name = 'forgetful'")
        connection.execute("INSERT INTO late VALUES (1)")
        timer = threading.Timer(0.4, connection.commit)
        timer.start()
        with world.source.snapshot(bootstrap=True) as snapshot:
            world.relations = {
                r.name.name: r for r in world.source.inspect([RelationName(source="shop", name="late")]).relations
            }
            assert whole(snapshot, world.relations["late"]).num_rows == 1
        timer.join()
    assert "forgetful" in caplog.text


def test_a_table_that_changes_its_shape_is_refused_by_name(world: World) -> None:
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
        world.source.teardown()
    world.execute("DROP TABLE IF EXISTS sales, sold; CREATE TABLE sales (id int PRIMARY KEY, code varchar(3))")
    world.declare("sales")
    follower = world.follow()
    world.execute("INSERT INTO sales VALUES (1, 'a')")
    world.execute("ALTER TABLE sales ADD COLUMN more int DEFAULT 5; ALTER TABLE sales ALTER code TYPE varchar(9)")
    world.execute("INSERT INTO sales VALUES (2, 'abcd', 7)")
    assert signed(world.captures(follower), world.relations["sales"]) == bag(world.read("sales"))


def test_partitions_come_under_the_name_of_their_root(world: World) -> None:
    world.execute(
        "CREATE TABLE sales (id int, day date) PARTITION BY RANGE (day);"
        "CREATE TABLE sales_old PARTITION OF sales FOR VALUES FROM (MINVALUE) TO ('2024-01-01');"
        "CREATE TABLE sales_new (day date, id int);"
        "ALTER TABLE sales ATTACH PARTITION sales_new FOR VALUES FROM ('2024-01-01') TO (MAXVALUE)"
    )
    world.declare("sales")
    follower = world.follow()
    world.execute("INSERT INTO sales VALUES (1, '2023-05-05'), (2, '2024-05-05')")
    world.execute("UPDATE sales SET day = '2025-01-01' WHERE id = 1")
    captures = world.captures(follower)
    assert signed(captures, world.relations["sales"]) == bag(world.read("sales"))


def test_generated_columns_do_not_break_the_owner_s_writes(world: World) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
    world.declare("sales")
    follower = world.follow()
    world.execute("INSERT INTO sales VALUES (1), (2)")
    world.execute("UPDATE sales SET id = 3 WHERE id = 1; DELETE FROM sales WHERE id = 2")
    assert world.relations["sales"].column_names == ("id", "twice")
    assert signed(world.captures(follower), world.relations["sales"]) == bag(world.read("sales"))
    world.execute("CREATE TABLE virtual (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL)")
    with pytest.raises(SourceRefused, match="cannot be followed"):
        world.declare("virtual")


def test_an_ordinary_account_is_told_what_the_owner_must_run(world: World) -> None:
    role = f"plain_{world.database}"
    world.execute(f"CREATE TABLE sales (id int PRIMARY KEY); CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    name = RelationName(source="shop", name="sales")
    url = world.server.url(world.database, f"{role}:secret")
    source = PostgresSource(name="shop", url=url, project=world.database)
    assert "secret" not in repr(source)
    with pytest.raises(SourceRefused, match="REPLICATION"):
        source.prepare([name])
    world.execute(f"ALTER ROLE {role} REPLICATION")
    inspection = source.inspect([name])
    assert not inspection.may_run_owner_sql
    assert inspection.relations[0].identity is Identity.KEY
    assert inspection.relations[0].key == ("id",)
    with pytest.raises(SourceRefused, match="needs its owner") as refused:
        source.prepare([name])
    for statement in inspection.owner_sql:
        assert statement in refused.value.hint
        world.execute(statement)
    assert source.inspect([name]).owner_sql == ()
    start = source.prepare([name])
    assert source.prepare([name]) == start
    relations = source.inspect([name]).relations
    follower = source.follow(relations, start)
    with source.snapshot(bootstrap=True) as snapshot, world.connect() as writer:
        assert whole(snapshot, relations[0]).num_rows == 0
        writer.execute("SET synchronous_commit = off")
        writer.execute("INSERT INTO sales VALUES (1)")
        with source.snapshot() as later:
            world.captures(follower, later.position)
    follower.close()
    source.close()
    assert len(world.source.teardown()) == 2
    assert (
        world.execute(f"SELECT slot_name FROM pg_replication_slots WHERE slot_name = 'headwater_{world.database}'")
        == []
    )
    assert world.execute("SELECT pubname FROM pg_publication") == []
    world.execute(f"DROP TABLE sales; DROP OWNED BY {role}; DROP ROLE {role}")


def test_relations_that_cannot_be_followed_are_refused(world: World) -> None:
    world.execute(
        "CREATE UNLOGGED TABLE hasty (id int); CREATE VIEW seen AS SELECT 1 AS id; CREATE TABLE parent (id int)"
    )
    world.execute("CREATE TABLE child () INHERITS (parent)")
    for name in ("hasty", "seen", "parent", "missing"):
        with pytest.raises(SourceRefused, match=name):
            world.declare(name)


def test_a_server_that_does_not_answer_or_refuses_is_named_without_the_password(world: World) -> None:
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
        with pytest.raises(SourceRefused, match="password authentication failed") as wrong:
            PostgresSource(name="shop", url=url, project="p").snapshot()
    finally:
        hba.write_text(before)
        world.execute("SELECT pg_reload_conf()")
        world.execute("DROP ROLE locked")
    for error in (down, unreadable, wrong):
        assert "secret" not in str(error.value)


def test_a_statement_that_takes_too_long_ends(world: World) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY)")
    world.declare("sales")
    source = PostgresSource(
        name="shop", url=world.server.url(world.database), project=world.database, probe_timeout_seconds=0.2
    )
    with world.connect() as locker, source.snapshot() as snapshot:
        locker.execute("LOCK TABLE sales IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(SourceUnavailable, match="too long"):
            snapshot.probe(world.relations["sales"], ("id",), ("id",), pa.table({"id": [1]}))
        assert not snapshot.is_valid()
    source.close()


def test_a_crash_spoils_snapshots_and_loses_nothing() -> None:
    directory = Path(tempfile.mkdtemp(prefix="headwater-test-"))
    try:
        with EmbeddedServer(directory, version=16, settings={"wal_level": "replica", "fsync": "off"}) as server:
            server.execute("CREATE TABLE sales (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED)")
            name = RelationName(source="shop", name="sales")
            source = PostgresSource(name="shop", url=server.url(), project="crash")
            with pytest.raises(SourceRefused, match="wal_level"):
                source.prepare([name])
            server.stop()
            server.settings["wal_level"] = "logical"
            server.start()
            source.prepare([name])
            relations = source.inspect([name]).relations
            assert relations[0].column_names == ("id",)
            world = World(server=server, database="postgres", source=source, relations={"sales": relations[0]})
            follower = world.follow()
            server.execute("INSERT INTO sales VALUES (1)")
            first = transactions(world.captures(follower))
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
            captures = world.captures(world.follow(after=first[-1].position))
            assert signed(captures, relations[0]) == Counter([("3",)])
            world.stop_following()
            assert source.teardown() == ("replication slot headwater_crash", "publication headwater_crash")
            assert source.teardown() == ()
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
            start = source.prepare([name])
            relations = source.inspect([name]).relations
            for _ in range(3):
                server.execute("INSERT INTO other VALUES (1, 'x')")
                server.execute("SELECT pg_switch_wal()")
            server.execute("CHECKPOINT")
            with pytest.raises(SourceLost, match="thrown away log"):
                source.follow(relations, start)
            with pytest.raises(SourceLost, match="thrown away log"):
                source.prepare([name])
            assert len(source.teardown()) == 2
            with pytest.raises(SourceLost, match="no replication slot"):
                source.follow(relations, start)
            server.stop()
            (directory / "standby.signal").touch()
            server.start()
            with pytest.raises(SourceRefused, match="standby"):
                source.prepare([name])
            with pytest.raises(SourceRefused, match="standby"):
                source.snapshot()
    finally:
        shutil.rmtree(directory)


def test_a_log_of_another_server_is_noticed(world: World) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY)")
    world.declare("sales")
    elsewhere = Position(source="shop", history="1:1", offset=1)
    with pytest.raises(SourceLost, match="not the server it was"):
        world.follow(after=elsewhere)


def test_a_table_taken_out_of_the_publication_is_noticed(world: World) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY); CREATE TABLE notes (id int)")
    world.declare("sales", "notes")
    world.execute(f"ALTER PUBLICATION headwater_{world.database} DROP TABLE notes")
    with pytest.raises(SourceRefused, match="no longer logs"):
        world.follow()
