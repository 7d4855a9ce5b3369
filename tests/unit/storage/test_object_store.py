"""One contract for a folder and an object store: what is put is there as a whole, and of several makers one wins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from s3_server import S3Server

from headwater.errors import WarehouseRefused
from headwater.model.position import Tick
from headwater.storage import remote_objects
from headwater.storage.data_file import describe, write_rows
from headwater.storage.data_file import place as arrow_place
from headwater.storage.fenced_table import FencedTable
from headwater.storage.merge_files import merge_files
from headwater.storage.object_store import delta_address, options_of, reach, store_at
from headwater.warehouse.commit_record import CommitKind, CommitRecord
from headwater.warehouse.commits import Commits
from headwater.warehouse.folders import RESERVED, reserve_generation
from headwater.warehouse.lease import require_fencing

ODD = ("my table", "we#ird?", "100%", "Straße", "a+b&c=d", 'it\'s [not] {so} ~ "bad"')
SCHEMA = pa.schema([("_tick", pa.int64())])


def together(count: int, work: Callable[[int], bool]) -> list[bool]:
    """Let threads do something at the same moment, and return what each got."""
    barrier = threading.Barrier(count)

    def begin(number: int) -> bool:
        barrier.wait(30)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def test_what_is_put_is_there_as_a_whole(place: str) -> None:
    store = store_at(place)
    assert (store.get("a"), store.size("a"), store.names(), store.sizes()) == (None, None, [], {})
    store.put("a", b"one")
    store.put("a", b"other", durable=True)
    store.put("deep/er/b", b"")
    assert (store.get("a"), store.size("a"), store.get("deep/er/b")) == (b"other", 5, b"")
    assert (store.names(), store.names("deep"), store.names("deep/er")) == (["a", "deep"], ["er"], ["b"])
    assert store.sizes() == {"a": 5, "deep/er/b": 0}
    assert store_at(f"{place}/deep").sizes("er") == {"er/b": 0}
    assert (store.get("a/b"), store.size("deep")) == (None, None)


def test_what_is_deleted_is_gone_and_nothing_else(place: str) -> None:
    store = store_at(place)
    for name in ("d/a", "d/e/b", "dd/c", "d.json"):
        store.put(name, b"x")
    store.delete("d/a")
    store.delete("d/a")
    store.delete("nothing")
    assert sorted(store.sizes()) == ["d.json", "d/e/b", "dd/c"]
    store.delete("d")
    assert sorted(store.sizes()) == ["d.json", "dd/c"]
    store_at(f"{place}/dd").delete()
    assert sorted(store.sizes()) == ["d.json"]
    store.delete()
    assert store.sizes() == {}


def test_of_several_makers_one_wins(place: str) -> None:
    store = store_at(place)
    for number in range(6):
        name = f"numbers/{number}"
        won = together(6, lambda maker, name=name: store.put_if_absent(name, str(maker).encode()))
        assert won.count(True) == 1
        assert store.get(name) == str(won.index(True)).encode()
    assert store.names("numbers") == [str(number) for number in range(6)], "losers leave nothing"


def test_a_large_object_is_there_when_all_of_it_is(place: str) -> None:
    store, large = store_at(place), bytes(range(256)) * 50_000
    with store.writing("new/large") as sink:
        sink.write(large)
        sink.write(b"end")
        assert sink.tell() == len(large) + 3
    assert store.get("new/large") == large + b"end"

    def give_up() -> None:
        with store.writing("new/other") as sink:
            sink.write(large)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        give_up()
    assert store.names("new") == ["large"]


def test_an_object_is_moved_within_its_store(place: str) -> None:
    store_at(f"{place}/staging").put("deep/a", b"rows")
    store_at(f"{place}/replicas/r/1").move_in(f"{place}/staging/deep/a", "new/b")
    assert store_at(place).sizes() == {"replicas/r/1/new/b": 4}
    with pytest.raises(FileNotFoundError):
        store_at(place).move_in(f"{place}/staging/deep/a", "again")


@pytest.mark.parametrize("whole_bytes", [1 << 20, 100])
def test_arrow_reads_what_was_written(place: str, monkeypatch: pytest.MonkeyPatch, whole_bytes: int) -> None:
    monkeypatch.setattr(remote_objects, "READ_WHOLE_BYTES", whole_bytes)
    rows = pa.table({"_tick": np.arange(10_000), "name": [f"name {number}" for number in range(10_000)]})
    files = [write_rows(place, rows.slice(start, 5_000)) for start in (0, 5_000)]
    assert [describe(place, file.path) for file in files] == files
    assert [(file.lowest["_tick"], file.highest["_tick"]) for file in files] == [(0, 4_999), (5_000, 9_999)]
    assert {file.path: file.byte_count for file in files} == store_at(place).sizes()
    system, base = arrow_place(place)
    found = ds.dataset([f"{base}/{file.path}" for file in files], format="parquet", filesystem=system)
    assert found.to_table().sort_by("_tick").equals(rows)
    assert found.to_table(filter=ds.field("_tick").isin([3, 7_000])).num_rows == 2
    merged = merge_files(place, [f"{place}/{file.path}" for file in files], rows.schema)
    assert describe(place, merged.path) == merged
    assert pq.read_table(f"{base}/{merged.path}", filesystem=system).equals(rows)


@pytest.mark.parametrize("name", ODD)
def test_delta_and_we_mean_the_same_objects_whatever_a_relation_is_called(place: str, name: str) -> None:
    table = FencedTable.create(f"{place}/replicas/{name}/1", SCHEMA, numbers={"n": 1}, mark='"mark"')
    assert table.append(pa.table({"_tick": [1]}), numbers={"n": 2}, mark='"next"')
    opened = FencedTable.open(f"{place}/replicas/{name}/1")
    assert (opened.number("n"), opened.mark(), FencedTable.exists(opened.path)) == (2, '"next"', True)
    assert store_at(place).names("replicas") == [name]
    [file] = opened.files()
    system, path = arrow_place(file)
    assert pq.read_table(path, filesystem=system)["_tick"].to_pylist() == [1]
    assert not FencedTable.exists(f"{place}/replicas/{name}")


def test_of_several_writers_one_commits_each_version(place: str) -> None:
    """What fencing stands on: a version's file is made only if it is absent, whoever was slow to look."""
    FencedTable.create(place, SCHEMA, numbers={"n": 0}, mark="{}")
    writers, rounds = 5, 6
    handles = [FencedTable.open(place) for _ in range(writers)]
    for number in range(1, rounds + 1):
        for handle in handles:
            handle.reload()
        won = together(writers, lambda n, number=number: handles[n].register([], numbers={"n": number}, mark=str(n)))
        assert won.count(True) == 1
        winner = FencedTable.open(place)
        assert (winner.version, winner.number("n"), winner.mark()) == (number, number, str(won.index(True)))


def test_of_several_that_take_a_number_each_gets_its_own(place: str) -> None:
    taken = []
    together(5, lambda _: taken.append(reserve_generation(f"{place}/views/v/0")) is None)
    assert sorted(taken) == [1, 2, 3, 4, 5]
    assert store_at(place).names("views/v/5") == [RESERVED]
    store_at(f"{place}/views/v/5").put("changes/x", b"")
    store_at(f"{place}/views/v/5").delete("changes")
    assert reserve_generation(f"{place}/views/v/2") == 6, "its number is not given again"


def test_what_a_lost_answer_leaves_in_doubt_is_found_out(s3: S3Server) -> None:
    """The store did what we asked, and its answer was lost: we ask again, and hear that the version is there."""
    address = s3.address()
    reach(address, s3.options)
    commits = Commits.create(address)
    epoch = commits.take_lease("here:1")
    for tick in range(1, 4):
        with s3.failing("lose", only="_delta_log", count=1 if tick == 2 else 0):
            commits.commit(CommitKind.BATCH, Tick(tick), CommitRecord(frontiers={"v": Tick(tick)}), epoch=epoch)
    reader = Commits.open(address)
    assert [(one.sequence, one.tick) for one in reader.read()] == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert reader.head().epoch == epoch


def test_a_store_that_overwrites_what_must_stay_is_refused(s3: S3Server, tmp_path: Path) -> None:
    address = s3.address()
    reach(address, s3.options)
    require_fencing(address)
    require_fencing(str(tmp_path / "folder"))
    with s3.failing("overwrite"), pytest.raises(WarehouseRefused) as refused:
        require_fencing(address)
    assert refused.value.code == "HW-444"
    assert store_at(address).names() == []


def test_a_store_is_reached_as_its_address_says(monkeypatch: pytest.MonkeyPatch, s3: S3Server) -> None:
    monkeypatch.setenv("REGION", "mars")
    address, said = s3.address("one"), {**s3.options, "region": "${REGION}"}
    reach(f"{address}/", said)
    assert options_of(f"{address}/views/v/1") == said
    assert options_of(address.replace("/one", "/other")) == {}
    assert delta_address(f"{address}/journal") == (f"{address}/journal", {**s3.options, "region": "mars"})
    reach(str(Path("/srv/w")), {"region": "x"})
    assert (options_of("/srv/w"), delta_address("/srv/w/journal")) == ({}, ("/srv/w/journal", None))
