"""What a MariaDB server does that others do not, each with what goes wrong if it is overlooked."""

from __future__ import annotations

import contextlib
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import count

import pyarrow as pa
import pymysql
import pytest
from mariadb_server import MariadbServer, mariadb_server
from mariadb_under_test import MariadbUnderTest
from volume import in_short, volume

from headwater.errors import HeadwaterError, SourceLost, SourceRefused
from headwater.model.relation import ColumnUse, RelationName
from headwater.sources.mariadb import MariadbSource
from headwater.sources.source import SourceSettings
from headwater_contracts.database import ITEMS, NOTES, SOURCE, Table
from headwater_contracts.followed import FollowedSource, items, sum_up
from headwater_contracts.sources import as_stored

_NUMBERS = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariadbServer]:
    with mariadb_server(tmp_path_factory.mktemp("mariadb")) as found:
        yield found


@pytest.fixture
def database(server: MariadbServer) -> Iterator[MariadbUnderTest]:
    name = f"rules_{next(_NUMBERS)}"
    server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    made = MariadbUnderTest(server, name)
    yield made
    made.clean()


@pytest.fixture
def at(database: MariadbUnderTest) -> Iterator[FollowedSource]:
    for table in (ITEMS, NOTES):
        database.create(table)
    followed = FollowedSource(database, (ITEMS, NOTES))
    yield followed
    followed.close()


def session(at: FollowedSource, *statements: str) -> None:
    """Run statements in one session, and commit."""
    database = at.database
    assert isinstance(database, MariadbUnderTest)
    with contextlib.closing(database.server.connect(database.name)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()


def test_what_is_rolled_back_to_a_savepoint_is_not_told(at: FollowedSource) -> None:
    session(
        at,
        "INSERT INTO items VALUES (1, 'item 1', 1)",
        "SAVEPOINT first",
        "INSERT INTO items VALUES (2, 'item 2', 2)",
        "SAVEPOINT `odd``name`",
        "INSERT INTO items VALUES (4, 'item 4', 4)",
        "ROLLBACK TO `odd``name`",
        "RELEASE SAVEPOINT `odd``name`",
        "ROLLBACK TO SAVEPOINT first",
        "INSERT INTO items VALUES (3, 'item 3', 3)",
    )
    assert at.bag(at.captures(), ITEMS) == Counter(items(1, 3))


def test_savepoints_are_told_apart_as_the_server_does(at: FollowedSource) -> None:
    """It logs that it goes back to one only if it cannot take all back: if a table of another engine was changed."""
    at.database.run("CREATE TABLE other (id int) ENGINE=MyISAM")  # type: ignore[attr-defined]
    session(
        at,
        "INSERT INTO items VALUES (1, 'item 1', 1)",
        "SAVEPOINT Élan",
        "INSERT INTO items VALUES (2, 'item 2', 2)",
        "INSERT INTO other VALUES (1)",
        "ROLLBACK TO elan",
        "INSERT INTO items VALUES (3, 'item 3', 3)",
    )
    captures = at.captures()
    with at.snapshot() as snapshot:
        assert at.whole(snapshot, ITEMS) == at.bag(captures, ITEMS) == Counter(items(1, 3))


def test_statements_that_begin_late_are_understood(at: FollowedSource) -> None:
    at.database.commit({"items": items(1), "notes": {(1, "a"): 1}})
    session(
        at,
        "CREATE TABLE ITEMS (id int)",
        "TRUNCATE TABLE ITEMS",
        "SET STATEMENT lock_wait_timeout = 5 FOR TRUNCATE TABLE notes",
        "INSERT INTO items VALUES (2, 'item 2', 2)",
    )
    captures = at.captures()
    assert [set(names) for capture in captures for names in capture.truncated.values()] == [{NOTES.relation}]
    assert at.bag(captures, ITEMS) == Counter(items(1, 2))
    at.database.run("ALTER TABLE items WAIT 5 MODIFY price decimal(20,4)")  # type: ignore[attr-defined]
    assert [set(one) for capture in at.captures() for one in capture.altered.values()] == [{ITEMS.relation}]


def test_a_statement_of_a_session_with_other_characters_is_understood(
    database: MariadbUnderTest, server: MariadbServer
) -> None:
    table = Table(name="größen", columns=(("id", "bigint"),), key=("id",))
    database.create(table)
    at = FollowedSource(database, (table,))
    database.commit({"größen": {(1,): 1}})
    with contextlib.closing(
        pymysql.connect(host="127.0.0.1", port=server.port, user="root", database=database.name, charset="latin1")
    ) as connection:
        connection.cursor().execute("TRUNCATE TABLE größen")
    captures = at.captures()
    at.close()
    assert [set(names) for capture in captures for names in capture.truncated.values()] == [{table.relation}]


@pytest.mark.parametrize(
    ("statements", "code"),
    in_short(
        (("SET binlog_format = STATEMENT", "CREATE TEMPORARY TABLE items (id int)", "TRUNCATE items"), "HW-385"),
        (("SET binlog_format = STATEMENT", "INSERT INTO items VALUES (5, 'a', 1)"), "HW-385"),
        (("SET binlog_row_image = MINIMAL", "UPDATE items SET price = 3 WHERE id = 1"), "HW-385"),
        (("SET GLOBAL log_bin_compress = ON", f"INSERT INTO items VALUES (2, '{'x' * 2000}', 1)"), "HW-385"),
        (("SET GLOBAL binlog_row_metadata = NO_LOG", "DELETE FROM items"), "HW-385"),
        (("XA START 'one'", "INSERT INTO items VALUES (9, 'a', 1)", "XA END 'one'", "XA PREPARE 'one'"), "HW-387"),
        keep=(0, 1, 5),
    ),
)
def test_what_the_log_does_not_tell_stops_the_source_by_name(
    at: FollowedSource, server: MariadbServer, statements: tuple[str, ...], code: str
) -> None:
    at.database.commit({"items": items(1)})
    assert at.bag(at.captures(), ITEMS) == Counter(items(1))
    try:
        with contextlib.closing(server.connect(at.database.name, autocommit=True)) as one, one.cursor() as cursor:  # type: ignore[attr-defined]
            for statement in statements:
                cursor.execute(statement)
            with pytest.raises(SourceRefused) as refused:
                at.captures()
            assert refused.value.code == code
            if code == "HW-387":
                cursor.execute("XA ROLLBACK 'one'")
    finally:
        server.execute("SET GLOBAL log_bin_compress = OFF, binlog_row_metadata = FULL")


def test_a_transaction_of_one_phase_is_as_any_other(at: FollowedSource) -> None:
    session(
        at,
        "XA START 'two'",
        "INSERT INTO items VALUES (1, 'item 1', 1)",
        "XA END 'two'",
        "XA COMMIT 'two' ONE PHASE",
    )
    assert at.bag(at.captures(), ITEMS) == Counter(items(1))


@pytest.mark.parametrize(
    ("definition", "code", "said"),
    in_short(
        ("CREATE TABLE bad (id int PRIMARY KEY) ENGINE=MyISAM", "HW-381", "ENGINE=InnoDB"),
        ("CREATE TABLE bad (id int PRIMARY KEY) ENGINE=Aria", "HW-381", "ENGINE=InnoDB"),
        ("CREATE TABLE bad (id int PRIMARY KEY) WITH SYSTEM VERSIONING", "HW-381", "DROP SYSTEM VERSIONING"),
        ("CREATE VIEW bad AS SELECT 1 AS id", "HW-381", "name the tables"),
        (
            (
                "CREATE TABLE bad (id int PRIMARY KEY, item bigint, CONSTRAINT fk FOREIGN KEY (item) REFERENCES items"
                " (id) ON DELETE CASCADE)"
            ),
            "HW-382",
            "DROP FOREIGN KEY `fk`",
        ),
        (
            (
                "CREATE TABLE bad (id int PRIMARY KEY, item bigint, FOREIGN KEY (item) REFERENCES items (id)"
                " ON UPDATE SET NULL)"
            ),
            "HW-382",
            "DROP FOREIGN KEY",
        ),
        keep=(0, 4),
    ),
)
def test_tables_whose_changes_are_not_told_are_refused(
    at: FollowedSource, definition: str, code: str, said: str
) -> None:
    at.database.run(definition)
    inspection = at.source.inspect([RelationName(source=SOURCE, name="bad"), ITEMS.relation])
    [refusal] = inspection.refusals
    assert refusal.code == code
    assert said in refusal.hint
    at.database.run("DROP " + ("VIEW" if "VIEW" in definition else "TABLE") + " bad")


def test_a_foreign_key_that_only_forbids_is_followed(at: FollowedSource) -> None:
    at.database.run("CREATE TABLE good (id bigint, FOREIGN KEY (id) REFERENCES items (id) ON DELETE RESTRICT)")
    assert not at.source.inspect([RelationName(source=SOURCE, name="good")]).refusals


def test_an_account_without_rights_is_told_all_statements_at_once(at: FollowedSource, server: MariadbServer) -> None:
    server.execute("CREATE OR REPLACE USER reader@'%' IDENTIFIED BY 'secret'")
    server.execute(f"GRANT SELECT ON {at.database.name}.items TO reader@'%'")  # type: ignore[attr-defined]
    server.execute("SET GLOBAL binlog_row_image = MINIMAL")
    try:
        found = _source(server, at, "reader:secret").inspect([ITEMS.relation])
    finally:
        server.execute("SET GLOBAL binlog_row_image = FULL")
    assert found.owner_sql == (
        "SET GLOBAL binlog_row_image = FULL",
        "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'reader'@'%'",
    )
    assert not found.may_run_owner_sql
    with pytest.raises(SourceRefused) as refused:
        found.require_rights(SOURCE)
    assert "GRANT REPLICATION SLAVE" in refused.value.hint
    for statement in found.owner_sql:
        server.execute(statement)
    own = _source(server, at, "reader:secret")
    assert not own.inspect([ITEMS.relation]).owner_sql
    assert own.prepare([ITEMS.relation], "x", is_new=True)


def test_a_wrong_password_is_told_without_it(at: FollowedSource, server: MariadbServer) -> None:
    with pytest.raises(HeadwaterError) as refused:
        _source(server, at, "root:hidden").inspect([ITEMS.relation])
    assert refused.value.code == "HW-320"
    assert "hidden" not in str(refused.value)


def _source(server: MariadbServer, at: FollowedSource, login: str) -> MariadbSource:
    url = f"mariadb://{login}@127.0.0.1:{server.port}/{at.database.name}"  # type: ignore[attr-defined]
    return MariadbSource.connect(SourceSettings(name=SOURCE, url=lambda: url, project="rules"))


@pytest.mark.parametrize(
    "statement",
    in_short(
        "ALTER TABLE items ADD COLUMN more int DEFAULT 7, ADD INDEX (price)",
        "ALTER TABLE items ADD COLUMN first_of_all int FIRST",
        "CREATE INDEX by_name ON items (name(10))",
        "ANALYZE TABLE items",
        "CREATE TABLE likeness LIKE items",
        "CREATE VIEW seen AS SELECT * FROM items",
        keep=(0,),
    ),
)
def test_what_changes_no_row_is_not_noticed(at: FollowedSource, statement: str) -> None:
    at.database.commit({"items": items(1)})
    at.database.run(statement)
    session(at, "INSERT INTO items (id, name, price) VALUES (2, 'item 2', 2)")
    captures = at.captures()
    assert not any(capture.altered for capture in captures)
    assert at.bag(captures, ITEMS) == Counter(items(1, 2))
    with at.snapshot() as snapshot:
        assert at.whole(snapshot, ITEMS) == Counter(items(1, 2))
        assert snapshot.is_valid(at)


@pytest.mark.parametrize(
    "statement",
    in_short(
        "ALTER TABLE items MODIFY price decimal(14,3)",
        "ALTER TABLE items RENAME COLUMN name TO called",
        "ALTER TABLE items DROP COLUMN name",
        "ALTER TABLE items CONVERT TO CHARACTER SET latin1",
        "RENAME TABLE items TO things",
        "DROP TABLE items",
        "CREATE OR REPLACE TABLE items (id int)",
        "ALTER IGNORE TABLE items ADD UNIQUE (name(10))",
        keep=(2,),
    ),
)
def test_what_changes_rows_or_columns_is_told(at: FollowedSource, statement: str) -> None:
    at.database.commit({"items": items(1)})
    at.database.run(statement)
    captures = at.captures()
    altered = [one for capture in captures for one in capture.altered.values()]
    assert [set(one) for one in altered] == [{ITEMS.relation}]
    assert at.bag(captures, ITEMS) == Counter(items(1))


def test_a_reader_that_reads_through_an_alteration_does_not_count(at: FollowedSource) -> None:
    at.database.commit({"items": items(1)})
    with at.snapshot() as snapshot:
        with snapshot.reader():
            pass
        assert snapshot.is_valid(at)
        at.database.run("ALTER TABLE items CHANGE name called longtext, ADD COLUMN name longtext DEFAULT 'made up'")
        with snapshot.reader() as reader:
            at.read(reader, ITEMS)
        assert not snapshot.is_valid(at)


@pytest.mark.thorough
def test_the_log_goes_on_in_another_file_and_after_a_crash(at: FollowedSource, server: MariadbServer) -> None:
    expected: Counter[tuple[object, ...]] = Counter()
    held = as_stored(at.start)
    for number, happens in enumerate((_flush, _restart, _kill, _flush)):
        at.database.commit({"items": items(2 * number)})
        expected += Counter(items(2 * number))
        happens(server)
        at.database._connection = None  # type: ignore[attr-defined]
        at.database.commit({"items": items(2 * number + 1)})
        expected += Counter(items(2 * number + 1))
        at.reconnect(held)
        assert at.bag(at.captures(), ITEMS) == expected
    held = as_stored(at.follower.followed_to())
    at.reconnect(held)
    assert at.bag(at.captures(), ITEMS) == Counter()


def _flush(server: MariadbServer) -> None:
    server.execute("FLUSH BINARY LOGS")


def _restart(server: MariadbServer) -> None:
    server.stop()
    server.start()


def _kill(server: MariadbServer) -> None:
    server.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1, sync_binlog = 1")
    server.kill()
    server.start()


@pytest.mark.thorough
def test_a_log_that_is_thrown_away_is_lost(at: FollowedSource, server: MariadbServer) -> None:
    at.database.commit({"items": items(1)})
    at.captures()
    held = as_stored(at.follower.followed_to())
    at.close()
    server.execute("FLUSH BINARY LOGS")
    at.database.commit({"items": items(2)})
    [(newest, *_)] = server.execute("SHOW MASTER STATUS")
    _purged(server, newest)
    with pytest.raises(SourceLost) as lost:
        at.reconnect(held)
    assert lost.value.code == "HW-311"
    assert "binlog_expire_logs_seconds" in lost.value.hint


def _purged(server: MariadbServer, newest: str) -> None:
    """Delete the files before one. The server keeps them for a moment longer for those that read them."""
    deadline = time.monotonic() + 10
    while len(server.execute("SHOW BINARY LOGS")) > 1 and time.monotonic() < deadline:
        server.execute(f"PURGE BINARY LOGS TO '{newest}'")
        time.sleep(0.1)


@pytest.mark.thorough
def test_a_quiet_log_whose_old_files_are_gone_is_not_lost(at: FollowedSource, server: MariadbServer) -> None:
    """What was followed last is in a file that is deleted. The beginning of the file after it is the proof then."""
    at.database.commit({"items": items(1)})
    at.captures()
    server.execute("FLUSH BINARY LOGS")
    at.captures()
    held = as_stored(at.follower.followed_to())
    at.close()
    [(newest, *_)] = server.execute("SHOW MASTER STATUS")
    _purged(server, newest)
    at.database.commit({"items": items(2)})
    at.reconnect(held)
    assert at.bag(at.captures(), ITEMS) == Counter(items(2))
    at.close()
    server.execute("RESET MASTER")
    for _ in range(int(newest.rpartition(".")[2]) - 1):
        server.execute("FLUSH BINARY LOGS")
    at.database.commit({"items": items(3)})
    with pytest.raises(SourceLost, match="HW-315"):
        at.reconnect(held)


def test_a_log_that_is_begun_again_while_it_is_followed_is_lost(at: FollowedSource, server: MariadbServer) -> None:
    """The server goes on to send the old file, in which nothing is written any more."""
    server.execute("RESET MASTER")
    at.reconnect(at.source.prepare([ITEMS.relation], at.slot, is_new=True))
    at.database.commit({"items": items(*range(20))})
    at.captures()
    server.execute("RESET MASTER")
    at.database.commit({"items": items(99)})
    with pytest.raises(SourceLost, match="HW-315"):
        at.follower.log_end()
    with at.snapshot() as snapshot:
        with snapshot.reader() as reader:
            assert reader.seen.last < at.follower.followed_to()[SOURCE].offset, "it saw more than its position says"
        with pytest.raises(SourceLost, match="HW-315"):
            snapshot.is_valid(at)


def test_what_is_computed_again_for_all_rows_is_told(database: MariadbUnderTest) -> None:
    table = Table(name="sums", columns=(("id", "bigint"), ("total", "decimal(10,2)")), key=("id",))
    database.run("CREATE TABLE sums (id bigint PRIMARY KEY, a double, total decimal(10,2) AS (a) STORED)")
    at = FollowedSource(database, (table,))
    database.run("INSERT INTO sums (id, a) VALUES (1, 1.25)")
    relation = at.relation(table)
    columns = tuple(replace(one, use=ColumnUse.UNREAD) if one.name == "a" else one for one in relation.columns)
    at.close()
    follower = at.source.follow([replace(relation, columns=columns)], at.slot, at.start)
    database.run("ALTER TABLE sums MODIFY a int")
    captures = []
    while not any(capture.altered for capture in captures):
        captures.append(follower.next_capture(5.0))
    assert captures[0].rows[table.relation]["total"].to_pylist() == [Decimal("1.25")]
    follower.close()


def test_a_log_that_lost_its_end_is_not_taken_for_what_was_followed(at: FollowedSource, server: MariadbServer) -> None:
    """A crash of the machine may lose what was not on disk. Afterwards the server gives the same GTIDs again."""
    at.database.commit({"items": items(1)})
    at.captures()
    server.execute("FLUSH BINARY LOGS")
    [(file, kept, *_)] = server.execute("SHOW MASTER STATUS")
    at.database.commit({"items": items(2)})
    at.captures()
    held = as_stored(at.follower.followed_to())
    at.close()
    server.kill()
    with (server.directory / "data" / file).open("r+b") as log:
        log.truncate(int(kept))
    server.start()
    at.database._connection = None  # type: ignore[attr-defined]
    with pytest.raises(SourceLost) as lost:
        at.reconnect(held)
    assert lost.value.code == "HW-315"


def test_a_transaction_that_the_server_died_in_is_not_told(at: FollowedSource, server: MariadbServer) -> None:
    """The log has its beginning. When the server starts again, it takes back what has no end there."""
    server.execute("FLUSH BINARY LOGS")
    at.database.commit({"items": items(1)})
    at.captures()
    held = as_stored(at.follower.followed_to())
    at.close()
    at.database.commit({"items": items(2)})
    [(file, *_)] = server.execute("SHOW MASTER STATUS")
    *_, (_, begin_of_end, kind, *_) = server.execute(f"SHOW BINLOG EVENTS IN '{file}'")
    assert kind == "Xid"
    server.kill()
    with (server.directory / "data" / file).open("r+b") as log:
        log.truncate(begin_of_end)
    server.start()
    at.database._connection = None  # type: ignore[attr-defined]
    at.database.commit({"items": items(3)})
    at.reconnect(held)
    assert at.bag(at.captures(), ITEMS) == Counter(items(3))


@pytest.mark.parametrize(
    ("options", "code"),
    in_short(({"binlog-ignore-db": "{name}"}, "HW-384"), ({"log-bin": None, "skip-log-bin": "1"}, "HW-383")),
)
def test_a_server_that_comes_back_without_our_log_is_refused(
    at: FollowedSource, server: MariadbServer, options: dict[str, str | None], code: str
) -> None:
    at.database.commit({"items": items(1)})
    at.captures()
    held = as_stored(at.follower.followed_to())
    at.close()
    usual = dict(server.settings)
    name = at.database.name  # type: ignore[attr-defined]
    given = {key: value and value.format(name=name) for key, value in {**usual, **options}.items()}
    server.settings = {key: value for key, value in given.items() if value is not None}
    try:
        _restart(server)
        with pytest.raises(SourceRefused) as refused:
            at.reconnect(held)
        assert refused.value.code == code
    finally:
        server.settings = usual
        _restart(server)
        at.database._connection = None  # type: ignore[attr-defined]


def test_a_replica_is_refused(at: FollowedSource, server: MariadbServer) -> None:
    """What its primary has changed is not in its own log, unless it is set to write it there."""
    server.execute("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'nobody'")
    server.execute("START SLAVE SQL_THREAD")
    try:
        [refusal] = at.source.inspect([ITEMS.relation]).refusals
        with pytest.raises(SourceRefused, match="HW-384"):
            at.reconnect(as_stored(at.start))
    finally:
        server.execute("STOP SLAVE")
        server.execute("RESET SLAVE ALL")
    assert refusal.code == "HW-384"
    assert "replica" in str(refusal)


def test_probes_find_each_row_once_by_any_key(database: MariadbUnderTest) -> None:
    """Small decimals, both zeros, and characters that a column cannot hold are keys as any others."""
    columns = (("id", "bigint"), ("amount", "decimal(30,10)"), ("size", "double"), ("name", "string"))
    table = Table(name="kinds", columns=columns, key=("id",))
    database.run(
        "CREATE TABLE kinds (id bigint PRIMARY KEY, amount decimal(30,10), size double, name varchar(20)"
        " CHARACTER SET utf8mb3, KEY (amount), KEY (size), KEY (name))"
    )
    database.run(
        "INSERT INTO kinds VALUES (1, 12345678901234567890.1, 0, 'a'), (2, 12345678901234567890.2, -0.0, 'b'),"
        " (3, 0, 1, ''), (4, 0.00000001, 2, NULL)"
    )
    at = FollowedSource(database, (table,))
    amounts = ("12345678901234567890.1000000000", "12345678901234567890.2000000000", "0E-10", "1.00E-8", "7.0")
    wanted = {
        "amount": ([*map(Decimal, amounts)], [1, 2, 3, 4]),
        "size": ([0.0, -0.0, 1.0, math.nan], [1, 2, 3]),
        "name": (["😀", "a", ""], [1, 3]),
    }
    relation = at.relation(table)
    with at.snapshot() as snapshot, snapshot.reader() as reader:
        for name, (keys, ids) in wanted.items():
            asked = pa.table({name: pa.array(keys, relation.column(name).arrow_field.type)})
            assert sorted(reader.probe(relation, ("id",), (name,), asked)["id"].to_pylist()) == ids
    at.close()


def test_snapshots_are_exact_while_many_write(at: FollowedSource) -> None:
    """Each shows the transactions up to its position, and no others: with rollbacks, savepoints, and long ones."""
    done: Counter[str] = Counter()
    writers = [threading.Thread(target=_write, args=(at, seed, done, volume(120, 1_500))) for seed in range(1, 6)]
    for writer in writers:
        writer.start()
    shown = []
    while any(writer.is_alive() for writer in writers):
        with at.snapshot() as snapshot, snapshot.reader() as reader:
            shown.append((reader.seen, at.read(reader, ITEMS), at.read(reader, NOTES)))
    for writer in writers:
        writer.join()
    captures = at.captures()
    assert min(done["committed"], done["rolled back"], done["savepoints"], len(shown)) > 5
    told = {table.name: at.bags(captures, table) for table in (ITEMS, NOTES)}
    for seen, found, notes in shown:
        for table, rows in ((ITEMS, found), (NOTES, notes)):
            assert rows == sum_up(bag for one, bag in told[table.name] if seen.sees(one.identity, one.position.log))


def _write(at: FollowedSource, seed: int, done: Counter[str], transactions: int) -> None:
    chance, database = random.Random(seed), at.database
    assert isinstance(database, MariadbUnderTest)
    with contextlib.closing(database.server.connect(database.name)) as connection, connection.cursor() as cursor:
        for _ in range(transactions):
            try:
                _change(cursor, chance, seed, done)
            except pymysql.err.OperationalError as error:
                if error.args[0] not in (1205, 1213):  # a deadlock
                    raise
                connection.rollback()
                continue
            if chance.random() < 0.05:
                time.sleep(0.02)
            if chance.random() < 0.2:
                connection.rollback()
                done["rolled back"] += 1
            else:
                connection.commit()
                done["committed"] += 1


def _change(cursor: pymysql.cursors.Cursor, chance: random.Random, seed: int, done: Counter[str]) -> None:
    for place in range(chance.choice((1, 2, 6))):
        key = seed * 1000 + chance.randrange(50)
        if place and chance.random() < 0.3:
            cursor.execute("SAVEPOINT here")
            cursor.execute("DELETE FROM items WHERE id = %s", (key,))
            cursor.execute("ROLLBACK TO here")
            done["savepoints"] += 1
        cursor.execute("REPLACE INTO items VALUES (%s, %s, %s)", (key, f"é{key}", chance.randrange(100)))
        cursor.execute("INSERT INTO notes VALUES (%s, %s)", (key, chance.choice(("a", "A ", None))))


def test_a_large_transaction_goes_to_files_and_comes_back_whole(at: FollowedSource) -> None:
    count_of_rows = 20_000
    session(
        at,
        f"INSERT INTO notes SELECT seq, REPEAT('x', seq % 50) FROM seq_1_to_{count_of_rows}",
        "SAVEPOINT here",
        "UPDATE notes SET note = 'lost'",
        "ROLLBACK TO here",
        "UPDATE notes SET note = NULL WHERE item % 2 = 0",
    )
    found = at.bag(at.captures(), NOTES)
    with at.snapshot() as snapshot:
        assert at.whole(snapshot, NOTES) == found
    assert len(found) == count_of_rows
