"""Every type of MariaDB: its extreme values are the same in the log, in a read, and in the server's own text."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from mariadb_server import MariadbServer, mariadb_server
from mariadb_under_test import MariadbUnderTest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

from headwater.errors import SourceRefused
from headwater.model.relation import Column, Relation
from headwater_contracts.database import Table
from headwater_contracts.followed import FollowedSource, Probing

_BIG = (1 << 63) - 1
TYPES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "tiny": ("tinyint", "tinyint", ("-128", "0", "127")),
    "flag": ("tinyint(1)", "tinyint", ("0", "5", "-1")),
    "utiny": ("tinyint unsigned", "smallint", ("0", "255")),
    "small": ("smallint", "smallint", ("-32768", "32767")),
    "usmall": ("smallint unsigned zerofill", "int", ("0", "65535")),
    "a_year": ("year", "int", ("1901", "2155", "0")),
    "medium": ("mediumint", "int", ("-8388608", "8388607")),
    "umedium": ("mediumint unsigned", "int", ("0", "16777215")),
    "whole": ("int", "int", ("-2147483648", "2147483647")),
    "uwhole": ("int unsigned", "bigint", ("0", "4294967295")),
    "big": ("bigint", "bigint", (f"-{_BIG + 1}", f"{_BIG}")),
    "ubig": ("bigint unsigned", "decimal(20,0)", ("0", "18446744073709551615", "9223372036854775808")),
    "dec1": ("decimal(1,0)", "decimal(1,0)", ("-9", "0", "9")),
    "dec2": ("decimal(12,2)", "decimal(12,2)", ("-9999999999.99", "0.01", "-0.01", "9999999999.99")),
    "dec3": ("decimal(38,10)", "decimal(38,10)", ("9" * 28 + "." + "9" * 10, "-" + "9" * 28 + "." + "9" * 10, "0")),
    "dec4": ("decimal(38,38)", "decimal(38,38)", ("0." + "9" * 38, "-0." + "0" * 37 + "1")),
    "dec5": ("decimal(20,9)", "decimal(20,9)", ("12345678901.123456789", "-0.000000001")),
    "fl": ("float", "float", ("16777216", "-0.1", "3.4028234663852886e38", "1.401298464324817e-45", "0")),
    "db": ("double", "double", ("0.1", "1.7976931348623157e308", "5e-324", "-2.2250738585072014e-308", "-0e0")),
    "da": ("date", "date", ("'0001-01-01'", "'1970-01-01'", "'2024-02-29'", "'9999-12-31'")),
    "dt": ("datetime", "timestamp_ntz", ("'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'1969-12-31 23:59:59'")),
    "dt1": ("datetime(1)", "timestamp_ntz", ("'2026-10-25 02:30:00.9'", "'0001-01-01 00:00:00.1'")),
    "dt4": ("datetime(4)", "timestamp_ntz", ("'2026-10-25 02:30:00.0001'",)),
    "dt6": ("datetime(6)", "timestamp_ntz", ("'9999-12-31 23:59:59.999999'", "'1970-01-01 00:00:00.000001'")),
    "ts": ("timestamp null", "timestamp", ("'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'")),
    "ts3": ("timestamp(3) null", "timestamp", ("'2038-01-19 03:14:07.999'", "'2026-10-25 01:30:00.001'")),
    "ts6": ("timestamp(6) null", "timestamp", ("'2038-01-19 03:14:07.999999'", "'1970-01-01 00:00:00.000001'")),
    "ti": ("time", "string", ("'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'")),
    "ti2": ("time(2)", "string", ("'-838:59:59.99'", "'-00:00:00.01'", "'23:59:59.99'")),
    "ti6": ("time(6)", "string", ("'-00:00:00.000001'", "'838:59:59.999999'", "'-01:00:00.5'")),
    "b1": ("bit(1)", "string", ("b'0'", "b'1'")),
    "b12": ("bit(12)", "string", ("b'101'", "b'111111111111'")),
    "b64": ("bit(64)", "string", ("b'1'", "18446744073709551615")),
    "en": ("enum('','a','it''s','ü','x,y')", "string", ("'a'", "'it''s'", "'ü'", "''", "'x,y'")),
    "se": ("set('a','b','ö','d','e','f','g','h','i')", "string", ("'a,ö'", "''", "'i,a'", "'a,b,ö,d,e,f,g,h,i'")),
    "ch": ("char(10)", "string", ("'a'", "'a  '", "'äöü'", "''", "'Ünïcödé'")),
    "ch_long": ("char(255) character set utf8mb3", "string", ("'a'", f"'{'ü' * 255}'")),
    "vc": ("varchar(20)", "string", ("'a '", "'🌊'", "''", "' '", "'\\n\\t'")),
    "vc_long": ("varchar(500)", "string", ("'x'", f"'{'🌊' * 500}'")),
    "la": ("varchar(20) character set latin1", "string", ("'é'", "_latin1 x'81808d9f'", "'€'", "'plain'")),
    "asc_": ("varchar(20) character set ascii", "string", ("'plain'", "''")),
    "tx": ("text", "string", ("'long'", "repeat('ß', 30000)")),
    "mt": ("mediumtext", "string", ("repeat('y', 70000)", "''")),
    "js": ("json", "string", ("'{\"a\": [1, 2.50, null]}'", "'[]'")),
    "bi": ("binary(4)", "binary", ("x'00'", "x'01020000'", "x'ffffffff'", "x'00000001'")),
    "vb": ("varbinary(300)", "binary", ("x''", "x'00'", "x'ff00'")),
    "bl": ("blob", "binary", ("x''", "x'00ff'")),
    "lb": ("longblob", "binary", ("repeat(x'00', 70000)",)),
    "uu": (
        "uuid",
        "string",
        (
            "'00112233-4455-6677-8899-aabbccddeeff'",
            "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
            "'00000000-0000-0000-0000-000000000000'",
            "'123e4567-e89b-12d3-a456-426655440000'",
            "'01890a5d-ac96-774b-bcce-b302099a8057'",
            "'f47ac10b-58cc-4372-a567-0e02b2c3d400'",
        ),
    ),
    "i6": ("inet6", "string", ("'::'", "'::1'", "'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.128'", "'fe80::'")),
    "i6b": (
        "inet6",
        "string",
        ("'::192.0.2.128'", "'1:0:0:2::3'", "'1:2:3:4:5:6:0:8'", "'0:0:1::'", "'::ffff'", "'::1:0'"),
    ),
    "i4": ("inet4", "string", ("'0.0.0.0'", "'192.0.2.0'", "'255.255.255.255'")),
}
UNUSABLE = {
    "g": "point",
    "p": "decimal(39,0)",
    "w": "varchar(20) character set utf16",
    "c": "varchar(200) compressed",
    "cb": "blob compressed",
    "v": "int as (1 + 1) virtual",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariadbServer]:
    with mariadb_server(tmp_path_factory.mktemp("mariadb")) as found:
        yield found


@pytest.fixture
def database(server: MariadbServer) -> Iterator[MariadbUnderTest]:
    server.execute("CREATE DATABASE types CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    made = MariadbUnderTest(server, "types")
    yield made
    made.clean()


def table() -> Table:
    columns = tuple((name, spark) for name, (_, spark, _) in TYPES.items())
    return Table(name="every", columns=(("id", "int"), *columns), key=("id",))


def insert(database: MariadbUnderTest) -> int:
    """Insert every value of every type, NULLs among them, and return how many rows there are."""
    unheld = ", ".join(f"{name} {native}" for name, native in UNUSABLE.items())
    columns = ", ".join(f"{name} {native}" for name, (native, _, _) in TYPES.items())
    database.run(f"CREATE TABLE every (id int PRIMARY KEY, {unheld}, {columns})")
    longest = max(len(values) for _, _, values in TYPES.values())
    rows = [
        [str(n), *(values[n] if n < len(values) else "NULL" for _, _, values in TYPES.values())]
        for n in range(longest + 1)
    ]
    rows.append([str(longest + 1), *(values[0] for _, _, values in TYPES.values())])
    names = ", ".join(("id", *TYPES))
    database.run(f"INSERT INTO every ({names}) VALUES " + ", ".join(f"({', '.join(row)})" for row in rows))
    database.run("UPDATE every SET c = repeat('packed', 30), cb = repeat('packed', 30), p = id")
    return len(rows)


def test_every_value_is_the_same_everywhere(database: MariadbUnderTest) -> None:
    count = insert(database)
    database.run("CREATE TABLE copied LIKE every")
    followed = FollowedSource(database, (Table(name="copied", columns=table().columns, key=("id",)),))
    copied = Table(name="copied", columns=table().columns, key=("id",))
    relation = followed.relation(copied)
    assert {name for name, _ in relation.unusable} == set(UNUSABLE)
    assert [(one.name, one.type) for one in relation.columns] == [("id", "int"), *((n, t[1]) for n, t in TYPES.items())]
    names = ", ".join(("id", *(one for one in UNUSABLE if one != "v"), *TYPES))
    database.run(f"INSERT INTO copied ({names}) SELECT {names} FROM every")
    logged = followed.bag(followed.captures(), copied)
    with followed.snapshot() as snapshot, snapshot.reader() as reader:
        read = followed.read(reader, copied)
        for place, (name, _) in enumerate(copied.columns):
            ours, theirs = (Counter(row[place] for row in bag.elements()) for bag in (logged, read))
            assert ours == theirs, name
        assert sum(read.values()) == count
        probe = Probing(reader, relation)
        for place, (name, _) in enumerate(copied.columns):
            for value in {row[place] for row in read if row[place] is not None}:
                expected = {row: 1 for row in read if row[place] == value}
                assert probe((name,), [(value,)]) == expected, f"{name} {value!r}"
    assert_servers_text(database, relation, {row[0]: row for row in read})
    followed.close()


def assert_servers_text(database: MariadbUnderTest, relation: Relation, rows: dict[int, tuple[Any, ...]]) -> None:
    """Compare with what the server prints to a client that knows nothing of us."""
    shown = ", ".join(_asked(column) for column in relation.columns)
    with contextlib.closing(database.server.connect("types")) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT {shown} FROM copied")
        for texts in cursor.fetchall():
            ours = rows[int(texts[0])]
            for column, text, value in zip(relation.columns, texts, ours, strict=True):
                if text is None or value is None:
                    assert text is value is None, column
                elif column.native.startswith("bit"):
                    assert value.lstrip("0") == text.lstrip("0")
                else:
                    assert _spelled(value) == _same(text, column.type), column


def _asked(column: Column) -> str:
    if column.type == "binary":
        return f"HEX({column.name})"
    if column.type == "float":
        return f"CAST({column.name} AS DOUBLE)"
    return f"BIN({column.name} + 0)" if column.native.startswith("bit") else f"CAST({column.name} AS CHAR)"


def _spelled(value: object) -> object:
    match value:
        case bytes():
            return value.hex().upper()
        case datetime():
            return value.replace(tzinfo=None)
        case _:
            return value


def _same(text: str, kind: str) -> object:
    """Return the value that a text of the server means."""
    match kind:
        case "float" | "double":
            return float(text) + 0.0
        case "date":
            return date.fromisoformat(text)
        case "timestamp" | "timestamp_ntz":
            return datetime.fromisoformat(text)
        case _ if kind.startswith("decimal"):
            return Decimal(text)
        case "tinyint" | "smallint" | "int" | "bigint":
            return int(text)
        case _:
            return text


@pytest.mark.parametrize(
    ("native", "value"),
    [
        ("date", "'0000-00-00'"),
        ("date", "'2024-00-10'"),
        ("date", "'2023-02-31'"),
        ("datetime", "'0000-00-00 00:00:00'"),
        ("datetime(3)", "'2024-01-00 01:00:00'"),
        ("timestamp null", "0"),
    ],
)
def test_what_no_calendar_has_is_refused_by_name(database: MariadbUnderTest, native: str, value: str) -> None:
    database.run(f"CREATE TABLE odd (id int PRIMARY KEY, at {native})")
    kind = {"date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp"}[
        native.split("(", maxsplit=1)[0].split(" ", maxsplit=1)[0]
    ]
    followed = FollowedSource(database, (odd := Table(name="odd", columns=(("id", "int"), ("at", kind)), key=("id",)),))
    with contextlib.closing(database.server.connect("types")) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.execute(f"INSERT INTO odd VALUES (1, {value})")
        connection.commit()
    with pytest.raises(SourceRefused) as logged:
        followed.captures()
    with pytest.raises(SourceRefused) as read, followed.snapshot() as snapshot, snapshot.reader() as reader:
        followed.read(reader, odd)
    for error in (logged.value, read.value):
        assert error.code == "HW-330"
        assert '"at"' in error.detail
    followed.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_differential_the_library_reads_the_same_from_the_log(database: MariadbUnderTest) -> None:
    """Of the types that it decodes as they are."""
    names = ("tiny", "big", "dec2", "db", "vc")
    columns = ", ".join(f"{name} {TYPES[name][0]}" for name in names)
    database.run(f"CREATE TABLE simple (id int PRIMARY KEY, {columns})")
    simple = Table(name="simple", columns=(("id", "int"), *((n, TYPES[n][1]) for n in names)), key=("id",))
    followed = FollowedSource(database, (simple,))
    [(begin,)] = database.server.execute("SELECT @@gtid_binlog_pos")  # of MariaDB, the library looks at nothing else
    for n in range(3):
        values = [TYPES[name][2][n % len(TYPES[name][2])] for name in names]
        database.run(f"INSERT INTO simple VALUES ({n}, {', '.join(values)})")
    ours = followed.bag(followed.captures(), simple)
    stream = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": database.server.port, "user": "root", "passwd": ""},
        server_id=4711,
        auto_position=begin,
        only_events=[WriteRowsEvent],
        only_tables=["simple"],
        is_mariadb=True,
    )
    theirs: Counter[tuple[Any, ...]] = Counter()
    for event in stream:
        for row in event.rows:
            theirs[tuple(row["values"].values())] += 1
    stream.close()
    assert ours == theirs
    followed.close()
