"""What must not go wrong with sources that are polled: the exact difference, one moment, and values of other types."""

from __future__ import annotations

import math
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.deltas.extent import WHOLE
from headwater.errors import InvalidProject, SourceLost, SourceRefused, SourceUnavailable
from headwater.model.project import filled
from headwater.model.relation import COUNT, Column, ColumnUse, RelationName
from headwater.sources.net_changes import NetChanges
from headwater.sources.polled import PolledSource
from headwater.sources.polled.folder import FolderPlace
from headwater.sources.polled.sqlite import SqlitePlace
from headwater.sources.registry import connect
from headwater.sources.source import Chunk, ProcessFiles, SourceSettings
from headwater.warehouse.source_memory import SourceFiles

NOTES = RelationName(source="crm", name="notes")
OTHERS = RelationName(source="crm", name="others")


def net(schema: pa.Schema, before: list[Any], after: list[Any], limit: int = 1 << 20) -> Counter[Any]:
    changes = NetChanges(schema, limit)
    for sign, values in ((-1, before), (1, after)):
        for value in values:
            changes.add(pa.table({"a": pa.array([value], schema.field("a").type)}), sign)
    found: Counter[Any] = Counter()
    for table in changes.result():
        for row in table.to_pylist():
            found[repr(row["a"])] += row[COUNT]
            assert abs(row[COUNT]) == 1
    return found


@pytest.mark.parametrize("limit", [1 << 20, 1], ids=["in memory", "in files"])
def test_the_difference_of_bags(limit: int) -> None:
    """Duplicates, NULLs, NaN and both zeros; the same if it is computed part by part."""
    texts = pa.schema([("a", pa.string())])
    assert net(texts, ["x", "x", None, None, "y"], ["x", None, None, None, "z"], limit) == {
        "'x'": -1,
        "None": 1,
        "'y'": -1,
        "'z'": 1,
    }
    floats = pa.schema([("a", pa.float64())])
    nan = float("nan")
    assert net(floats, [nan, nan, 0.0], [nan, -0.0], limit) == {"nan": -1, "0.0": -1, "-0.0": 1}
    lists = pa.schema([("a", pa.list_(pa.int64()))])
    assert net(lists, [[1, None], [1, None]], [[1, None], None], limit) == {"[1, None]": -1, "None": 1}


class Crm:
    """An SQLite database that is polled."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "crm.db"
        self.connection = sqlite3.connect(self.file, isolation_level=None)
        self.files = ProcessFiles()

    def source(self) -> PolledSource:
        place = SqlitePlace.at(f"sqlite:///{self.file}", "crm", 1.0)
        return PolledSource("crm", place, poll_seconds=1e9, files=self.files)

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)


@pytest.fixture
def crm(tmp_path: Path) -> Crm:
    made = Crm(tmp_path)
    made.run("CREATE TABLE notes (id INTEGER, note TEXT, weight REAL)", "CREATE TABLE others (id INTEGER)")
    return made


def told(source: PolledSource, after: int, names: Sequence[RelationName] = (NOTES,)) -> list[Counter[Any]]:
    relations = source.inspect(names).relations
    start = source.states.state(after)
    assert start is not None
    capture = source.peek(relations, "slot", {"crm": source.position(start)})
    found: list[Counter[Any]] = [Counter() for _ in (capture.transactions if capture else ())]
    for relation in relations:
        for row in capture.rows[relation.name].to_pylist() if capture and relation.name in capture.rows else ():
            ordinal, count = row.pop("_ordinal"), row.pop(COUNT)
            found[ordinal][tuple("NaN" if value != value else value for value in row.values())] += count  # noqa: PLR0124
    return found


def test_every_poll_with_a_difference_is_one_transaction(crm: Crm) -> None:
    """What came and went between two polls never was; a poll without a difference is none."""
    crm.run("INSERT INTO notes VALUES (1, 'a', 0.5), (1, 'a', 0.5), (NULL, NULL, NULL)")
    source = crm.source()
    source.prepare([NOTES], "slot", is_new=True)
    assert source.poll([NOTES]).number == 1
    crm.run("INSERT INTO notes VALUES (7, 'x', 1.0)", "DELETE FROM notes WHERE id = 7")
    assert source.poll([NOTES]).number == 1
    crm.run(
        "DELETE FROM notes WHERE rowid = 1",
        "INSERT INTO notes VALUES (2, '', NULL)",
        "DELETE FROM notes WHERE id IS NULL",
    )
    assert source.poll([NOTES]).number == 2
    crm.run("UPDATE notes SET note = 'b' WHERE id = 1")
    assert source.poll([NOTES]).number == 3
    assert told(source, 1) == [
        {(1, "a", 0.5): -1, (2, "", None): 1, (None, None, None): -1},
        {(1, "a", 0.5): -1, (1, "b", 0.5): 1},
    ]


def test_all_tables_are_read_at_one_moment(crm: Crm, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction that commits between the reading of two tables is in neither."""
    crm.run("PRAGMA journal_mode = WAL")
    source = crm.source()
    source.prepare([NOTES, OTHERS], "slot", is_new=True)
    from headwater.sources.polled.sqlite import SqliteMoment  # noqa: PLC0415

    rows = SqliteMoment.rows

    def writing(moment: SqliteMoment, relation: Any) -> Any:
        yield from rows(moment, relation)
        crm.run("BEGIN", "INSERT INTO notes VALUES (1, 'a', 0)", "INSERT INTO others VALUES (1)", "COMMIT")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteMoment, "rows", writing)
        assert source.poll([NOTES, OTHERS]).number == 1
    source.poll([NOTES, OTHERS])
    [both] = told(source, 1, [NOTES, OTHERS])
    assert both == {(1, "a", 0.0): 2, (1,): 2}


@pytest.mark.parametrize(
    ("declared", "value"),
    [("INTEGER", "'text'"), ("BOOLEAN", "2"), ("DECIMAL(5,2)", "1.005"), ("DATE", "'tomorrow'"), ("TEXT", "x'00'")],
)
def test_a_value_of_another_type_is_refused_by_its_column(crm: Crm, declared: str, value: str) -> None:
    crm.run(f"CREATE TABLE odd (id INTEGER, c {declared})", f"INSERT INTO odd VALUES (1, {value})")
    with pytest.raises(SourceRefused, match='column "c"') as refused:
        crm.source().poll([RelationName(source="crm", name="odd")])
    assert refused.value.code == "HW-352"
    assert "text" not in refused.value.detail.replace("TEXT", ""), "no value is shown"


def test_a_text_that_is_none_is_refused_without_being_shown(crm: Crm) -> None:
    crm.run("INSERT INTO notes VALUES (1, CAST(x'73656372E974' AS TEXT), 0)")
    with pytest.raises(SourceRefused, match='column "note"') as refused:
        crm.source().poll([NOTES])
    assert refused.value.code == "HW-366"
    assert "secr" not in str(refused.value)


def test_columns_that_say_nothing_are_not_read(crm: Crm) -> None:
    crm.run("CREATE TABLE odd (id INTEGER PRIMARY KEY, c, d DECIMAL(20,2), e TEXT PRIMARY_KEY)")
    [relation] = crm.source().inspect([RelationName(source="crm", name="odd")]).relations
    assert (relation.column_names, [name for name, _ in relation.unusable]) == (("id", "e"), ["c", "d"])
    assert relation.key == ("id",)
    crm.run("CREATE TABLE loose (id TEXT PRIMARY KEY)")
    [relation] = crm.source().inspect([RelationName(source="crm", name="loose")]).relations
    assert relation.key == (), "SQLite lets such a key be NULL, many times"


def test_states_of_another_warehouse_are_noticed(crm: Crm) -> None:
    source = crm.source()
    held = source.prepare([NOTES], "slot", is_new=True)
    source.teardown("slot", held)
    relations = source.inspect([NOTES]).relations
    with pytest.raises(SourceLost, match="not the one that was followed"):
        source.follow(relations, "slot", held)
    with pytest.raises(SourceLost, match="never polled"):
        source.follow(relations, "slot", {})
    source.prepare([NOTES], "slot", is_new=True)
    with pytest.raises(SourceLost, match="not the one that was followed"):
        source.follow(relations, "slot", held)


def test_states_are_kept_in_the_warehouse(crm: Crm, place: str) -> None:
    """In a folder and on an object store; what is acknowledged goes, but for some."""
    files = SourceFiles(place, "crm")
    sqlite = SqlitePlace.at(f"sqlite:///{crm.file}", "crm", 1.0)
    source = PolledSource("crm", sqlite, files=files)
    source.prepare([NOTES], "slot", is_new=True)
    for number in range(30):
        crm.run(f"INSERT INTO notes VALUES ({number}, 'a', 1.5)")
        source.poll([NOTES])
    again = PolledSource("crm", sqlite, files=SourceFiles(place, "crm"))
    assert told(again, 29) == [{(28, "a", 1.5): 1}, {(29, "a", 1.5): 1}]
    follower = again.follow(again.inspect([NOTES]).relations, "slot", {})
    follower.acknowledge(again.position(again.states.state(30)))
    assert again.states.numbers() == [*range(14, 32)]
    assert len([name for name in files.names() if name.endswith("rows")]) == 18
    with again.snapshot([NOTES]) as snapshot, snapshot.reader() as reader:
        [relation] = again.inspect([NOTES]).relations
        read = reader.read(relation, ("id",), Chunk(number=0), WHOLE)
        assert sum(table.num_rows for table in read) == 30


def test_a_column_that_goes_before_it_is_read_is_no_text(crm: Crm) -> None:
    """SQLite takes a name in double quotes that it does not know for a text: every row would have it."""
    crm.run("INSERT INTO notes VALUES (1, 'a', 0.5)")
    [relation] = crm.source().inspect([NOTES]).relations
    crm.run("ALTER TABLE notes DROP COLUMN note")
    with pytest.raises(SourceUnavailable, match="no such column"), crm.source().place.moment() as moment:
        list(moment.rows(relation))


def test_columns_are_those_of_the_moment_that_is_read(crm: Crm, monkeypatch: pytest.MonkeyPatch) -> None:
    crm.run("PRAGMA journal_mode = WAL", "INSERT INTO notes VALUES (1, 'a', 0.5)")
    source = crm.source()
    source.prepare([NOTES], "slot", is_new=True)
    from headwater.sources.polled.sqlite import SqliteMoment  # noqa: PLC0415

    describe = SqliteMoment.describe

    def altering(moment: SqliteMoment, names: Any) -> Any:
        crm.run("ALTER TABLE notes DROP COLUMN weight", "INSERT INTO notes VALUES (2, 'b')")
        return describe(moment, names)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteMoment, "describe", altering)
        assert source.poll([NOTES]).number == 1, "it is as it was when it was opened"
    state = source.poll([NOTES])
    assert [name for name, _, _ in state.relations[str(NOTES)].columns] == ["id", "note"]


def test_a_new_view_reads_a_column_that_came_after_the_last_poll(crm: Crm) -> None:
    """What was polled before does not have it: it would be NULL for ever."""
    crm.run("INSERT INTO notes VALUES (1, 'a', 0.5)")
    source = crm.source()
    source.prepare([NOTES], "slot", is_new=True)
    crm.run("INSERT INTO notes VALUES (2, 'b', 0.5)")
    source.poll([NOTES])
    crm.run("ALTER TABLE notes ADD COLUMN more INTEGER DEFAULT 7")
    [relation] = source.inspect([NOTES]).relations
    with source.snapshot([NOTES]) as snapshot, snapshot.reader() as reader:
        rows = [
            row for some in reader.read(relation, ("id", "more"), Chunk(number=0), WHOLE) for row in some.to_pylist()
        ]
    assert rows == [{"id": 1, "more": 7}, {"id": 2, "more": 7}]
    columns = tuple(replace(one, use=ColumnUse.FIRST_READ) if one.name == "more" else one for one in relation.columns)
    states = [state for number in (2, 3) if (state := source.states.state(number)) is not None]
    capture = source.capture(states, [replace(relation, columns=columns)])
    assert capture is not None
    assert not capture.altered


def test_a_database_that_is_being_put_back_is_not_empty(crm: Crm) -> None:
    source = crm.source()
    source.prepare([NOTES], "slot", is_new=True)
    whole = crm.file.read_bytes()
    crm.file.write_bytes(b"")
    with pytest.raises(SourceUnavailable, match="HW-354"):
        source.poll([NOTES])
    crm.file.write_bytes(whole)
    assert source.poll([NOTES]).missing == ()


def test_a_database_that_is_away(crm: Crm) -> None:
    source = crm.source()
    source.prepare([NOTES], "slot", is_new=True)
    crm.file.rename(crm.file.with_suffix(".away"))
    with pytest.raises(SourceUnavailable, match="cannot be read now"):
        source.poll([NOTES])
    crm.file.with_suffix(".away").rename(crm.file)
    assert source.poll([NOTES]).number == 1


# Files


def files_source(folder: Path) -> PolledSource:
    return PolledSource("crm", FolderPlace.at(f"files:{folder}", "crm"), files=ProcessFiles())


def test_texts_of_csv_files(tmp_path: Path) -> None:
    """An empty field is NULL and two quotes are an empty text; nothing is taken for a number."""
    (tmp_path / "notes.csv").write_text('id,note\n007,"a\nb"\n,""\n1.0,NULL\n')
    source = files_source(tmp_path)
    source.prepare([NOTES], "slot", is_new=True)
    (tmp_path / "notes.csv").write_text("id,note\n")
    source.poll([NOTES])
    assert told(source, 1) == [{("007", "a\nb"): -1, (None, ""): -1, ("1.0", "NULL"): -1}]


def test_files_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "day=1").mkdir(parents=True)
    nan = math.nan
    pq.write_table(pa.table({"x": [0.0, nan]}), folder / "day=1" / "a.parquet")
    pq.write_table(pa.table({"x": [nan]}), folder / "b.parquet")
    (folder / "_SUCCESS").write_text("")
    source = files_source(tmp_path)
    source.prepare([NOTES], "slot", is_new=True)
    another_nan = np.array([0x7FF8_0000_0000_0001], np.uint64).view(np.float64)
    pq.write_table(pa.table({"x": np.concatenate([[0.0], another_nan])}), folder / "day=1" / "a.parquet")
    assert source.poll([NOTES]).number == 1, "there is one NaN"
    pq.write_table(pa.table({"x": [-0.0]}), folder / "b.parquet")
    source.poll([NOTES])
    [net_change] = told(source, 1)
    assert net_change == {("NaN",): -1, (-0.0,): 1}
    assert [str(row) for row, n in net_change.items() if n > 0] == ["(-0.0,)"]
    pq.write_table(pa.table({"x": [1]}), folder / "c.parquet")
    [refusal] = source.inspect([NOTES]).refusals
    assert refusal.code == "HW-360"


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.csv").write_text("id\n1\n")
    source = files_source(tmp_path)
    from headwater.sources.polled import folder  # noqa: PLC0415

    rows = folder._rows

    def writing(file: Path) -> Any:
        yield from rows(file)
        file.write_text("id\n1\n2\n")

    with monkeypatch.context() as patched:
        patched.setattr(folder, "_rows", writing)
        with pytest.raises(SourceUnavailable, match="cannot be read now"):
            source.poll([NOTES])
    assert source.states.newest() is None
    assert source.poll([NOTES]).number == 1


def test_files_that_are_replaced_between_their_columns_and_their_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "notes.parquet")
    source = files_source(tmp_path)
    source.prepare([NOTES], "slot", is_new=True)
    from headwater.sources.polled.folder import FolderMoment  # noqa: PLC0415

    rows = FolderMoment.rows

    def replacing(moment: FolderMoment, relation: Any) -> Any:
        pq.write_table(pa.table({"y": [1], "z": [2]}), tmp_path / "another")
        (tmp_path / "another").rename(tmp_path / "notes.parquet")
        return rows(moment, relation)

    with monkeypatch.context() as patched:
        patched.setattr(FolderMoment, "rows", replacing)
        with pytest.raises(SourceUnavailable, match="HW-359"):
            source.poll([NOTES])
    assert [name for name, _, _ in source.poll([NOTES]).relations[str(NOTES)].columns] == ["y", "z"]


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("id,id\n1,2\n")
    [refusal] = files_source(tmp_path).inspect([NOTES]).refusals
    assert refusal.code == "HW-365"


# Other databases


def settings(url: str, **options: str) -> SourceSettings:
    return SourceSettings(name="crm", url=lambda: url, project="p", options=options)


def test_any_database_of_sqlalchemy(crm: Crm) -> None:
    """By `poll`, whatever the scheme of its URL; here SQLAlchemy reads SQLite, whose dialect has another name there."""
    crm.run("INSERT INTO notes VALUES (1, 'a', 0.5), (1, 'a', 0.5)")
    source = connect(settings(f"sqlite+pysqlite:///{crm.file}", poll="10 s"))
    assert isinstance(source, PolledSource)
    source.prepare([NOTES], "slot", is_new=True)
    crm.run("DELETE FROM notes WHERE rowid = 1")
    source.poll([NOTES])
    assert told(source, 1) == [{(1, "a", 0.5): -1}]
    assert source.poll_seconds == 10


def test_times_whose_zone_is_not_known_are_refused() -> None:
    """A driver that leaves the zone out, or brings one, would move the time by hours."""
    from headwater.sources.polled.database import _plain  # noqa: PLC0415

    zoned = datetime(2026, 1, 2, tzinfo=UTC)
    plain = zoned.replace(tzinfo=None)
    for kind, right, wrong in (("timestamp", zoned, plain), ("timestamp_ntz", plain, zoned)):
        column = Column(name="at", type=kind, native="datetime")
        assert _plain(right, column, NOTES) == right
        with pytest.raises(SourceRefused, match="HW-352"):
            _plain(wrong, column, NOTES)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.delitem(sys.modules, "headwater.sources.polled.database", raising=False)
    with pytest.raises(InvalidProject, match="not installed") as refused:
        connect(settings("oracle+oracledb://me@db/shop", poll="1 min"))
    assert "headwater[polled]" in refused.value.hint


def test_what_is_said_wrongly() -> None:
    for url, options, code in (
        ("sqlite:///shop.db", {}, "HW-353"),
        ("files:drop", {}, "HW-357"),
        ("sqlite:////srv/shop.db", {"poll": "often"}, "HW-356"),
        ("sqlite:////srv/shop.db", {"pol": "1 s"}, "HW-351"),
        ("nothing://me:secret@db/shop", {"poll": "1 s"}, "HW-362"),
        ("mssql+pyodbc://me:secret@db/shop", {"poll": "1 s"}, "HW-362"),
    ):
        with pytest.raises(InvalidProject) as refused:
            connect(settings(url, **options))
        assert refused.value.code == code
        assert "secret" not in str(refused.value)


# Secrets in files


def test_secrets_from_files(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("s3cr@t\n")
    text = f"postgresql://me:${{file:{tmp_path / 'password'}}}@${{HOST}}/shop"
    assert filled(text, {"HOST": "db"}, "it") == "postgresql://me:s3cr@t@db/shop"
    (tmp_path / "password").write_text("rotated")
    assert "rotated" in filled(text, {"HOST": "db"}, "it")
    (tmp_path / "password").write_text("")
    for wrong in (text, text.replace("password", "none"), "${file:password}"):
        with pytest.raises(InvalidProject) as refused:
            filled(wrong, {"HOST": "db"}, "the url of source crm needs it")
        assert refused.value.code == "HW-174"
