"""What segments are expected to cost, in rows read per changed row."""

from __future__ import annotations

import pytest
import sqlglot

from headwater.model.keeping import AllGroupTables, TheseGroupTables
from headwater.model.relation import Column, Relation, RelationName
from headwater.views.compile.compile_view import compile_view
from headwater.views.steps.group_tables import keep_group_tables
from headwater.views.steps.segment_costs import ViewCost, view_cost
from headwater.views.steps.segments import SegmentedView

SALES = RelationName(source="shop", name="sales")
PRODUCTS = RelationName(source="shop", name="products")
STORES = RelationName(source="chain", name="stores")
ROWS = {SALES: 10_000, PRODUCTS: 100, STORES: 4}


def relation(name: RelationName, key: str, *columns: str) -> Relation:
    listed = tuple(Column(name=column, type="int", native="int4") for column in (key, *columns))
    return Relation(name=name, columns=listed, key=(key,))


CATALOG = {
    SALES: relation(SALES, "no", "product", "store", "amount"),
    PRODUCTS: relation(PRODUCTS, "id", "kind", "price"),
    STORES: relation(STORES, "store", "city"),
}


def compiled(sql: str) -> SegmentedView:
    """Compile a view in which everything is a whole number."""

    def types(text: str, relations: object) -> tuple[Column, ...]:
        del relations
        items = sqlglot.parse_one(text, read="spark").selects
        return tuple(Column(name=item.alias_or_name, type="bigint", native="bigint") for item in items)

    return compile_view("v", sql, CATALOG, types)


def cost(sql: str, **kept: int) -> ViewCost:
    view = compiled(sql)
    rows = dict(ROWS)
    for segment in view.segments:
        kind = segment.name.name.partition("_")[0]
        if kind in kept:
            rows[segment.name] = kept[kind]
    return view_cost(view, rows)


def test_one_row_of_a_key_and_many_of_what_refers_to_it() -> None:
    found = cost("SELECT s.no, p.kind FROM shop.sales s JOIN shop.products p ON p.id = s.product")
    assert found.relations == {SALES: 1.0, PRODUCTS: 100.0}
    assert found.whole == 10_100
    assert found.per_commit == 0


def test_what_no_equality_leads_to_is_read_whole() -> None:
    found = cost("SELECT s.no, p.kind FROM shop.sales s JOIN shop.products p ON p.price > s.amount")
    assert found.relations == {SALES: 100.0, PRODUCTS: 10_000.0}


PAID = """
    SELECT st.city, q.paid FROM chain.stores st JOIN (
        SELECT s.store, SUM(p.price) AS paid FROM shop.sales s JOIN shop.products p ON p.id = s.product
        GROUP BY s.store
    ) q ON q.store = st.store
"""


def test_reads_add_up_through_segments() -> None:
    """A sale leads to its product, its group, and the store of the group's row before and after."""
    found = cost(PAID, group=4)
    assert found.relations[SALES] == 1 + 1 + 2 * 1
    assert found.relations[PRODUCTS] == 100 + 4 + 4, "there are no more groups, and no more stores"
    assert found.relations[STORES] == 1
    assert found.batch({SALES: 10, STORES: 3}) == pytest.approx(10 * 4 + 3, rel=0.01)
    assert found.batch({PRODUCTS: 50}) < found.whole < found.batch({PRODUCTS: 1000}), "then recomputing reads less"
    assert found.batch({PRODUCTS: 10_000}) == pytest.approx(10_104 + 4), "no row is read twice"


@pytest.mark.parametrize("tables", [AllGroupTables(), TheseGroupTables(())], ids=["kept", "computed"])
def test_nothing_reads_more_rows_than_there_are(tables: AllGroupTables | TheseGroupTables) -> None:
    """Each of the joins finds some hundred rows for each row; together they would find millions of ten thousand."""
    many = """
        SELECT q.kind, COUNT(*) AS pairs FROM (
            SELECT p.kind, a.store, SUM(d.amount) AS amount FROM shop.sales a JOIN shop.sales b ON b.store = a.amount
            JOIN shop.sales c ON c.store = b.amount JOIN shop.sales d ON d.store = c.amount
            JOIN shop.products p ON p.kind = d.product GROUP BY p.kind, a.store
        ) q JOIN shop.sales e ON e.amount = q.amount GROUP BY q.kind
    """
    found = view_cost(keep_group_tables(compiled(many), tables), ROWS)
    assert found.there <= 10_100 * 4, "three kept tables, none of which is taken to be larger than what it is made of"
    assert max(found.relations.values()) <= found.there
    assert max(found.segments.values()) <= 5 * 10_100, "of each occurrence no row is read twice"
    assert found.batch({SALES: 100}) <= found.there


def test_a_group_without_a_table_reads_what_is_behind_it() -> None:
    """Of 10,000 sales some 100 are in one group, each with its product."""
    view = keep_group_tables(compiled(PAID), TheseGroupTables(()))
    found = view_cost(view, ROWS)
    behind = 100 * (1 + 1)
    assert found.relations[SALES] == 1 + behind + 2 * 1
    assert found.relations[STORES] == behind
    [group] = (name for name in found.segments if name.name.startswith("group_"))
    assert found.segments[group] == behind


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT s.store, MAX(s.amount) AS most FROM shop.sales s GROUP BY s.store", 1 + 2 * 20),
        ("SELECT s.no FROM shop.sales s ORDER BY s.amount LIMIT 3", 3),
        ("SELECT s.no, RANK() OVER (ORDER BY s.amount) AS place FROM shop.sales s", 10_000),
    ],
    ids=["a partition of distinct values", "the first rows", "all rows"],
)
def test_what_is_computed_anew_reads_its_partition(sql: str, read: float) -> None:
    assert cost(sql, group=400).relations[SALES] == read


def test_what_is_recomputed_reads_everything_once_a_commit() -> None:
    found = cost(
        "SELECT s.no, (SELECT MAX(p.price) FROM shop.products p WHERE p.id > s.product) AS most FROM shop.sales s"
    )
    assert found.per_commit == found.whole == 10_100
    assert found.batch({SALES: 1}) == pytest.approx(10_100)
