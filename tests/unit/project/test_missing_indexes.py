"""What `plan` warns of: columns that are probed and have no index."""

from __future__ import annotations

from dataclasses import replace

from in_duckdb import World, relation

from headwater.model.keeping import TheseGroupTables
from headwater.model.project import Reading
from headwater.model.relation import Relation
from headwater.project.warnings import missing_indexes
from headwater.views.steps.group_tables import keep_group_tables
from headwater.views.steps.segments import SegmentedView

SALES = relation("shop", "sales", no="int", store="int", product="int")
PRODUCTS = relation("shop", "products", key=("id",), id="int!", price="int")


def compiled(sales: Relation) -> SegmentedView:
    world = World([sales, replace(PRODUCTS, indexes=(("id",),))])
    return world.compile(
        "SELECT s.store, SUM(p.price) AS paid FROM shop.sales s JOIN shop.products p ON p.id = s.product "
        "GROUP BY s.store"
    )


def warned(view: SegmentedView, reading: Reading = Reading.PROBE) -> list[str]:
    """Return by what the sales are said to be scanned."""
    found = missing_indexes(view, dict.fromkeys(view.relations, reading), lambda *_: None)
    return [text.partition(" probes shop.sales by ")[2].partition(",")[0] for text in found]


def test_a_join_probes_along_its_equalities() -> None:
    assert warned(compiled(SALES)) == ["product"]
    assert warned(compiled(SALES), Reading.REPLICA) == []
    assert warned(compiled(replace(SALES, indexes=(("product", "no"),)))) == []


def test_a_group_without_a_table_probes_by_its_keys() -> None:
    indexed = compiled(replace(SALES, indexes=(("product",),)))
    assert warned(indexed) == []
    assert warned(keep_group_tables(indexed, TheseGroupTables(()))) == ["store"]
    both = compiled(replace(SALES, indexes=(("product",), ("store",))))
    assert warned(keep_group_tables(both, TheseGroupTables(()))) == []
