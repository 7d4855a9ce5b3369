"""How often the types of expressions are asked for: not more often because a view is wider, and never too seldom."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from in_duckdb import World, relation

from headwater.model.relation import Column, Relation, RelationName
from headwater.views.compile.compile_view import compile_view
from headwater.views.steps.segments import SegmentedView


class Asked:
    """Types what it is asked, and counts how often that is."""

    def __init__(self) -> None:
        self.world = World(
            [
                relation("a", "sales", key=("id",), id="int!", day="int", price="decimal(7,2)", number="int"),
                relation("a", "days", key=("day",), day="int!", month="int", number="decimal(9,4)"),
            ]
        )
        self.count = 0

    def types(self, sql: str, relations: Mapping[RelationName, Relation]) -> tuple[Column, ...]:
        self.count += 1
        return self.world.types(sql, relations)

    def compile(self, sql: str) -> SegmentedView:
        return compile_view("v", sql, self.world.catalog, self.types)


def by_month(months: int) -> str:
    sums = ", ".join(
        f"sum(CASE WHEN month = {month} THEN price * sales.number ELSE 0 END) AS m{month}" for month in range(months)
    )
    return f"SELECT sales.id, {sums} FROM a.sales, a.days WHERE sales.day = days.day GROUP BY sales.id"


def over_months(months: int) -> str:
    sums = ", ".join(
        f"sum(price * {month + 2} + number) OVER (PARTITION BY day ORDER BY id) AS m{month}" for month in range(months)
    )
    return f"SELECT id, {sums} FROM a.sales"


@pytest.mark.parametrize("text", [by_month, over_months])
def test_more_sums_are_not_asked_for_more_often(text: object) -> None:
    assert callable(text)
    counts = []
    for months in (1, 24):
        asked = Asked()
        asked.compile(text(months))
        counts.append(asked.count)
    assert counts[0] == counts[1]


def test_more_grouping_sets_are_hardly_asked_for_more_often() -> None:
    asked = Asked(), Asked()
    asked[0].compile("SELECT day, id, sum(price * number) AS s FROM a.sales GROUP BY GROUPING SETS ((day, id), (day))")
    asked[1].compile("SELECT day, id, sum(price * number) AS s FROM a.sales GROUP BY CUBE (day, id)")
    assert asked[1].count <= asked[0].count + 1, "the set without keys has columns of its own, which are NULL"


def test_the_same_words_over_columns_of_other_types_are_another_expression() -> None:
    asked = Asked()
    text = "SELECT number * 2 AS n FROM a.sales UNION ALL SELECT number * 2 FROM a.days"
    view = asked.compile(text)
    rows = {
        RelationName(source="a", name="sales"): [(1, 1, 2, 3)],
        RelationName(source="a", name="days"): [(1, 1, 1.5)],
    }
    asked.world.fill(rows)
    assert asked.world.evaluate(view) == asked.world.original(text) == {(6.0,): 1, (3.0,): 1}
