"""What must not go wrong with Delta tables, each with a table that another program wrote."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from delta_tables import DeltaTableWriter
from deltalake import DeltaTable, write_deltalake

from headwater.deltas.extent import WHOLE
from headwater.errors import HeadwaterError, InvalidProject, SourceLost, SourceRefused, SourceUnavailable
from headwater.model.position import Positions
from headwater.model.relation import COUNT, ColumnUse, Relation, RelationName
from headwater.model.transaction import Capture
from headwater.sources.delta import DeltaSource
from headwater.sources.delta import state as delta_state
from headwater.sources.delta.lake import Lake
from headwater.sources.source import Chunk

NAME = RelationName(source="lake", name="items")
COLUMNS = (("id", "bigint"), ("name", "string"))


class Followed:
    """A table that is followed from where its log stands."""

    def __init__(self, folder: Path) -> None:
        self.source = DeltaSource("lake", Lake.at(f"delta:{folder}", "lake"))
        [self.relation] = self.source.inspect([NAME]).relations
        self.held: Positions = self.source.prepare([NAME], "slot", is_new=True)

    def captures(self) -> list[Capture]:
        follower = self.source.follow([self.relation], "slot", self.held)
        found: list[Capture] = []
        for _ in range(100):
            capture = follower.next_capture(0.0)
            found += [] if capture is None else [capture]
            if capture is None and follower.followed_to() == follower.log_end():
                break
        else:
            pytest.fail("the log was not followed to its end")
        self.held = follower.followed_to()
        return found

    def told(self) -> list[Counter[Any]]:
        return [one for capture in self.captures() for one in by_transaction(capture, self.relation)]

    def rows(self, at: Positions | None = None) -> Counter[Any]:
        with self.source.snapshot([NAME], at=at) as snapshot, snapshot.reader() as reader:
            names = self.relation.column_names
            tables = reader.read(self.relation, names, Chunk(number=0), WHOLE)
            return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


def by_transaction(capture: Capture, relation: Relation) -> Iterator[Counter[Any]]:
    rows = capture.rows[relation.name].to_pylist() if relation.name in capture.rows else []
    for ordinal, _ in enumerate(capture.transactions):
        net: Counter[Any] = Counter()
        for row in rows:
            if row["_ordinal"] == ordinal:
                net[tuple(row[name] for name in relation.column_names)] += row[COUNT]
        yield Counter({row: n for row, n in net.items() if n})


@pytest.fixture
def items(tmp_path: Path) -> DeltaTableWriter:
    return DeltaTableWriter(tmp_path / "items", COLUMNS).create()


def alter(writer: DeltaTableWriter, *columns: tuple[str, str]) -> None:
    """Change the columns as ALTER TABLE does: no file is written again."""
    writer.columns = columns
    writer.commit([writer.metadata()])


def test_duplicates_and_nulls_are_counted(items: DeltaTableWriter, tmp_path: Path) -> None:
    """A file is written again with one copy fewer of a row: the difference is that copy, and no more."""
    items.apply({(1, "a"): 3, (None, None): 2, (2, "b"): 1})
    followed = Followed(tmp_path)
    items.apply({(1, "a"): -1})
    items.apply({(None, None): -1, (1, "a"): -2, (3, "c"): 2})
    [first, second] = followed.captures()[0].transactions
    assert (first.position.text, second.position.text) == ("2", "3")
    again = Followed(tmp_path)
    again.held = followed.source.prepare([NAME], "slot", is_new=False)
    assert again.told() == []


def test_what_each_version_told(items: DeltaTableWriter, tmp_path: Path) -> None:
    items.apply({(1, "a"): 3, (None, None): 2})
    followed = Followed(tmp_path)
    items.apply({(1, "a"): -1})
    items.optimize()
    items.overwrite(items.rows() + Counter({(9, "z"): 1}))
    items.overwrite(items.rows())
    assert followed.told() == [{(1, "a"): -1}, {(9, "z"): 1}, {}], "OPTIMIZE is no transaction"
    assert followed.rows() == items.rows()


@pytest.mark.parametrize("has_feed", [False, True], ids=["files", "feed"])
def test_what_delta_rs_writes(tmp_path: Path, has_feed: bool) -> None:
    """Partitions with special characters, DELETE, UPDATE, MERGE, overwriting, OPTIMIZE, VACUUM and RESTORE."""
    path = str(tmp_path / "items")
    first = pa.table({"id": pa.array([1, 2, 3, 3]), "name": pa.array(["a b/c%", "é", None, None])})
    feed = {"delta.enableChangeDataFeed": "true"} if has_feed else {}
    write_deltalake(path, first, partition_by=["name"], configuration=feed)
    followed, states = Followed(tmp_path), [Counter(zip(*first.to_pydict().values(), strict=True))]

    def noted() -> DeltaTable:
        table = DeltaTable(path)
        read = table.to_pyarrow_table().select(["id", "name"]).to_pydict()
        states.append(Counter(zip(*read.values(), strict=True)))
        return table

    write_deltalake(path, pa.table({"id": [4, 4], "name": ["a b/c%", "z=1"]}), mode="append")
    noted().delete("id = 3")
    noted().update(predicate="id = 4", updates={"id": "5"})
    source = pa.table({"id": [5, 6], "name": ["a b/c%", "new"]})
    merge = noted().merge(source, "t.id = s.id AND t.name = s.name", source_alias="s", target_alias="t")
    merge.when_matched_delete().when_not_matched_insert_all().execute()
    noted().optimize.compact()
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, pa.table({"id": [7], "name": ["é"]}), mode="overwrite")
    noted().restore(1)
    noted()
    told = followed.told()
    assert told == [{row: n for row in {*b, *a} if (n := a[row] - b[row])} for b, a in pairwise(states)]
    assert followed.rows() == states[-1]


def test_columns_that_no_view_reads_may_change(items: DeltaTableWriter, tmp_path: Path) -> None:
    items.apply({(1, "a"): 1})
    followed = Followed(tmp_path)
    alter(items, *COLUMNS, ("extra", "double"))
    items.apply({(2, "b", 0.5): 1})
    assert followed.told() == [{(2, "b"): 1}]


@pytest.mark.parametrize(
    ("columns", "what"),
    [((COLUMNS[0],), '"name" was dropped'), ((COLUMNS[0], ("name", "bigint")), '"name" was string and is bigint')],
    ids=["dropped", "another type"],
)
def test_columns_that_views_read(items: DeltaTableWriter, tmp_path: Path, columns: Any, what: str) -> None:
    items.apply({(1, "a"): 1})
    followed = Followed(tmp_path)
    items.apply({(2, "b"): 1})
    alter(items, *columns)
    [capture] = [one for one in followed.captures() if one.altered]
    assert what in capture.altered[max(capture.altered)][NAME]


def test_a_new_view_does_not_care_for_what_was_before_it(items: DeltaTableWriter, tmp_path: Path) -> None:
    """It reads a column that was added after other changes of the table's properties, which say nothing of it."""
    held = Followed(tmp_path).held
    items.commit([items.metadata()])
    alter(items, *COLUMNS, ("more", "int"))
    followed = Followed(tmp_path)
    columns = tuple(
        replace(one, use=ColumnUse.FIRST_READ) if one.name == "more" else one for one in followed.relation.columns
    )
    followed.relation, followed.held = replace(followed.relation, columns=columns), held
    assert followed.captures() == []
    alter(items, *COLUMNS)
    [capture] = followed.captures()
    assert [*capture.altered.values()] == [{NAME: 'column "more" was dropped or renamed'}]


def test_a_table_that_was_made_again_is_lost(items: DeltaTableWriter, tmp_path: Path) -> None:
    """It has as many versions as the old one, and more; or fewer; or it is gone."""
    items.apply({(1, "a"): 1})
    followed = Followed(tmp_path)
    for versions in (0, 1, 5):
        shutil.rmtree(items.path)
        again = DeltaTableWriter(items.path, COLUMNS).create()
        for number in range(versions):
            again.apply({(number, "other"): 1})
        with pytest.raises(SourceLost) as lost:
            followed.captures()
        assert lost.value.code == "HW-315"
    shutil.rmtree(items.path)
    with pytest.raises(SourceUnavailable, match="cannot be read now"):
        followed.captures()


def test_a_folder_that_is_not_mounted_now_is_not_lost(items: DeltaTableWriter, tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    items.apply({(1, "a"): 1})
    follower = followed.source.follow([followed.relation], "slot", followed.held)
    with followed.source.snapshot([NAME]) as snapshot, snapshot.reader() as reader:
        items.path.rename(tmp_path / "away")
        for asking in (
            followed.captures,
            follower.log_end,
            lambda: followed.source.snapshot([NAME]),
            lambda: [*reader.read(followed.relation, ("id",), Chunk(number=0), WHOLE)],
        ):
            with pytest.raises(SourceUnavailable):
                asking()
    (tmp_path / "away").rename(items.path)
    assert followed.told() == [{(1, "a"): 1}]


def test_a_commit_file_that_is_being_copied_is_read_later(items: DeltaTableWriter, tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    items.apply({(1, "a"): 1})
    file = items.path / "_delta_log" / f"{1:020}.json"
    whole = file.read_text()
    file.write_text(whole[:-20])
    with pytest.raises(SourceUnavailable):
        followed.captures()
    file.write_text(whole)
    assert followed.told() == [{(1, "a"): 1}]


def test_a_copy_that_was_put_back_is_lost(items: DeltaTableWriter, tmp_path: Path) -> None:
    """It has the same table id and as many versions: only the content of the last one tells."""
    items.apply({(1, "a"): 1})
    shutil.copytree(items.path, tmp_path / "backup")
    items.apply({(2, "b"): 1})
    followed = Followed(tmp_path)
    follower = followed.source.follow([followed.relation], "slot", followed.held)
    shutil.rmtree(items.path)
    shutil.copytree(tmp_path / "backup", items.path)
    restored = DeltaTableWriter(items.path, COLUMNS, table_id=items.table_id, version=1)
    restored.apply({(3, "c"): 1})
    with pytest.raises(SourceLost, match="not the one that was followed"):
        followed.captures()
    restored.apply({(4, "d"): 1})
    with pytest.raises(SourceLost, match="not the one that was followed"):
        follower.next_capture(0.0)
    with pytest.raises(SourceLost, match="not the one that was followed"):
        followed.rows(at=followed.held)


def test_log_and_files_that_were_deleted_are_lost(items: DeltaTableWriter, tmp_path: Path) -> None:
    items.apply({(1, "a"): 1})
    followed = Followed(tmp_path)
    items.apply({(1, "a"): -1, (2, "b"): 1})
    items.apply({(2, "b"): -1})
    items.vacuum()
    with pytest.raises(SourceLost, match="deleted what we still need") as lost:
        followed.captures()
    assert lost.value.code == "HW-379"
    DeltaTable(str(items.path)).create_checkpoint()
    for version in (0, 1, 2):
        (items.path / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(SourceLost, match="deleted what we still need"):
        followed.captures()


@pytest.mark.parametrize(
    ("actions", "named"),
    [
        ([{"protocol": {"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]}}], "deletionVectors"),
        ([{"protocol": {"minReaderVersion": 9}}], "reader version 9"),
        ([{"protocol": {"minReaderVersion": 3, "readerFeatures": ["variantType"]}}], "variantType"),
        ([{"add": {"path": "x", "deletionVector": {"storageType": "u"}}}], "deletionVectors"),
        ([{"somethingNew": {}}], "somethingNew"),
    ],
    ids=["deletion vectors", "version", "variant", "a vector", "unknown action"],
)
def test_what_cannot_be_read_is_refused_by_name(
    items: DeltaTableWriter, tmp_path: Path, actions: list[Any], named: str
) -> None:
    """What was committed before is told first."""
    followed = Followed(tmp_path)
    items.apply({(1, "a"): 1})
    items.commit(actions, {})
    follower = followed.source.follow([followed.relation], "slot", followed.held)
    capture = follower.next_capture(0.0)
    assert capture is not None
    assert list(by_transaction(capture, followed.relation)) == [{(1, "a"): 1}]
    with pytest.raises(SourceRefused, match=named) as refused:
        follower.next_capture(0.0)
    assert refused.value.code == "HW-370"


def test_nothing_is_told_of_what_comes_after_what_cannot_be_read(items: DeltaTableWriter, tmp_path: Path) -> None:
    """A reader looks at all that is there at once: it must not leave a version out and go on behind it."""
    followed = Followed(tmp_path)
    items.apply({(1, "a"): 1})
    items.commit([{"add": {"path": "x", "deletionVector": {"storageType": "u"}}}], {})
    items.apply({(2, "b"): 1})
    capture = followed.source.peek([followed.relation], "slot", followed.held)
    assert capture is not None
    assert [one.position.text for one in capture.transactions] == ["1"]


def test_nothing_is_told_of_what_comes_after_an_alteration(items: DeltaTableWriter, tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    items.apply({(1, "a"): 1})
    alter(items, ("id", "bigint"))
    alter(items, *COLUMNS)
    items.apply({(2, "b"): 1})
    capture = followed.source.peek([followed.relation], "slot", followed.held)
    assert capture is not None
    assert [one.position.text for one in capture.transactions] == ["1", "2"]
    assert set(capture.altered) == {1}


def test_a_commit_file_without_a_word_is_read_later(items: DeltaTableWriter, tmp_path: Path) -> None:
    """Where a log is copied file by file, a file is there before its content is."""
    followed = Followed(tmp_path)
    items.apply({(1, "a"): 1})
    file = items.path / "_delta_log" / f"{1:020}.json"
    whole = file.read_text()
    file.write_text("")
    with pytest.raises(SourceUnavailable, match="HW-377"):
        followed.captures()
    file.write_text(whole)
    assert followed.told() == [{(1, "a"): 1}]


def test_partition_values_of_another_program(tmp_path: Path) -> None:
    """Texts with any characters, and times with a zone, are the same from the log and from a reading."""
    odd = ["50%", "a b", "a/b", "ü", "a=b", "x%20y", "q?z#", "%2F", "it's", " lead", None]
    times = [dt.datetime(2026, 1, 2, 3, 4, 5, 678901, dt.UTC), dt.datetime(2026, 1, 2, tzinfo=dt.UTC)]
    for name, kind, values in (("text", pa.string(), odd), ("time", pa.timestamp("us", "UTC"), times)):
        path = tmp_path / name / "items"

        def table(number: int, value: Any, kind: pa.DataType = kind) -> pa.Table:
            return pa.table({"id": pa.array([number], pa.int64()), "part": pa.array([value], kind)})

        write_deltalake(path, table(0, None), partition_by=["part"])
        followed = Followed(path.parent)
        for number, value in enumerate(values):
            write_deltalake(path, table(number, value), mode="append")
        expected = Counter(enumerate(values))
        assert sum(followed.told(), Counter()) == expected
        assert followed.rows() == expected + Counter([(0, None)])


def test_bytes_as_partition_values_are_not_read(tmp_path: Path) -> None:
    """Programs do not agree on how they are written."""
    rows = pa.table({"id": pa.array([1], pa.int64()), "part": pa.array([b"\xff"])})
    write_deltalake(tmp_path / "items", rows, partition_by=["part"])
    [relation] = DeltaSource("lake", Lake.at(f"delta:{tmp_path}", "lake")).inspect([NAME]).relations
    assert relation.column_names == ("id",)
    assert dict(relation.unusable) == {"part": "binary, as a partition column"}


def test_column_mapping_is_refused_when_it_is_declared(items: DeltaTableWriter, tmp_path: Path) -> None:
    """By its mode: a reader that ignores it finds columns of NULLs."""
    items.configuration["delta.columnMapping.mode"] = "name"
    items.commit([{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, items.metadata()])
    source = DeltaSource("lake", Lake.at(f"delta:{tmp_path}", "lake"))
    [refusal] = source.inspect([NAME]).refusals
    assert "columnMapping" in refusal.summary


def test_probes_prune_files(items: DeltaTableWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        items.apply({(10 * number + digit, f"n{number}"): 1 for digit in range(10)})
    followed = Followed(tmp_path)
    read: list[str] = []
    file_rows = delta_state.file_rows
    monkeypatch.setattr(delta_state, "file_rows", lambda *a: read.append(a[2].path) or file_rows(*a))
    with followed.source.snapshot([NAME]) as snapshot, snapshot.reader() as reader:
        keys = pa.table({"id": pa.array([5, 61], pa.int64())})
        found = reader.probe(followed.relation, ("id", "name"), ("id",), keys)
        assert sorted(found["id"].to_pylist()) == [5, 61]
        assert len(read) == 2
        found = reader.probe(followed.relation, ("id",), ("name",), pa.table({"name": ["n3"]}))
        assert found.num_rows == 10
        assert len(read) == 3


def test_reading_as_of_a_version(items: DeltaTableWriter, tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    for number in range(4):
        held = followed.source.prepare([NAME], "slot", is_new=False)
        items.apply({(number, "a"): 1, **({(number - 1, "a"): -1} if number else {})})
        assert followed.rows(at=held) == items.state(number)


def test_types_of_partition_columns(tmp_path: Path) -> None:
    columns = (("id", "bigint"), ("part", "decimal(6,2)"), ("day", "date"))
    writer = DeltaTableWriter(tmp_path / "items", columns, ("part", "day")).create()
    rows = {(1, Decimal("1.50"), dt.date(2026, 1, 2)): 1, (2, None, None): 2}
    writer.apply(rows)
    assert Followed(tmp_path).rows() == rows


def test_a_single_table_is_named_like_its_folder(items: DeltaTableWriter, tmp_path: Path) -> None:
    source = DeltaSource("lake", Lake.at(f"delta:{items.path}", "lake"))
    assert not source.inspect([NAME]).refusals
    [refusal] = source.inspect([RelationName(source="lake", name="others")]).refusals
    assert "lake.items" in refusal.detail
    for url in ("delta:lake", "delta:s3://bucket/lake"):
        with pytest.raises(InvalidProject):
            Lake.at(url, "lake")
    nested = DeltaSource("lake", Lake.at(f"delta:{tmp_path.parent}", "lake"))
    name = RelationName(source="lake", schema=tmp_path.name, name="items")
    assert [one.name for one in nested.inspect([name]).relations] == [name]


def test_a_clone_is_refused(items: DeltaTableWriter, tmp_path: Path) -> None:
    followed = Followed(tmp_path)
    add = {"path": "file:///elsewhere/part.parquet", "partitionValues": {}, "size": 1, "dataChange": True}
    items.commit([{"add": add}], {})
    with pytest.raises(HeadwaterError, match="outside of its folder"):
        followed.captures()


def test_a_log_is_not_read_while_it_is_written(items: DeltaTableWriter, tmp_path: Path) -> None:
    """A version that is not there yet ends what is read, whatever lies behind it; a gap that stays is a loss."""
    followed = Followed(tmp_path)
    items.apply({(1, "a"): 1})
    items.apply({(2, "b"): 1})
    first = items.path / "_delta_log" / f"{1:020}.json"
    first.rename(tmp_path / "later")
    with pytest.raises(SourceLost, match="deleted what"):
        followed.captures()
    (tmp_path / "later").rename(first)
    assert followed.told() == [{(1, "a"): 1}, {(2, "b"): 1}]
    assert json.loads(first.read_text().splitlines()[0])
