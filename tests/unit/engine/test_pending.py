"""A transaction that brings what is missing, and that a view has not come to, is found in the change log."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.deltas.lookup import Restriction
from headwater.deltas.on_arrow import ArrowKeys
from headwater.lineage.answer_why_not import pending
from headwater.lineage.obstacles import Missing, Obstacle, ObstacleKind
from headwater.model.position import Position, Tick
from headwater.model.relation import RelationName
from headwater.model.transaction import Capture, Transaction
from headwater.warehouse.query import Warehouse

SALES = RelationName(source="shop", name="sales")


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Return a warehouse whose log has: a row of id 7 comes at tick 1 and goes at tick 2, and comes again at tick 4."""
    made = Warehouse.create(str(tmp_path))
    rows = pa.table(
        {
            "id": pa.array([7, 7, 8, 7], pa.int64()),
            "_ordinal": pa.array([0, 1, 2, 3], pa.int32()),
            "_count": pa.array([1, -1, 1, 1], pa.int64()),
        }
    )
    transactions = tuple(
        Transaction(
            position=Position(source="shop", history="1:1", offset=place),
            identity=place,
            committed_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for place in (10, 20, 30, 40)
    )
    made.log.append([Capture(transactions=transactions, rows={SALES: rows})])
    return made


def missing(*ids: int) -> Obstacle:
    within = Restriction(columns=("id",), keys=ArrowKeys(pa.table({"id": pa.array(ids, pa.int64())})))
    return Obstacle(kind=ObstacleKind.NO_ROW, text="no such row", missing=Missing(relation=SALES, within=within))


def test_the_first_transaction_that_brings_the_row_is_pending(warehouse: Warehouse) -> None:
    [found] = pending(warehouse, [missing(7)], Tick(1))
    assert (found.tick, found.position.offset) == (4, 40), "that the row goes at tick 2 does not bring it"
    [found] = pending(warehouse, [missing(7, 8)], Tick(2))
    assert found.tick == 3


def test_nothing_is_pending_where_the_log_brings_nothing(warehouse: Warehouse) -> None:
    assert not list(pending(warehouse, [missing(9)], Tick(0)))
    assert not list(pending(warehouse, [missing(8)], Tick(3)))
    assert not list(pending(warehouse, [Obstacle(kind=ObstacleKind.CONDITION, text="not true")], Tick(0)))
