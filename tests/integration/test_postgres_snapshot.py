from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from headwater.deltas.extent import WHOLE
from headwater.errors import SourceUnavailable
from headwater.model.relation import RelationName
from headwater.model.transaction import ORDINAL
from headwater.sources.postgres import PostgresSource
from headwater.sources.postgres.probing import probe_query


def test_a_snapshot_knows_which_overlapping_transactions_it_saw(world: Any) -> None:
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
            shown = world.bag(world.whole(snapshot, world.relations["sales"]))
    captures = world.captures(follower)
    by_row = {
        capture.rows[world.relations["sales"].name]["id"].to_pylist()[row]: capture.transactions[ordinal]
        for capture in captures
        for row, ordinal in enumerate(capture.rows[world.relations["sales"].name][ORDINAL].to_pylist())
    }
    assert shown == Counter([("2",)])
    assert {number: seen.sees(transaction.identity, "") for number, transaction in by_row.items()} == {
        1: False,
        2: True,
    }
    assert by_row[2].position <= position


def test_a_probe_finds_each_matching_row_as_often_as_it_is_there(world: Any) -> None:
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
            assert world.bag(answer) == Counter(tuple(map(repr, row.values())) for row in expected), name
            assert name in ("store", "u") or expected
        both = pa.table({"id": [1, 2], "store": ["s1", "s2"]})
        answer = snapshot.probe(sales, ("store", "id"), ("id", "store"), both)
        assert answer.schema == sales.arrow_schema(("store", "id"))
        assert world.bag(answer) == Counter(
            (repr(row["store"]), repr(row["id"])) for row in rows if (row["id"], row["store"]) in [(1, "s1"), (2, "s2")]
        )
        assert world.bag(snapshot.probe(sales, sales.column_names, (), pa.table({}))) == world.bag(everything)
        assert snapshot.probe(sales, ("id",), ("id",), both.select(["id"]).slice(0, 0)).num_rows == 0


def test_a_probe_uses_the_index_whatever_the_width_of_its_keys(world: Any) -> None:
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


def test_chunks_hold_every_row_once_and_mean_the_same_in_every_snapshot(world: Any) -> None:
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
        tables = [table for chunk in chunks for table in snapshot.read(sales, ("id", "line"), chunk, WHOLE)]
        assert len(snapshot.chunks(sales, 1_000_000)) == 1
    assert pa.concat_tables(tables).num_rows == 20_002
    assert max(world.bag(pa.concat_tables(tables)).values()) == 1


def test_a_column_alone_keeps_its_nulls_and_empty_strings(world: Any) -> None:
    world.execute("CREATE TABLE lonely (text text); INSERT INTO lonely VALUES (NULL), (''), (NULL), ('a'), (NULL)")
    world.declare("lonely")
    expected = Counter([("None",), ("None",), ("None",), ("''",), ("'a'",)])
    assert world.bag(world.read("lonely")) == expected
    with world.source.snapshot() as snapshot:
        assert world.bag(snapshot.probe(world.relations["lonely"], ("text",), (), pa.table({}))) == expected


def test_threads_share_a_snapshot_and_an_abandoned_read_harms_nobody(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY); INSERT INTO sales SELECT generate_series(1, 30000)")
    world.declare("sales")
    sales = world.relations["sales"]
    with world.source.snapshot() as snapshot:
        world.execute("DELETE FROM sales")
        counts: list[int] = []
        threads = [
            threading.Thread(target=lambda: counts.append(world.whole(snapshot, sales).num_rows)) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == [30_000] * 6
        assert snapshot.is_valid()
        reading = snapshot.read(sales, ("id",), snapshot.chunks(sales, 10**9)[0], WHOLE)
        next(reading)
        reading.close()  # type: ignore[attr-defined]
    assert not snapshot.is_valid()
    assert world.read("sales").num_rows == 0


def test_a_bootstrap_waits_for_transactions_that_were_open(world: Any, caplog: pytest.LogCaptureFixture) -> None:
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
            assert world.whole(snapshot, world.relations["late"]).num_rows == 1
        timer.join()
    assert "forgetful" in caplog.text


def test_a_statement_that_takes_too_long_ends(world: Any) -> None:
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


@pytest.mark.parametrize("table", ["plain", "parted"])
def test_answers_of_a_table_that_was_rewritten_meanwhile_do_not_count(world: Any, table: str) -> None:
    """To a snapshot that is older than the rewriting the table is empty, and PostgreSQL does not say so."""
    world.execute(
        "CREATE TABLE plain (id int PRIMARY KEY, n int); INSERT INTO plain SELECT g, g FROM generate_series(1, 9) g;"
        "CREATE TABLE parted (id int PRIMARY KEY, n int) PARTITION BY RANGE (id);"
        "CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (99); INSERT INTO parted SELECT * FROM plain"
    )
    world.declare("plain", "parted")
    keys, relation = pa.table({"id": pa.array([1, 2], pa.int32())}), world.relations[table]
    with world.source.snapshot() as good:
        assert good.probe(relation, ("id",), ("id",), keys).num_rows == 2
        assert good.is_valid()
        assert world.whole(good, relation).num_rows == 9
    with world.source.snapshot() as probing, world.source.snapshot() as reading, world.source.snapshot() as other:
        world.execute(f"ALTER TABLE {table} ALTER n TYPE bigint")
        assert probing.probe(relation, ("id",), ("id",), keys).num_rows == 0, "it is as feared"
        assert not probing.is_valid()
        with pytest.raises(SourceUnavailable, match="was rewritten"):
            world.whole(reading, replace(relation, columns=relation.columns[:1]))
        assert other.probe(world.relations["plain"], ("id",), ("id",), keys).num_rows == 2 * (table != "plain")
        assert other.is_valid() == (table != "plain")


def test_another_process_joins_only_the_snapshot_that_is_meant(world: Any) -> None:
    """Servers number their snapshots alike: what has the same name elsewhere is not the same."""
    world.execute("CREATE TABLE sales (id int PRIMARY KEY)")
    with world.source.snapshot() as snapshot:
        exported = dict(snapshot.exported())
        for other in ({"history": "7:1"}, {"started_at": "2020-01-01 00:00:00+00"}, {"shown": "1:1:"}):
            with (
                pytest.raises(SourceUnavailable, match="is gone") as refused,
                world.source.join({**exported, **other}),
            ):
                pass
            assert refused.value.code == "HW-306"
        with world.source.join(exported) as joined:
            assert joined.seen == snapshot.seen
    with pytest.raises(SourceUnavailable, match="is gone"), world.source.join(exported):
        pass


def test_what_was_rewritten_is_not_read_by_another_process(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY, amount int); INSERT INTO sales VALUES (1, 2)")
    world.declare("sales")
    sales = world.relations["sales"]
    with world.source.snapshot() as snapshot:
        [chunk] = snapshot.chunks(sales, 10)
        world.execute("ALTER TABLE sales ALTER amount TYPE bigint")
        with world.source.join(snapshot.exported()) as joined:
            with pytest.raises(SourceUnavailable, match="was rewritten") as refused:
                list(joined.read(sales, ("id",), chunk, WHOLE))
            assert refused.value.code == "HW-339"


def test_the_login_says_what_the_environment_adds(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "a&b=c d/ü")
    monkeypatch.setenv("PGHOST", "elsewhere.invalid")
    login = world.source.login()
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.delenv("PGHOST")
    said = conninfo_to_dict(login)
    assert (said["password"], said["host"], said["dbname"]) == ("a&b=c d/ü", "127.0.0.1", world.database)
    other = PostgresSource("shop", login, "another")
    with other.snapshot() as snapshot:
        assert snapshot.token
    other.close()
