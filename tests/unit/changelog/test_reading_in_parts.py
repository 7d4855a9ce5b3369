"""Rows are read in parts, in tick order, from files that were merged and from a tail that was trimmed: none is lost."""

from __future__ import annotations

import random
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pytest
from random_log import ITEMS, SALES, Row, random_capture, transaction

from headwater.changelog import ChangeLog, read
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture
from headwater.storage import data_file

PART_ROWS = 20


@pytest.mark.parametrize("seed", range(16))
def test_oracle_parts_and_counts_are_those_of_a_list(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    for module in (read, data_file):
        monkeypatch.setattr(module, "ROWS_PER_GROUP", PART_ROWS)
    log = ChangeLog.create(str(tmp_path / "log"))
    truth: dict[RelationName, list[Row]] = {SALES: [], ITEMS: []}
    log.append([Capture(transactions=(), rows={})])
    for name in truth:
        log._place(name, pa.schema([("id", pa.int64())]))
    for _ in range(chance.randrange(5, 30)):
        log.append([random_capture(chance, log.last_tick + 1, truth)])
        if chance.random() < 0.4:
            sizes = sorted(entry["size_bytes"] for entry in log._table.entries())
            ChangeLog.open(log._table.path)._table.compact(chance.choice(sizes) + 1)
        if chance.random() < 0.1:
            log.tail.trim(Tick(chance.randrange(log.last_tick + 1)))
    for reader in (log, ChangeLog.open(log._table.path)):
        for _ in range(15):
            after, upto = sorted(chance.randrange(log.last_tick + 1) for _ in range(2))
            for name, rows in truth.items():
                expected = [row for row in rows if after < row[1] <= upto]
                parts = list(reader.parts(name, ("id",), Tick(after), Tick(upto)))
                found = [tuple(row.values()) for part in parts for row in part.to_pylist()]
                assert sorted(found, key=itemgetter(1)) == found, "in tick order"
                assert sorted(found) == sorted(expected)
                assert all(part.num_rows for part in parts)
                assert reader.row_count(name, Tick(after), Tick(upto)) == len(expected)
                marks = [row for part in reader.parts(name, (), Tick(after), Tick(upto)) for row in part.to_pylist()]
                assert sorted(map(str, marks)) == sorted(
                    str({"_tick": tick, "_count": count}) for _, tick, count in expected
                )


def test_parts_are_small_however_many_rows_a_transaction_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "ROWS_PER_GROUP", PART_ROWS)
    log = ChangeLog.create(str(tmp_path / "log"))
    ids, ordinals = pa.array(range(100), pa.int64()), pa.repeat(pa.scalar(0, pa.int32()), 100)
    rows = pa.table({"id": ids, "_ordinal": ordinals, "_count": pa.repeat(1, 100)})
    log.append([Capture(transactions=(transaction(1),), rows={SALES: rows})])
    parts = list(ChangeLog.open(log._table.path).parts(SALES, ("id",), Tick(0), Tick(1)))
    assert max(part.num_rows for part in parts) <= PART_ROWS
    assert [row for part in parts for row in part["id"].to_pylist()] == list(range(100))
