"""What each construct's rows derive from, by example: those that views by chance do not have, and the paper's."""

from __future__ import annotations

from typing import Any

import pytest
from in_duckdb import World, relation
from lineage_cases import InMemory, counted, lineage_by_row, new_world, traced_rows

from headwater.model.relation import RelationName

R, S = (RelationName(source="a", name=name) for name in ("r", "s"))
ROWS: dict[RelationName, list[tuple[Any, ...]]] = {
    R: [(1, 10, 0), (1, 10, 0), (1, 20, 0), (2, 20, 5)],
    S: [(1, 10), (1, 20), (3, 30)],
}
PARTITION = {("a.r", (1, 10, 0), 2), ("a.r", (1, 20, 0), 1)}


@pytest.mark.parametrize(
    ("sql", "row", "lineage"),
    [
        ("SELECT r.x AS x, r.y AS y FROM a.r AS r", (1, 10), {("a.r", (1, 10, 0), 2)}),
        ("SELECT a.y AS y, b.y AS z FROM a.r AS a JOIN a.r AS b ON a.x = b.x", (10, 20), PARTITION),
        ("SELECT r.y AS y, RANK() OVER (PARTITION BY r.x ORDER BY r.y) AS place FROM a.r AS r", (20, 3), PARTITION),
        ("SELECT r.y AS y, COUNT(*) OVER (PARTITION BY r.x + 1) AS n FROM a.r AS r", (10, 3), PARTITION),
        ("SELECT r.x AS x, r.y AS y FROM a.r AS r ORDER BY r.y LIMIT 1", (1, 10), {("a.r", (1, 10, 0), 2)}),
        (
            "SELECT r.z AS z FROM a.r AS r WHERE EXISTS (SELECT 1 FROM a.s AS s WHERE s.w < r.y AND s.x = 1)",
            (5,),
            {("a.r", (2, 20, 5), 1), ("a.s", (1, 10), 1)},
        ),
        ("SELECT r.x AS x FROM a.r AS r WHERE r.x NOT IN (SELECT s.x FROM a.s AS s)", (2,), {("a.r", (2, 20, 5), 1)}),
        (
            "SELECT r.y AS y FROM a.r AS r EXCEPT ALL SELECT s.w AS w FROM a.s AS s",
            (10,),
            {("a.r", (1, 10, 0), 2), ("a.s", (1, 10), 1)},
        ),
        (
            "SELECT r.x AS x, (SELECT MAX(s.w) FROM a.s AS s WHERE s.x < r.x) AS w FROM a.r AS r",
            (2, 20),
            {(str(name), row, rows.count(row)) for name, rows in ROWS.items() for row in rows},
        ),
    ],
    ids=[
        "copies",
        "with itself",
        "window",
        "window by what is not shown",
        "first",
        "exists",
        "not in",
        "except all",
        "recomputed",
    ],
)
def test_a_row_derives_from(sql: str, row: tuple[Any, ...], lineage: set[Any]) -> None:
    assert trace_one(new_world(), sql, ROWS, row) == lineage


HIGH_PROFIT = """
    SELECT st.city AS city FROM chain.store AS st
    JOIN (SELECT sa.store AS store, SUM(sa.num * (pr.price - pr.cost)) AS profit
          FROM shop.sales AS sa JOIN shop.product AS pr ON sa.product = pr.id GROUP BY sa.store) AS p ON p.store = st.id
    JOIN (SELECT em.store AS store, SUM(em.salary) AS salaries FROM staff.employee AS em GROUP BY em.store) AS s
      ON s.store = st.id
    WHERE p.profit - st.expenses - s.salaries > 100
"""


def test_the_paper_s_example() -> None:
    """Paper 004's HighProfit: two levels, fan-out three; what did not contribute is not traced."""
    world = World(
        [
            relation("chain", "store", id="int", city="int", expenses="int"),
            relation("shop", "sales", store="int", product="int", num="int"),
            relation("shop", "product", id="int", cost="int", price="int"),
            relation("staff", "employee", id="int", store="int", salary="int"),
        ]
    )
    store, sales, product, employee = world.catalog
    rows = {
        store: [(1, 7, 10), (2, 8, 10)],
        sales: [(1, 1, 100), (1, 2, 1), (2, 1, 1)],
        product: [(1, 1, 3), (2, 5, 5), (3, 1, 9)],
        employee: [(1, 1, 30), (2, 1, 20), (3, 2, 1)],
    }
    assert trace_one(world, HIGH_PROFIT, rows, (7,)) == {
        ("chain.store", (1, 7, 10), 1),
        ("shop.sales", (1, 1, 100), 1),
        ("shop.sales", (1, 2, 1), 1),
        ("shop.product", (1, 1, 3), 1),
        ("shop.product", (2, 5, 5), 1),
        ("staff.employee", (1, 1, 30), 1),
        ("staff.employee", (2, 1, 20), 1),
    }


def test_only_what_leads_to_the_rows_is_read() -> None:
    """A row is traced without reading its relations whole."""
    world = new_world()
    sql = "SELECT r.x AS x, SUM(s.w) AS w FROM a.r AS r JOIN a.s AS s ON r.x = s.x GROUP BY r.x"
    reading = InMemory({name: counted(world.catalog[name], ROWS.get(name, [])) for name in world.catalog})
    view = world.compile(sql)
    traced_rows(view, [(1, 90)], reading, world.catalog)
    assert {str(one.relation) for one in reading.requests} >= {"a.r", "a.s"}
    assert all(one.within is not None for one in reading.requests)


def test_nothing_is_read_twice() -> None:
    """The members of a union read the same rows, and so do segments that are computed: each reading is done once."""
    world = new_world()
    sql = "SELECT r.x AS x, s.w AS w FROM a.r AS r FULL JOIN a.s AS s ON r.x = s.x AND s.w > r.y"
    reading = InMemory({name: counted(world.catalog[name], ROWS.get(name, [])) for name in world.catalog})
    traced_rows(world.compile(sql), [(1, 20), (1, None), (2, None)], reading, world.catalog)
    read = [(str(one.relation), one.wanted, str(one.within)) for one in reading.requests]
    assert len(read) == len(set(read)) > 3


def test_of_a_partition_the_row_itself_comes_first() -> None:
    world = new_world()
    sql = "SELECT r.y AS y, RANK() OVER (PARTITION BY r.x ORDER BY r.y) AS place FROM a.r AS r"
    rows = [(1, 10, 0), (1, 20, 0), (1, 30, 0), (1, 40, 0)]
    base = {name: counted(world.catalog[name], rows if name == R else []) for name in world.catalog}
    for place, (_, y, _) in enumerate(rows):
        [leaf] = traced_rows(world.compile(sql), [(y, place + 1)], InMemory(base), world.catalog)
        first, *others = leaf.rows["y"].to_pylist()
        assert (first, sorted(others)) == (y, [other for _, other, _ in rows if other != y])


def test_of_partitions_of_groups_the_row_s_own_group_comes_first() -> None:
    """What the groups are made of stays below them."""
    world = new_world()
    sql = "SELECT r.y AS y, COUNT(*) AS n, RANK() OVER (ORDER BY r.y) AS place FROM a.r AS r GROUP BY r.y"
    rows = [(1, 10, 0), (1, 20, 0), (2, 20, 0), (1, 30, 0)]
    base = {name: counted(world.catalog[name], rows if name == R else []) for name in world.catalog}
    [groups] = traced_rows(world.compile(sql), [(20, 2, 2)], InMemory(base), world.catalog)
    assert groups.columns == ("y", "n")
    first, *others = groups.rows.select(["y", "n"]).to_pylist()
    assert first == {"y": 20, "n": 2}
    assert sorted(one["y"] for one in others) == [10, 30]
    [leaf] = groups.below
    above = [groups.rows["y"][of].as_py() for of in leaf.rows["#of"].to_pylist()]
    assert leaf.rows["y"].to_pylist() == above


def test_columns_of_groups_go_by_the_names_that_the_view_gives_them() -> None:
    world = new_world()
    sql = """SELECT q.times, COUNT(*) AS customers
             FROM (SELECT r.x, COUNT(*) AS times FROM a.r AS r GROUP BY r.x) AS q GROUP BY q.times"""
    rows = [(1, 0, 0), (1, 1, 0), (2, 0, 0), (2, 1, 0), (3, 0, 0)]
    base = {name: counted(world.catalog[name], rows if name == R else []) for name in world.catalog}
    [outer] = traced_rows(world.compile(sql), [(2, 2)], InMemory(base), world.catalog)
    [inner] = outer.below
    assert (outer.title, outer.columns) == ("group by times", ("times", "customers"))
    assert (inner.title, inner.columns) == ("group by r.x", ("r.x", "times"))


def trace_one(
    world: World, sql: str, rows: dict[RelationName, list[tuple[Any, ...]]], row: tuple[Any, ...]
) -> set[Any]:
    world.fill(rows)
    assert row in world.original(sql)
    view = world.compile(sql)
    base = {name: counted(world.catalog[name], rows.get(name, [])) for name in world.catalog}
    [found] = lineage_by_row(traced_rows(view, [row], InMemory(base), world.catalog), 1)
    return found
