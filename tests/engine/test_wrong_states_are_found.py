"""`check` finds every kind of wrong state at its tick, in one pass over the log as well as by Spark."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scripted_world import ScriptedWorld

from headwater.deltas.on_arrow import ArrowBag
from headwater.deltas.stored_bag import Bag, held
from headwater.judge import check
from headwater.judge.result import DUCKDB, SPARK, ViewCheck
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.model.relation import COUNT, TICK
from headwater.observe.events import ignore_event
from headwater.project.file import load
from headwater.project.resolve import resolve_project
from headwater.warehouse.journal import TableChange
from headwater.warehouse.kept_table import KeptTable

TYPED = """
SELECT s.id, CASE WHEN s.store = 0 THEN NULL ELSE s.store END AS store, CAST(p.price AS DECIMAL(12, 2)) AS price,
  CAST(p.price AS DOUBLE) / 8 AS share, CAST(s.id AS STRING) AS written, s.id > 17 AS is_new
FROM shop.sales s JOIN stock.products p ON p.id = s.product
"""
BAD = 10
LAST = 13
Spoil = Callable[[pa.Table], pa.Table]


def at(tick: int, change: Spoil) -> Spoil:
    """Return what changes the rows of a tick and leaves the others."""

    def changed(rows: pa.Table) -> pa.Table:
        of_tick = pc.equal(rows[TICK], tick)
        return pa.concat_tables([rows.filter(pc.invert(of_tick)), change(rows.filter(of_tick))]).sort_by(TICK)

    return changed


def with_column(name: str, value: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> Spoil:
    return lambda rows: rows.set_column(
        rows.column_names.index(name), rows.schema.field(name), value(rows[name]).cast(rows.schema.field(name).type)
    )


def nothing(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(len(column), column.type)])


def later(ticks: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.add(ticks, 1)


SPOILT: dict[str, tuple[Spoil, int | None]] = {
    "right": (lambda rows: rows, None),
    "lost": (at(BAD, lambda rows: rows.slice(0, 0)), BAD),
    "doubled": (at(BAD, with_column(COUNT, lambda counts: pc.multiply(counts, 2))), BAD),
    "null": (at(BAD, with_column("price", nothing)), BAD),
    "of_null": (at(BAD, with_column("store", lambda stores: pc.fill_null(stores, 0))), BAD),
    "a_cent": (
        at(BAD, with_column("price", lambda prices: pc.add(prices, pa.scalar(Decimal("0.01"), prices.type)))),
        BAD,
    ),
    "text": (at(BAD, with_column("written", lambda texts: pc.binary_join_element_wise(texts, "", " "))), BAD),
    "flag": (at(BAD, with_column("is_new", pc.invert)), BAD),
    "late": (at(BAD, with_column(TICK, later)), BAD),
    "at_the_end": (at(LAST, lambda rows: rows.slice(0, 0)), LAST),
}


def checked(world: ScriptedWorld) -> dict[str, ViewCheck]:
    resolved = resolve_project(load(world.folder), world.spark)
    found = check.check_views(world.spark, resolved, None, None, ignore_event)
    return {one.view: one for one in found.views}


@pytest.fixture
def spoilt(fresh: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> ScriptedWorld:
    settings = "".join(f"[views.{name}]\ncompare_at_birth = false\n" for name in SPOILT)
    fresh.write_project(dict.fromkeys(SPOILT, TYPED), settings)
    fresh.run()
    assert fresh.warehouse.log.last_tick == 0
    change_of = KeptTable.change

    def spoil(table: KeptTable, rows: Bag, upto: Tick, after: Tick | None = None) -> TableChange | None:
        for name, (change, _) in SPOILT.items():
            if f"/{name}/" in table.folder:
                return change_of(table, ArrowBag(change(held(rows).table)), upto, after)
        return change_of(table, rows, upto, after)

    fresh.sell(*range(21, 21 + BAD - 1))
    fresh.sell(42)  # of tick BAD: its store is NULL
    fresh.sell(*range(43, 43 + LAST - BAD))
    with monkeypatch.context() as wrongly:
        wrongly.setattr(KeptTable, "change", spoil)
        fresh.run()
    assert fresh.warehouse.log.last_tick == LAST
    return fresh


def test_every_wrong_state_is_found_in_one_pass(spoilt: ScriptedWorld) -> None:
    found = checked(spoilt)
    assert {name: one.verdict.first_bad_tick for name, one in found.items()} == {
        name: bad for name, (_, bad) in SPOILT.items()
    }
    assert {name for name, one in found.items() if one.kept} == {"right"}
    assert found["right"].judged_by == {DUCKDB: LAST + 1}
    assert found["late"].verdict.guarantee > Guarantee.NONE, "the states are right, a tick later"
    assert all(one.judged_by[DUCKDB] >= LAST for one in found.values()), "Spark is asked once, about a wrong state"


@pytest.mark.thorough
def test_spark_finds_what_one_pass_finds(spoilt: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    in_one_pass = checked(spoilt)
    monkeypatch.setattr(check, "find_spec", lambda _: None)
    by_spark = checked(spoilt)
    assert {name: set(one.judged_by) for name, one in by_spark.items()} == {name: {SPARK} for name in SPOILT}
    assert {name: one.verdict for name, one in by_spark.items()} == {
        name: one.verdict for name, one in in_one_pass.items()
    }
