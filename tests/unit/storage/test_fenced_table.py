"""The mark of a handle is that of the version whose files the handle knows, whatever others commit meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from headwater.errors import WarehouseRefused
from headwater.model.position import Tick
from headwater.storage.fenced_table import FencedTable
from headwater.warehouse.catalog import Catalog, ViewEntry
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.commits import Commits

SCHEMA = pa.schema([("_tick", pa.int64())])


def rows(number: int) -> pa.Table:
    return pa.table({"_tick": [number]}, schema=SCHEMA)


def append(table: FencedTable, number: int) -> None:
    assert table.append(rows(number), numbers={"headwater": number}, mark=str(number))


@pytest.fixture
def path(tmp_path: Path) -> str:
    made = str(tmp_path / "table")
    FencedTable.create(made, SCHEMA, numbers={"headwater": 0}, mark="0")
    return made


def test_a_mark_is_never_newer_than_the_files_of_its_handle(path: str) -> None:
    writer, reader = FencedTable.open(path), FencedTable.open(path)
    append(writer, 1)
    append(writer, 2)
    assert (reader.mark(), len(reader.files())) == ("0", 0)
    reader.reload()
    append(writer, 3)
    assert (reader.mark(), len(reader.files())) == ("2", 2)


def test_a_reader_beside_a_writer_finds_every_row_that_the_mark_tells_of(path: str) -> None:
    done = threading.Event()

    def write() -> None:
        writer = FencedTable.open(path)
        for number in range(1, 61):
            append(writer, number)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    reader, looks = FencedTable.open(path), 0
    while not done.is_set():
        reader.reload()
        told, files = int(reader.mark()), reader.files()
        found = [number for file in files for number in pq.read_table(file)["_tick"].to_pylist()]
        assert sorted(found) == list(range(1, told + 1))
        looks += 1
    thread.join()
    assert looks > 3


def test_a_commit_of_another_program_has_no_mark_and_hides_none(path: str) -> None:
    append(FencedTable.open(path), 1)
    write_deltalake(path, rows(9), mode="append", commit_properties=CommitProperties(max_commit_retries=0))
    table = FencedTable.open(path)
    assert (table.version, table.mark()) == (2, "1")


def test_the_mark_of_a_handle_whose_version_was_cleaned_up_is_that_of_the_newest(path: str) -> None:
    """Such a handle can no longer say what its version said: it goes to the newest one, with its files."""
    writer, reader = FencedTable.open(path), FencedTable.open(path)
    append(writer, 1)
    append(writer, 2)
    writer._table.create_checkpoint()
    for version in (0, 1):
        Path(path, f"_delta_log/{version:020}.json").unlink()
    assert (reader.mark(), len(reader.files()), reader.version) == ("2", 2, 2)


def test_a_table_that_only_others_wrote_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "foreign")
    DeltaTable.create(path, SCHEMA)
    with pytest.raises(WarehouseRefused, match="changed by something else"):
        FencedTable.open(path).mark()


def test_a_catalog_that_is_committed_between_reload_and_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "commits")
    writer = Commits.create(path)
    epoch = writer.take_lease("w")
    reader = Commits.open(path)
    entry = ViewEntry(name="v", generation=1, sql="", birth=Tick(0), guarantee="complete", schema=())
    reload = reader.table.reload

    def reload_then_commit() -> None:
        reload()
        if "v" not in writer.catalog(writer.head()).views:
            writer.commit(CommitKind.CATALOG, Tick(0), CommitRecord(), epoch=epoch, catalog=Catalog(views={"v": entry}))

    writer.commit(CommitKind.BATCH, Tick(0), CommitRecord(), epoch=epoch)
    monkeypatch.setattr(reader.table, "reload", reload_then_commit)
    assert reader.catalog(reader.head()).views == {}
    assert reader.catalog(reader.head()).views == {"v": entry}
