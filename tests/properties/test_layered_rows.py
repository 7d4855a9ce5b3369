"""Rows in layers are found as if all entries lay in one list, whatever is mapped and however often runs were merged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from test_indexed_rows import SCHEMA, random_rows
from volume import volume

from headwater.deltas.indexed_rows import IndexedRows
from headwater.storage.data_file import write_rows
from headwater.storage.layered_rows import LayeredRows
from headwater.storage.mapped_rows import MappedFolder

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
@pytest.mark.parametrize("is_mapped", [False, True])
def test_oracle_one_list_of_entries(seed: int, is_mapped: bool, tmp_path: Path) -> None:
    random = Random(seed)
    base = counted(random, random.choice((0, 1, 50)))
    folder = MappedFolder(tmp_path / "copies") if is_mapped else None
    first = IndexedRows(base) if folder is None else _copied(folder, base, tmp_path)
    layered = LayeredRows(base=(first,), folder=folder, tail_rows=random.choice((1, 5, 40)), mapped_bytes=0)
    entries = [base]
    for _ in range(random.choice((3, 25))):
        change = counted(random, random.choice((0, 1, 3, 20)))
        layered.add(change)
        entries.append(change)
        columns = tuple(random.sample(SCHEMA.names, random.choice((1, 2))))
        keys = random_rows(random, random.choice((0, 1, 4, 40))).select(list(columns))
        wanted = {tuple(key.values()) for key in keys.to_pylist()}
        found = layered.matching(columns, keys)
        for part in found:
            assert {tuple(row[name] for name in columns) for row in part.to_pylist()} <= wanted
        assert summed(list(found), columns, wanted) == summed(entries, columns, wanted)
    assert summed(list(layered.entries()), (), {()}) == summed(entries, (), {()})


def test_mapped_layers_hold_nothing_but_their_tail(tmp_path: Path) -> None:
    folder = MappedFolder(tmp_path / "copies")
    random = Random(1)
    layered = LayeredRows(base=(folder.write(counted(random, 1_000)),), folder=folder, tail_rows=10, mapped_bytes=0)
    for _ in range(50):
        layered.add(counted(random, 9))
    assert layered.held_bytes < 20 * COUNTED.empty_table().nbytes + 2_000
    assert layered.change_count > 0


def test_copies_that_nobody_uses_are_deleted(tmp_path: Path) -> None:
    folder = MappedFolder(tmp_path / "copies")
    used, unused = (folder.write(counted(Random(seed), 5)) for seed in (1, 2))
    before = unused.table.to_pylist()
    folder.keep_only([used, IndexedRows(used.table)])
    assert len(list(folder.path.iterdir())) == 1
    assert unused.table.to_pylist() == before, "what is still mapped stays readable"


def test_a_copy_is_made_once(tmp_path: Path) -> None:
    rows = counted(Random(3), 20)
    folder = MappedFolder(tmp_path / "copies")
    first = _copied(folder, rows, tmp_path)
    again = folder.copy_of(str(next((tmp_path / "table").glob("*.parquet"))), COUNTED)
    assert first.table.equals(again.table)
    assert len(list(folder.path.iterdir())) == 1


def _copied(folder: MappedFolder, rows: pa.Table, tmp_path: Path) -> IndexedRows:
    root = tmp_path / "table"
    root.mkdir()
    written = write_rows(str(root), rows)
    return folder.copy_of(f"{root}/{written.path}", COUNTED)
