"""Rows of segments, from what sources know of columns."""

from __future__ import annotations

import pytest
from in_duckdb import World, relation

from headwater.advisor.estimate_rows import RowEstimates
from headwater.model.relation import RelationName
from headwater.sources.measure import ColumnMeasure, RelationMeasure
from headwater.views.steps.segments import SegmentedView

WORLD = World(
    [
        relation("shop", "sales", key=("no",), no="int!", product="int", amount="int"),
        relation("shop", "products", key=("id",), id="int!", kind="string"),
    ]
)
SALES, PRODUCTS = RelationName(source="shop", name="sales"), RelationName(source="shop", name="products")
MEASURED = {
    SALES: RelationMeasure(
        rows=10_000,
        columns={
            "no": ColumnMeasure(width=4, distinct=10_000),
            "product": ColumnMeasure(width=4, distinct=80),
            "amount": ColumnMeasure(width=4, distinct=9),
        },
    ),
    PRODUCTS: RelationMeasure(
        rows=100, columns={"id": ColumnMeasure(width=4, distinct=100), "kind": ColumnMeasure(width=12, distinct=6)}
    ),
}


def estimated(
    sql: str, known: dict[str, float] | None = None
) -> tuple[SegmentedView, dict[str, float], dict[str, float]]:
    view = WORLD.compile(sql)
    counted = {
        one.name: (known or {})[kind] for one in view.segments if (kind := one.name.name.split("_")[0]) in (known or {})
    }
    estimates = RowEstimates(view=view, relations=MEASURED, counted=counted)
    rows, sizes = estimates.segment_rows(), estimates.segment_row_sizes()
    return (
        view,
        {name.name.split("_")[0]: found for name, found in rows.items()},
        {name.name.split("_")[0]: found for name, found in sizes.items()},
    )


def test_a_join_by_key_has_the_rows_of_the_referring_side() -> None:
    sql = "SELECT p.kind, SUM(s.amount) AS a FROM shop.sales s JOIN shop.products p ON s.product = p.id GROUP BY p.kind"
    _, rows, sizes = estimated(sql)
    assert rows == pytest.approx({"join": 10_000, "group": 6, "v": 6})
    assert sizes["join"] == 4 + 12


@pytest.mark.parametrize(
    ("condition", "rows"),
    [("s.amount = 3", 10_000 / 9), ("s.amount > 3", 10_000 / 3), ("s.amount = s.product", 10_000 / 3)],
)
def test_conditions_leave_a_share(condition: str, rows: float) -> None:
    assert estimated(f"SELECT s.no FROM shop.sales s WHERE {condition}")[1]["v"] == pytest.approx(rows)


def test_what_was_counted_goes_before_what_is_guessed() -> None:
    inner = "SELECT product, COUNT(*) AS n FROM shop.sales s GROUP BY product"
    sql = f"SELECT q.n, COUNT(*) AS m FROM ({inner}) q GROUP BY q.n"
    assert estimated(sql)[1]["v"] == pytest.approx(80)
    assert estimated(sql, {"group": 5.0})[1]["v"] == pytest.approx(5)


def test_a_union_has_what_is_added() -> None:
    sql = "SELECT no FROM shop.sales s UNION ALL SELECT id FROM shop.products p"
    assert estimated(sql)[1]["v"] == pytest.approx(10_100)
