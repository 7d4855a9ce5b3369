"""Polled sources and others in one project, every state compared with what was written at each of them."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from delta_tables import DeltaTableWriter
from pyspark.sql import SparkSession
from scripted_world import relation
from several_kinds import Bag, MixedWorld

from headwater.engine.service.live_status import read_sources
from headwater.explain.reading import reading_lines
from headwater.model.relation import RelationName
from headwater.project.file import load
from headwater.project.resolve import resolve_project
from headwater.sources.scripted import ScriptedDatabase

SALES = RelationName(source="shop", name="sales")
VIEWS = {
    "sold": "SELECT s.id, p.price, c.city FROM shop.sales s JOIN lake.products p ON p.id = s.product "
    "JOIN crm.clerks c ON c.id = s.clerk",
    "cities": "SELECT city, COUNT(*) AS n FROM crm.clerks GROUP BY city",
}


def expected(view: str, rows: dict[str, Bag]) -> Bag:
    clerks = rows["crm.clerks"]
    if view == "cities":
        return Counter(Counter(city for _, city in clerks.elements()).items())
    found: Bag = Counter()
    for (id_, product, clerk), n in rows["shop.sales"].items():
        for (key, price), m in rows["lake.products"].items():
            for (number, city), k in clerks.items():
                if key == product and number == clerk:
                    found[id_, price, city] += n * m * k
    return found


class Clerks:
    """A table of an SQLite database without a key, and what it was at every poll that found a difference."""

    def __init__(self, file: Path) -> None:
        self.connection = sqlite3.connect(file, isolation_level=None)
        self.connection.execute("CREATE TABLE clerks (id INTEGER, city TEXT)")
        self.polled: dict[int, Bag] = {}

    def change(self, *statements: str) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def rows(self) -> Bag:
        return Counter(self.connection.execute("SELECT id, city FROM clerks").fetchall())

    def note(self) -> None:
        """Note what the poll of now shows: the next number, if it differs from the last one."""
        rows = self.rows()
        if not self.polled or rows != self.polled[max(self.polled)]:
            self.polled[len(self.polled) + 1] = rows

    def state(self, number: int) -> Bag:
        return self.polled[number]


def history(database: ScriptedDatabase) -> Callable[[int], Bag]:
    def state(number: int) -> Bag:
        found: Bag = Counter()
        for one in database.transactions[:number]:
            found.update(one.changes.get(SALES, {}))
        return +found

    return state


@pytest.mark.parametrize("rounds", [3, pytest.param(25, marks=pytest.mark.thorough)])
def test_three_kinds_in_one_view(spark: SparkSession, tmp_path: Path, rounds: int) -> None:
    chance = random.Random(7)
    shop = ScriptedDatabase((relation(SALES, "id", "product", "clerk"),), tells_from_start=False)
    products = DeltaTableWriter(
        tmp_path / "lake" / "products", (("id", "bigint"), ("price", "bigint")), has_feed=True
    ).create()
    clerks = Clerks(tmp_path / "crm.db")
    urls = {"shop": shop.publish(), "lake": f"delta:{tmp_path / 'lake'}", "crm": f"sqlite:///{tmp_path / 'crm.db'}"}
    world = MixedWorld(spark, tmp_path, urls, VIEWS, "", expected, options={"crm": 'poll = "1 h"'})
    world.follow("shop.sales", history(shop), log="shop")
    world.follow("lake.products", products.state)
    world.follow("crm.clerks", clerks.state, log="crm")
    clerks.change("INSERT INTO clerks VALUES (1, 'Oslo'), (1, 'Oslo'), (2, NULL), (NULL, 'Rome')")
    products.apply({(1, 10): 1, (2, 20): 1})
    shop.commit({SALES: {(1, 1, 1): 1, (2, 2, 2): 1}})
    clerks.note()
    world.run()
    sales = iter(range(3, 1000))
    for number in range(rounds):
        for _ in range(chance.randint(1, 4)):
            shop.commit({SALES: {(next(sales), chance.randint(1, 3), chance.randint(1, 3)): 1}})
        known = products.rows()
        products.apply({row: -1 for row in known if row[0] == 1} | {(1, 11 + number): 1})
        clerks.change(
            f"INSERT INTO clerks VALUES ({chance.randint(1, 3)}, 'Oslo'), (3, 'Bonn')",
            "DELETE FROM clerks WHERE rowid = (SELECT min(rowid) FROM clerks WHERE city = 'Oslo')",
        )
        if number % 3 == 1:
            products.optimize()
            clerks.change(
                "DELETE FROM clerks WHERE city = 'Bonn'", "UPDATE clerks SET city = 'Oslo' WHERE city IS NULL"
            )
        clerks.note()
        world.run()
    assert world.assert_exact() >= 3 * rounds
    project = load(tmp_path)
    resolved = resolve_project(project, spark)
    assert any("polled every 3600 s" in warning for warning in resolved.warnings)
    assert any("polled every 3600 s" in line for line in reading_lines(resolved, resolved.views["sold"]))
    polled = {one.name: one.polled_every_seconds for one in read_sources(project, world.warehouse)}
    assert polled == {"shop": None, "lake": None, "crm": 3600.0}
