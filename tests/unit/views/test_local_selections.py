"""What a condition says of single columns, where Spark, Arrow and Python are sure to agree."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from headwater.deltas.selection import Selection
from headwater.model.relation import Column, Relation, RelationName
from headwater_lab.one_join import declare

SALES = Relation(
    name=RelationName(source="shop", name="sales"),
    columns=tuple(
        Column(name=name, type=kind, native=kind)
        for name, kind in (
            ("n", "int"),
            ("city", "string"),
            ("price", "decimal(12,2)"),
            ("day", "date"),
            ("ratio", "double"),
        )
    ),
)


def selections(condition: str) -> list[tuple[str, str, tuple[object, ...]]]:
    """Return the selections of a view of one occurrence with this condition."""
    view = declare("v", f"SELECT s.n FROM shop.sales s WHERE {condition}", {SALES.name: SALES})
    return [(found.column, found.compare, found.values) for found in view.selections["s"]]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("s.n < 5", [("n", "less", (5,))]),
        ("-5 <= s.n", [("n", "greater_equal", (-5,))]),
        ("s.city <> 'Oslo'", [("city", "not_equal", ("Oslo",))]),
        ("s.city IN ('Oslo', 'Bergen')", [("city", "equal", ("Oslo", "Bergen"))]),
        (
            "s.price BETWEEN 1.5 AND 20",
            [("price", "greater_equal", (Decimal("1.50"),)), ("price", "less_equal", (Decimal("20.00"),))],
        ),
        (
            "s.day >= DATE '2026-01-31' AND s.n = 1",
            [("day", "greater_equal", (date(2026, 1, 31),)), ("n", "equal", (1,))],
        ),
    ],
)
def test_a_comparison_with_constants_is_a_selection(condition: str, expected: object) -> None:
    assert selections(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "s.n < 1.5",
        "s.n < 3000000000",
        "s.price > 0.005",
        "s.ratio < 1",
        "s.city < CAST(5 AS STRING)",
        "s.day < DATE '2026-1-3'",
        "s.n = NULL",
        "s.n IN (1, NULL)",
        "s.n < 5 OR s.city = 'Oslo'",
        "NOT s.n < 5",
        "s.n + 1 < 5",
        "s.n NOT IN (1)",
    ],
)
def test_what_needs_a_cast_or_more_thought_is_none(condition: str) -> None:
    assert selections(condition) == []


def test_a_selection_is_of_its_own_occurrence() -> None:
    sql = "SELECT a.n FROM shop.sales a JOIN shop.sales b ON a.n = b.n WHERE b.city = 'Oslo'"
    view = declare("v", sql, {SALES.name: SALES})
    assert view.selections == {"a": (), "b": (Selection(column="city", compare="equal", values=("Oslo",)),)}
