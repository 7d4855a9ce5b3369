"""Rows in layers are found as if all entries lay in one list, whatever is mapped and however often runs were merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from test_indexed_rows import SCHEMA, random_rows
from volume import volume

from headwater.deltas.on_arrow import summed_up
from headwater.model.memory_budget import Share
from headwater.storage import layered_rows
from headwater.storage.layered_rows import LayeredRows
from headwater.storage.mapped_rows import MappedFolder, clear_mapped, is_mapped

COUNTED = pa.schema([*SCHEMA, ("_count", pa.int64())])


def counted(random: Random, count: int) -> pa.Table:
    rows = random_rows(random, count)
    return rows.append_column("_count", pa.array([random.choice((-1, 1, 2)) for _ in range(count)], pa.int64()))


def summed(parts: list[pa.Table], columns: tuple[str, ...], wanted: set[tuple[object, ...]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        for row in part.to_pylist():
            if tuple(row[name] for name in columns) in wanted:
                total[repr({name: row[name] for name in SCHEMA.names})] += row["_count"]
    return Counter({row: count for row, count in total.items() if count})


@pytest.mark.parametrize("seed", range(volume(30, 500)))
@pytest.mark.parametrize("room_bytes", [None, 0, 3_000])
def test_oracle_one_list_of_entries(
    seed: int, room_bytes: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(seed)
    monkeypatch.setattr(layered_rows, "PART_ROWS", random.choice((2, 7, 1_000)))
    monkeypatch.setattr(layered_rows, "LAYER_ROWS", random.choice((5, 30, 1_000)))
    monkeypatch.setattr(layered_rows, "SETTLED_ROWS", random.choice((20, 1_000)))
    base = [counted(random, random.choice((0, 1, 50))) for _ in range(2)]
    share = Share(room_bytes or 0)
    folder = None if room_bytes is None else MappedFolder(tmp_path / "mapped", share)
    layered = LayeredRows(schema=COUNTED, folder=folder, tail_rows=random.choice((1, 5, 40)))
    layered.fill(base)
    entries = list(base)
    for _ in range(random.choice((3, 25))):
        change = counted(random, random.choice((0, 1, 3, 20)))
        layered.add(change)
        entries.append(change)
        columns = tuple(random.sample(SCHEMA.names, random.choice((1, 2))))
        keys = random_rows(random, random.choice((0, 1, 4, 40))).select(list(columns))
        wanted = {tuple(key.values()) for key in keys.to_pylist()}
        found = layered.matching(columns, keys)
        assert {tuple(row[name] for name in columns) for row in found.to_pylist()} <= wanted
        assert summed([found], columns, wanted) == summed(entries, columns, wanted)
        assert found.num_rows <= layered.count_matching(columns, keys) <= layered.row_count
        assert share.held_bytes <= share.limit_bytes
    assert summed([*layered.parts()], (), {()}) == summed([layered.entries()], (), {()}) == summed(entries, (), {()})
    assert layered.row_count == layered.entries().num_rows
    before = layered.entries().to_pylist()
    layered.release()
    assert (share.held_bytes, share.mapped_bytes) == (0, 0)
    assert not (tmp_path / "mapped").exists()
    assert layered.entries().to_pylist() == before, "what is still mapped stays readable"


def test_beyond_the_share_rows_are_mapped_and_those_merged_away_are_deleted(tmp_path: Path) -> None:
    random = Random(1)
    share = Share(5_000)
    layered, other = (
        LayeredRows(schema=COUNTED, folder=MappedFolder(tmp_path / name, share), tail_rows=10) for name in ("a", "b")
    )
    layered.fill([counted(random, 30)])
    assert layered.is_held
    own = share.held_bytes
    other.fill(counted(random, 30) for _ in range(30))  # each has room, all of them have not
    assert not other.is_held, "another table has taken memory before"
    other.make_indexes([("i",)])
    for _ in range(200):
        other.add(counted(random, 9))
    assert own <= share.held_bytes <= 5_000
    mapped = [layer for layer in other._layers() if is_mapped(layer)]
    folders = [folder for folder in (tmp_path / "b").iterdir() if (folder / "rows.arrow").exists()]
    assert len(folders) == len(mapped) < 12
    assert share.mapped_bytes == sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    other.release()
    assert share.mapped_bytes == 0
    assert share.held_bytes == own > 0


@pytest.mark.parametrize("room_bytes", [0, 20_000])
def test_what_was_taken_is_given_back_if_the_rows_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room_bytes: int
) -> None:
    """The upkeep thread tries again every few seconds."""
    monkeypatch.setattr(layered_rows, "LAYER_ROWS", 50)
    share = Share(room_bytes)
    layered = LayeredRows(schema=COUNTED, folder=MappedFolder(tmp_path / "mapped", share))

    def parts() -> Iterator[pa.Table]:
        for _ in range(5):
            yield counted(Random(1), 30)
        raise ValueError("it is gone")

    with pytest.raises(ValueError, match="it is gone"):
        layered.fill(parts())
    assert (share.held_bytes, share.mapped_bytes, layered.row_count) == (0, 0, 0)
    assert not list(tmp_path.rglob("rows.arrow"))


def test_runs_of_many_rows_are_netted_and_small_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is laid on top again and again, as counters are, does not grow: equal rows meet in any piece."""
    monkeypatch.setattr(layered_rows, "PART_ROWS", 7)
    layered = LayeredRows(schema=COUNTED, folder=MappedFolder(tmp_path / "mapped", Share(0)), tail_rows=50)
    rows = counted(Random(2), 40)
    once = rows.set_column(rows.column_names.index("_count"), "_count", pa.array([1] * 40, pa.int64()))
    back = rows.set_column(rows.column_names.index("_count"), "_count", pa.array([-1] * 40, pa.int64()))
    for _ in range(100):
        layered.add(once)
        layered.add(back)
    assert layered.change_count <= 100
    for number in range(400):
        layered.add(once if number % 2 else back)
    sizes = [sum(layer.table.num_rows for layer in run) for run in layered._runs]
    assert all(left > right for left, right in pairwise(sizes))
    assert sum(sizes) <= 200


def test_merging_holds_a_piece_of_each_run_and_not_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Arrow holds while runs are merged is about the same for three times as many rows."""
    monkeypatch.setattr(layered_rows, "PART_ROWS", 2_000)
    seen: list[int] = []

    def watched(rows: pa.Table) -> pa.Table:
        found = summed_up(rows)
        seen.append(pa.total_allocated_bytes())
        return found

    monkeypatch.setattr(layered_rows, "summed_up", watched)
    some, peaks = counted(Random(1), 10_000), []
    for count in (60_000, 180_000):
        layered = LayeredRows(schema=COUNTED, folder=MappedFolder(tmp_path / str(count), Share(0)))
        before = pa.total_allocated_bytes()
        seen.clear()
        for first in range(0, count, some.num_rows):
            numbers = pa.array(range(first, first + some.num_rows), pa.int64())
            layered.add(some.set_column(COUNTED.get_field_index("long"), "long", numbers))
        assert layered.change_count == count
        peaks.append(max(seen) - before)
        layered.release()
    assert peaks[1] < 1.5 * peaks[0] < some.nbytes * 6


def test_a_new_maintainer_deletes_what_an_earlier_one_mapped_and_nothing_else(tmp_path: Path) -> None:
    table = tmp_path / "replicas" / "shop.items" / "1"
    (table / "checkpoint").mkdir(parents=True)
    (table / "checkpoint" / "part.parquet").write_text("rows")
    MappedFolder.below(str(table), Share(0)).place(COUNTED, [counted(Random(1), 5)])
    assert list((table / "mapped").rglob("rows.arrow"))
    clear_mapped(str(tmp_path))
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["part.parquet"]
