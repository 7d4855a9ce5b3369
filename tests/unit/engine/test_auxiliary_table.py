"""A group table in use: opened at any tick part by part, taken along, and read again beside the batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest
from journaled import fold, journal_in, rows_at, tell
from pyspark.sql import SparkSession

from headwater.deltas.lookup import RowRequest, look_up, restricted
from headwater.deltas.on_arrow import ArrowKeys
from headwater.engine.state.auxiliary_table import AuxiliaryTable
from headwater.model.memory_budget import MemoryBudget, Share
from headwater.model.position import Tick
from headwater.model.relation import Column, Relation, SegmentName
from headwater.model.settings import DEFAULTS
from headwater.storage import few_rows
from headwater.warehouse.kept_table import KeptTable

SCHEMA = pa.schema([("g", pa.int64()), ("name", pa.string()), ("total", pa.float64())])
RELATION = Relation(
    name=SegmentName(name="s1"),
    columns=(
        Column(name="g", type="bigint", native="bigint"),
        Column(name="name", type="string", native="string"),
        Column(name="total", type="double", native="double"),
    ),
)
STAMPED = pa.schema([*SCHEMA, ("_tick", pa.int64()), ("_count", pa.int64())])
LAST = 30

Row = tuple[Any, ...]


class Kept:
    """A kept table with a history: changes of every tick, some of them folded, a checkpoint that is rolled at times."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = Random(seed)
        self.table = KeptTable.create(str(folder / "t"), journal_in(str(folder)), SCHEMA, Tick(1))
        self.state: Counter[Row] = Counter((n, f"group {n}", -0.0) for n in range(60))
        self.states = {1: Counter(self.state)}
        self.signed: dict[int, pa.Table] = {}
        self.roll(1)

    def roll(self, tick: int) -> None:
        rows = [*self.states[tick].elements()]
        plain = pa.table(
            [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(SCHEMA)], SCHEMA
        )
        assert self.table.checkpoint.write(plain, Tick(tick))

    def go_on(self, tick: int) -> None:
        """Commit a tick: some groups get another total."""
        change: Counter[Row] = Counter()
        for row in self.chance.sample(sorted(self.state), 5):
            change[row] -= 1
            change[row[0], row[1], float(tick)] += 1
        entries = [(*row, tick, count) for row, count in change.items() if count]
        columns = [pa.array([entry[place] for entry in entries], field.type) for place, field in enumerate(STAMPED)]
        self.signed[tick] = pa.table(columns, STAMPED)
        assert tell(self.table, self.signed[tick], tick)
        self.state.update(change)
        self.state = +self.state
        self.states[tick] = Counter(self.state)
        if self.chance.random() < 0.3:
            fold(self.table)


def auxiliary(kept: Kept, share_bytes: int) -> AuxiliaryTable:
    return AuxiliaryTable(
        name="s1/1",
        relation=RELATION,
        table=KeptTable.open(kept.table.folder, kept.table.journal),
        spark=cast("SparkSession", None),
        settings=DEFAULTS.batch,
        budget=replace(MemoryBudget.of(2**20), rows=Share(share_bytes)),
    )


def assert_shows(table: AuxiliaryTable, kept: Kept, tick: int) -> None:
    """Compare what is looked up at a tick with the state there: of some groups, of all, and the first ones."""
    groups = kept.chance.sample(range(60), 7)
    right = Counter({row: count for row, count in kept.states[tick].items() if row[0] in groups})
    within = restricted(("g",), ArrowKeys(pa.table({"g": groups})))
    for wanted, expected in ((within, right), (None, kept.states[tick])):
        request = RowRequest(relation=RELATION.name, wanted=tuple(SCHEMA.names), within=wanted)
        found = look_up(table.at(Tick(tick)), request).rows.counted.to_pylist()
        assert Counter({tuple(row[name] for name in SCHEMA.names): row["_count"] for row in found}) == expected


@pytest.mark.parametrize("share_bytes", [0, 2**18])
@pytest.mark.parametrize("seed", range(4))
def test_oracle_at_any_tick_before_and_after_the_checkpoint(
    seed: int, share_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "ROWS_PER_PART", 7)
    kept = Kept(tmp_path, seed)
    going = auxiliary(kept, share_bytes)
    going.at(Tick(1))
    for tick in range(2, LAST + 1):
        kept.go_on(tick)
        parts = [kept.signed[tick].slice(0, 3), kept.signed[tick].slice(3)]
        going.advance(Tick(tick - 1), parts, Tick(tick))
        assert_shows(going, kept, tick)
        if tick in (10, 20):
            kept.roll(tick)
    assert rows_at(kept.table, LAST) == kept.states[LAST]
    opened = auxiliary(kept, share_bytes)
    for tick in (1, 9, 20, 21, LAST):
        assert_shows(opened, kept, tick)
    for table in (going, opened):
        table.forget(())
        share = table.budget.rows
        assert (share.held_bytes, share.mapped_bytes) == (0, 0)


@pytest.mark.parametrize("share_bytes", [0, 2**18])
def test_rows_are_read_again_once_many_changes_lie_on_them(tmp_path: Path, share_bytes: int) -> None:
    kept = Kept(tmp_path, 5)
    table = auxiliary(kept, share_bytes)
    assert_shows(table, kept, 1)

    def go_to(tick: int) -> None:
        for one in range(max(kept.states) + 1, tick + 1):
            kept.go_on(one)
            table.advance(Tick(one - 1), [kept.signed[one]], Tick(one))

    def changes(tick: int) -> int:
        return table.at(Tick(tick)).rows.change_count

    go_to(12)
    table.refresh(10, 0.2)
    table.take_over()
    assert changes(12) > 50, "the checkpoint is no newer than what was read"
    kept.roll(11)
    for few, share in ((1_000, 0.0), (0, 100.0)):
        table.refresh(few, share)
        table.take_over()
        assert changes(12) > 50, "there are not enough changes"
    table.refresh(10, 0.2)
    go_to(14)  # the batches go on meanwhile
    table.take_over()
    assert changes(14) == sum(kept.signed[tick].num_rows for tick in (12, 13, 14))
    assert_shows(table, kept, 14)
    go_to(15)
    assert_shows(table, kept, 15)
    table.refresh(0, 0.0)
    assert table._fresh is None, "once is enough for a checkpoint"
    kept.roll(15)
    table.refresh(0, 0.0)
    assert table._fresh is not None
    table.forget(())
    assert (table.budget.rows.held_bytes, table.budget.rows.mapped_bytes) == (0, 0)
