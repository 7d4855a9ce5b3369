"""Changes that fail a selection of the view: no source is asked, and Spark has nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater.deltas.extent import Content
from headwater.deltas.on_arrow import ArrowBag, ArrowRequest, ArrowResult
from headwater.engine.batch.join_batch import ViewChange, base_changes, change_join, change_view
from headwater.engine.state.accepted_log import AcceptedLog
from headwater.engine.state.runner import Runner
from headwater.maintenance.rebase import Log
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import Column, Relation, RelationName
from headwater_lab.one_join import declare

SALES, STORES = (RelationName(source="shop", name=name) for name in ("sales", "stores"))
CATALOG = {
    name: Relation(name=name, columns=tuple(Column(name=c, type="int", native="int4") for c in ("id", "n")))
    for name in (SALES, STORES)
}
SQL = "SELECT s.id FROM shop.sales s JOIN shop.stores t ON t.id = s.n WHERE s.n > 5"
TWICE = "SELECT s.id FROM shop.sales t JOIN shop.sales s ON t.id = s.n WHERE s.n > 5"
NO_RUNNER = Runner(spark=cast("SparkSession", None), held_rows=1_000, scratch="")
NO_LOG = cast("Log[ArrowBag]", None)


class AskedError(Exception):
    """A source was asked."""


class Refusing:
    """A source that must not be asked."""

    def lookup(self, requests: Sequence[ArrowRequest]) -> Sequence[ArrowResult]:
        del requests
        raise AskedError


def change(sql: str, **rows: list[int]) -> ViewChange:
    view = declare("v", sql, CATALOG)
    bags = {name: bag(view.relations[name], rows.get(name.name, [])) for name in view.relations}
    schema = pa.schema([("id", pa.int32()), ("_tick", pa.int64()), ("_count", pa.int64())])
    return change_join(NO_RUNNER, view, schema, (Tick(0), Tick(9)), bags, NO_LOG, Refusing())


def bag(columns: tuple[str, ...], values: list[int]) -> ArrowBag:
    held: dict[str, Any] = {name: pa.array(values, pa.int32()) for name in columns}
    ones = pa.array([1] * len(values), pa.int64())
    return ArrowBag(pa.table({**held, "_tick": ones, "_count": ones}))


def test_what_fails_a_selection_is_asked_nothing_for() -> None:
    found = change(SQL, sales=[1, 5])
    assert (len(found.rows), found.changed_rows, sum(found.read_rows.values())) == (0, 2, 0)


class LoggedSales:
    """A log in which sales came."""

    def __init__(self, values: list[int]) -> None:
        self._values = values

    def changes(self, name: RelationName, columns: tuple[str, ...], lo: Tick, hi: Tick) -> ArrowBag:
        del lo, hi
        return bag(columns, self._values if name == SALES else [])


@pytest.mark.parametrize(("sql", "count"), [(SQL, 1), (TWICE, 3)])
def test_what_no_occurrence_selects_is_left_out(sql: str, count: int) -> None:
    view = declare("v", sql, CATALOG)
    needed = {name: Content(columns=columns, rows=view.extents[name]) for name, columns in view.relations.items()}
    log = cast("AcceptedLog", LoggedSales([1, 5, 6]))
    changes = base_changes(needed, Guarantee.COMPLETE, (Tick(0), Tick(9)), log)
    assert len(changes[SALES]) == count


def test_a_batch_without_a_change_that_is_needed_is_none() -> None:
    view = declare("v", SQL, CATALOG)
    schema = pa.schema([("id", pa.int32()), ("_tick", pa.int64()), ("_count", pa.int64())])
    log = cast("AcceptedLog", LoggedSales([1, 5]))
    assert change_view(NO_RUNNER, view, schema, Guarantee.COMPLETE, (Tick(0), Tick(9)), log, Refusing()) is None


@pytest.mark.parametrize(("sql", "rows"), [(SQL, {"sales": [6]}), (SQL, {"stores": [1]}), (TWICE, {"sales": [1]})])
def test_what_may_join_is_asked_for(sql: str, rows: dict[str, list[int]]) -> None:
    with pytest.raises(AskedError):
        change(sql, **rows)
