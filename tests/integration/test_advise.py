"""Advice on a live warehouse, applied: what is advised is written, built, and traced through."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from audited import AuditedWorld, audited_world

from headwater.advisor.advice import Alternative
from headwater.advisor.candidates import AuxiliaryKind
from headwater.advisor.together import NOISE
from headwater.deltas.lookup import Origin
from headwater.model.keeping import LineageKind, TheseGroupTables
from headwater.model.project import Reading
from headwater.model.relation import RelationName
from headwater.project.file import load
from headwater.sources.embedded import EmbeddedServer
from headwater.warehouse.query import Warehouse

SQL = """
    SELECT c.city AS city, COUNT(*) AS sold, SUM(s.amount) AS amount
    FROM shop.sales AS s JOIN crm.customers AS c ON c.id = s.customer GROUP BY c.city
"""
SALES = RelationName(source="shop", name="sales")


@pytest.fixture
def world(three_servers: dict[str, EmbeddedServer], tmp_path: Path) -> Iterator[AuditedWorld]:
    with audited_world(three_servers, tmp_path / "shop") as made:
        yield made


def kinds(alternative: Alternative) -> set[AuxiliaryKind]:
    return {table.kind for table in alternative.tables}


@pytest.mark.usefixtures("spark")
def test_advice_is_measured_written_built_and_used(world: AuditedWorld) -> None:
    world.write_project({"by_city": SQL}, probed=("crm.customers",), settings="# ours\n")
    project = world.open()
    project.run(until_idle=True)
    world.execute("shop", "INSERT INTO sales SELECT g, 1 + g % 40, 1, 5 FROM generate_series(100, 149) g")
    world.execute("shop", "ANALYZE sales")
    project.run(until_idle=True)
    project.trace("by_city", where="city = 3")

    [seen] = project.advise("by_city").views
    assert seen.is_traced
    [group] = (table.of for table in seen.today.tables if table.kind is AuxiliaryKind.GROUP_TABLE)
    assert {(table.kind, table.of) for table in seen.today.tables} == {
        (AuxiliaryKind.REPLICA, "shop.sales"),
        (AuxiliaryKind.GROUP_TABLE, group),
    }
    assert group in {table.of for table in seen.recommended.tables}, "to compute it at every change is dearer"
    measured = {one.relation: one for one in seen.relations}
    assert (measured["shop.sales"].rows, measured["crm.customers"].rows) == (120, 40)
    assert measured["shop.sales"].updates_per_hour > 0
    assert measured["shop.sales"].rows_per_update == 50
    assert measured["crm.customers"].trip_milliseconds > 0
    assert (1 - NOISE) * seen.recommended.total <= min(seen.today.total, seen.nothing.total, seen.everything.total)

    [advice] = project.advise("by_city", traces_per_hour=1_000_000).views
    assert kinds(advice.recommended) & {AuxiliaryKind.LINEAGE_VIEW, AuxiliaryKind.SPLIT_LINEAGE}
    result = project.advise("by_city", traces_per_hour=1_000_000, apply=True)
    text = (world.folder / "headwater.toml").read_text()
    assert "# ours\n" in text
    assert any("[views.by_city] keep" in line for line in result.written)
    said = load(world.folder)
    [wish] = said.view("by_city").keep
    copied = {table.of for table in advice.recommended.tables if table.kind is AuxiliaryKind.REPLICA}
    assert (said.reading(SALES) is Reading.REPLICA) == (str(SALES) in copied)

    applied = world.open()
    before = applied.view("by_city").arrow().sort_by("city")
    assert [step.name for step in applied.plan().changes if "it is computed in other steps" in step.reason]
    applied.run(until_idle=True, yes=True)
    assert applied.view("by_city").arrow().sort_by("city") == before
    traced = applied.trace("by_city", where="city = 3")
    expected = {LineageKind.VIEW: Origin.LINEAGE_VIEW, LineageKind.SPLIT: Origin.SPLIT_LINEAGE}[wish.kind]
    assert {one.origin for one in traced.relations} == {expected}
    [again] = applied.advise("by_city", traces_per_hour=1_000_000).views
    assert {(table.kind, table.of) for table in again.today.tables} == {
        (table.kind, table.of) for table in advice.recommended.tables
    }


@pytest.mark.thorough
@pytest.mark.usefixtures("spark")
def test_advice_to_keep_nothing_leaves_the_view_alone_and_exact(world: AuditedWorld) -> None:
    world.write_project({"by_city": SQL}, probed=("crm.customers",))
    world.open().run(until_idle=True)
    result = world.open().advise("by_city", algorithm="none", apply=True)
    assert '[views.by_city] group_tables = "none"' in result.written
    assert load(world.folder).view("by_city").group_tables == TheseGroupTables(())
    bare = world.open()
    bare.run(until_idle=True, yes=True)
    world.execute("shop", "DELETE FROM sales WHERE no < 20")
    bare.run(until_idle=True)
    [entry] = Warehouse.open(str(bare.project.warehouse)).catalog().views.values()
    assert entry.segments == (), "nothing is kept beside the view"
    assert {one.origin for one in bare.trace("by_city", where="city = 3").relations} == {Origin.SOURCE}
    assert bare.check().kept
    [nothing] = bare.advise("by_city").views
    assert nothing.today == nothing.nothing
