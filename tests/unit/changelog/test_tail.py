"""The tail holds no more than its bound. What it lets go is read from the log's files, and nothing is seen of that."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from random_log import ITEMS, SALES, Row, random_capture, transaction

from headwater.changelog import ChangeLog
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture

BOUNDS = (0, 1_000, 5_000, 20_000)


def many_rows(first: int, count: int) -> pa.Table:
    """Return inserted rows of one transaction."""
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "name": [f"customer {number}" for number in range(first, first + count)],
            "_ordinal": pa.repeat(pa.scalar(0, pa.int32()), count),
            "_count": pa.repeat(pa.scalar(1, pa.int64()), count),
        }
    )


@pytest.mark.parametrize("most_bytes", BOUNDS)
@pytest.mark.parametrize("seed", range(4))
def test_oracle_whatever_is_let_go_is_read_from_files(seed: int, most_bytes: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    log = ChangeLog.create(str(tmp_path / "log"))
    log.take_over(1, most_bytes)
    truth: dict[RelationName, list[Row]] = {SALES: [], ITEMS: []}
    for name in truth:
        log._place(name, pa.schema([("id", pa.int64())]))
    since = [Tick(0)]
    for _ in range(25):
        captures = [random_capture(chance, log.last_tick + 1, truth)]
        captures.append(random_capture(chance, log.last_tick + 1 + len(captures[0].transactions), truth))
        log.append(captures)
        assert log.tail.byte_count <= most_bytes
        since.append(log.tail.since)
        after, upto = sorted(chance.randrange(log.last_tick + 1) for _ in range(2))
        for name, rows in truth.items():
            for begin, end in ((after, upto), (0, log.last_tick), (log.tail.since, log.last_tick)):
                expected = [row for row in rows if begin < row[1] <= end]
                parts = log.parts(name, ("id",), Tick(begin), Tick(end))
                assert [tuple(row.values()) for part in parts for row in part.to_pylist()] == expected
                assert log.row_count(name, Tick(begin), Tick(end)) == len(expected)
        told = log.transactions(None, Tick(after), Tick(upto))
        assert [tick for tick, _ in told] == list(range(after + 1, upto + 1))
    assert since == sorted(since)
    assert since[-1] > 0, "something was let go"
    assert most_bytes < 20_000 or since[-1] < log.last_tick, "not all of it"


def test_without_a_bound_everything_is_held(tmp_path: Path) -> None:
    """A reader looks ahead of the log: what it reads of a source is in no file."""
    log = ChangeLog.create(str(tmp_path / "log"))
    log.append([Capture(transactions=(transaction(1),), rows={SALES: many_rows(0, 1_000)})])
    reader = ChangeLog.open(log._table.path)
    reader.look_ahead([Capture(transactions=(transaction(2),), rows={SALES: many_rows(1_000, 50_000)})])
    assert reader.row_count(SALES, Tick(0), Tick(2)) == 51_000
    assert reader.tail.byte_count > 2 * 10**6


def test_a_large_transaction_is_appended_in_a_bounded_part_of_memory(tmp_path: Path) -> None:
    """What Arrow holds at its peak is the same for three times as many rows, and far less than these.

    The rows are mapped from files, as a source hands them over that has spilled them.
    """
    peaks, peaks_of_reading = [], []
    for number, part_count in enumerate((10, 30)):
        path = tmp_path / f"{number}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, many_rows(0, 1).schema) as writer:
            for first in range(0, part_count * 40_000, 40_000):
                writer.write_table(many_rows(first, 40_000))
        rows = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        log = ChangeLog.create(str(tmp_path / f"log{number}"))
        log.take_over(1, 2_000_000)
        capture = Capture(transactions=(transaction(1),), rows={SALES: rows})
        peaks.append(peak_of(lambda log=log, capture=capture: log.append([capture])))
        assert log.tail.since == 1, "it is not held"
        assert log.row_count(SALES, Tick(0), Tick(1)) == part_count * 40_000
        sums = (pc.sum(part["id"]).as_py() for part in log.parts(SALES, ("id", "name"), Tick(0), Tick(1)))
        found: list[int] = []
        peaks_of_reading.append(peak_of(lambda found=found, sums=sums: found.extend(sums)))
        assert sum(found) == sum(range(part_count * 40_000))
    for before, after in (peaks, peaks_of_reading):
        assert after < 1.3 * before
        assert after < rows.nbytes / 2


def peak_of(work: Callable[[], object]) -> int:
    """Return how much more Arrow held at most during some work than before."""
    pool = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(pool)
    pa.set_memory_pool(watched)
    try:
        before = watched.bytes_allocated()
        work()
        return int(watched.max_memory() - before)
    finally:
        pa.set_memory_pool(pool)
