"""Rows in layers are found as if all entries lay in one list, whatever is mapped and however often runs were merged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from test_indexed_rows import SCHEMA, random_rows
from volume import volume

from headwater.storage.layered_rows import LayeredRows
from headwater.storage.mapped_rows import MappedFolder, clear_mapped, mapped_folder

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
@pytest.mark.parametrize("held_bytes_limit", [None, 0, 1_000])
def test_oracle_one_list_of_entries(seed: int, held_bytes_limit: int | None, tmp_path: Path) -> None:
    random = Random(seed)
    base = [counted(random, random.choice((0, 1, 50))) for _ in range(2)]
    folder = None if held_bytes_limit is None else MappedFolder(tmp_path)
    layered = LayeredRows(
        schema=COUNTED, folder=folder, held_bytes_limit=held_bytes_limit or 0, tail_rows=random.choice((1, 5, 40))
    )
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
    assert summed([layered.entries()], (), {()}) == summed(entries, (), {()})


def test_beyond_the_limit_rows_are_mapped_and_those_merged_away_are_deleted(tmp_path: Path) -> None:
    random = Random(1)
    layered = LayeredRows(schema=COUNTED, folder=MappedFolder(tmp_path), held_bytes_limit=5_000, tail_rows=10)
    layered.fill(counted(random, 30) for _ in range(30))  # each has room, all of them have not
    assert layered.held_bytes <= 5_000
    assert not layered.is_held
    for _ in range(200):
        layered.add(counted(random, 9))
    assert layered.held_bytes < 5_000 + 2_000
    mapped = [layer for layer in layered._layers() if mapped_folder(layer) is not None]
    assert len(list(tmp_path.iterdir())) == len(mapped) < 30 + 12
    before = layered.entries().to_pylist()
    layered.release()
    assert not tmp_path.exists()
    assert layered.entries().to_pylist() == before, "what is still mapped stays readable"


def test_a_new_maintainer_deletes_what_an_earlier_one_mapped_and_nothing_else(tmp_path: Path) -> None:
    table = tmp_path / "replicas" / "shop.items" / "1"
    (table / "checkpoint").mkdir(parents=True)
    (table / "checkpoint" / "part.parquet").write_text("rows")
    MappedFolder.below(str(table)).write(counted(Random(1), 5))
    assert list((table / "mapped").rglob("rows.arrow"))
    clear_mapped(str(tmp_path))
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["part.parquet"]
