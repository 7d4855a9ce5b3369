"""Which segments have group tables: as wished, and where rows could not be found without them."""

from __future__ import annotations

import pytest
from in_duckdb import World, relation

from headwater.errors import InvalidView
from headwater.model.keeping import AllGroupTables, TheseGroupTables
from headwater.views.steps.group_tables import (
    computed_segments,
    group_tables,
    keep_group_tables,
    looked_up_below,
    must_keep,
)
from headwater.views.steps.segment_names import shape
from headwater.views.steps.segments import SegmentedView

WORLD = World(
    [
        relation("shop", "sales", no="int", store="int", product="int", amount="int", weight="double"),
        relation("shop", "products", key=("id",), id="int!", kind="string", price="int"),
        relation("chain", "stores", key=("store",), store="int!", city="string"),
    ]
)
NONE = TheseGroupTables(())
TWO_LEVELS = """
    SELECT st.city, q.paid, r.n
    FROM (SELECT s.store, SUM(p.price) AS paid FROM shop.sales s JOIN shop.products p ON p.id = s.product
          GROUP BY s.store) q
    JOIN (SELECT s.store, COUNT(*) AS n FROM shop.sales s GROUP BY s.store) r ON r.store = q.store
    JOIN chain.stores st ON st.store = q.store
"""


def kept(view: SegmentedView) -> set[str]:
    return {segment.name.name for segment in view.segments if segment.is_kept}


def test_all_is_what_the_compiler_keeps() -> None:
    view = WORLD.compile(TWO_LEVELS)
    assert keep_group_tables(view, AllGroupTables()) == view
    assert not computed_segments(view)
    assert kept(view) == {"v", *(name.name for name in group_tables(view))}


def test_none_leaves_the_view_alone_and_another_shape() -> None:
    view = WORLD.compile(TWO_LEVELS)
    without = keep_group_tables(view, NONE)
    assert kept(without) == {"v"}
    assert set(computed_segments(without)) == set(group_tables(view))
    assert len(group_tables(view)) == 2
    assert shape(without) != shape(view), "so the view is built anew"


def test_some_are_kept_and_some_are_not() -> None:
    view = WORLD.compile(TWO_LEVELS)
    one, other = (name.name for name in group_tables(view))
    assert kept(keep_group_tables(view, TheseGroupTables((one,)))) == {"v", one}
    assert kept(keep_group_tables(view, TheseGroupTables((other,)))) == {"v", other}
    assert kept(keep_group_tables(view, TheseGroupTables((one, other)))) == kept(view)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT COUNT(*) AS n FROM shop.sales s", "all its rows are needed"),
        (
            "SELECT s.amount + 1 AS a, COUNT(*) AS n FROM shop.sales s GROUP BY s.amount + 1",
            "looked up by sales.amount",
        ),
        ("SELECT s.weight, COUNT(*) AS n FROM shop.sales s GROUP BY s.weight", "looked up by sales.weight"),
        (
            "SELECT p.kind, COUNT(*) AS n FROM shop.sales s, shop.products p GROUP BY p.kind",
            "looked up by products.kind",
        ),
        ("SELECT st.city FROM chain.stores st WHERE EXISTS (SELECT 1 FROM shop.sales s)", "all its rows are needed"),
        ("SELECT s.no FROM shop.sales s ORDER BY s.amount LIMIT 3", "all its rows are needed"),
    ],
    ids=["one group", "expression", "double", "nothing leads on", "no equality", "first rows"],
)
def test_what_nothing_leads_to_stays_kept(sql: str, why: str) -> None:
    view = WORLD.compile(sql)
    without = keep_group_tables(view, NONE)
    assert kept(without) == kept(view)
    assert computed_segments(without) == ()
    assert any(why in said for said in must_keep(without).values()), must_keep(without)


def test_a_group_above_is_looked_up_in_the_table_below() -> None:
    """By the number of sales nothing can be found in the sales; it can in a table of numbers per store."""
    view = WORLD.compile(
        "SELECT q.n, COUNT(*) AS m FROM (SELECT s.store, COUNT(*) AS n FROM shop.sales s GROUP BY s.store) q "
        "GROUP BY q.n"
    )
    below, above = (name.name for name in group_tables(view))
    assert kept(keep_group_tables(view, NONE)) == {"v", above}
    assert kept(keep_group_tables(view, TheseGroupTables((below,)))) == {"v", below}


def test_what_is_computed_is_looked_up_in_relations() -> None:
    """By the store in the sales, for either group; products are found along the equality."""
    view = WORLD.compile(TWO_LEVELS)
    assert list(looked_up_below(view)) == []
    for names in ((), (group_tables(view)[0].name,)):
        below = list(looked_up_below(keep_group_tables(view, TheseGroupTables(names))))
        assert {(str(relation.name), *columns) for relation, columns in below} == {("shop.sales", "store")}


def test_a_name_that_is_no_group_table_is_refused() -> None:
    view = WORLD.compile(TWO_LEVELS)
    some = next(segment.name.name for segment in view.segments if not segment.is_kept)
    for name in ("nothing", some, "v"):
        with pytest.raises(InvalidView) as refused:
            keep_group_tables(view, TheseGroupTables((name,)))
        assert refused.value.code == "HW-249"
        assert all(one.name in refused.value.detail for one in group_tables(view))
