"""Views of Delta tables, every state compared with what the program that wrote the tables knows of their versions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from delta_tables import DeltaTableWriter
from pyspark.sql import SparkSession
from several_kinds import MixedWorld

SALES = (("id", "bigint"), ("product", "bigint"), ("store", "string"))
PRODUCTS = (("id", "bigint"), ("price", "bigint"))
VIEWS = {
    "sold": "SELECT s.id, s.store, p.price FROM lake.sales s JOIN lake.products p ON p.id = s.product",
    "totals": "SELECT store, COUNT(*) AS n, SUM(id) AS ids FROM lake.sales GROUP BY store",
}
PROBE = '[defaults]\nreading = "probe"\n'


def expected(name: str, rows: dict[str, Counter]) -> Counter:
    sales, products = rows["lake.sales"], rows["lake.products"]
    if name == "totals":
        stores: dict[str | None, list[int]] = {}
        for id_, _, store in sales.elements():
            stores.setdefault(store, []).append(id_)
        return Counter((store, len(ids), sum(ids)) for store, ids in stores.items())
    found: Counter = Counter()
    for (id_, product, store), n in sales.items():
        for (key, price), m in products.items():
            if key == product:
                found[id_, store, price] += n * m
    return found


@pytest.mark.parametrize(
    ("has_feed", "reading"),
    [
        pytest.param(False, "", id="files, replica"),
        pytest.param(True, PROBE, id="feed, probe"),
        pytest.param(False, PROBE, id="files, probe", marks=pytest.mark.thorough),
        pytest.param(True, "", id="feed, replica", marks=pytest.mark.thorough),
    ],
)
def test_every_version_is_a_state(spark: SparkSession, tmp_path: Path, has_feed: bool, reading: str) -> None:
    sales = DeltaTableWriter(tmp_path / "lake" / "sales", SALES, ("store",), has_feed=has_feed).create()
    products = DeltaTableWriter(tmp_path / "lake" / "products", PRODUCTS, has_feed=has_feed).create()
    world = MixedWorld(spark, tmp_path, {"lake": f"delta:{tmp_path / 'lake'}"}, VIEWS, reading, expected)
    world.follow("lake.sales", sales.state)
    world.follow("lake.products", products.state)
    products.apply({(1, 10): 1, (2, 20): 1})
    sales.apply({(1, 1, "a b/c%"): 1, (2, 2, "é"): 2, (3, 3, None): 1})
    world.run()
    sales.apply({(4, 1, "é"): 1})
    products.apply({(1, 10): -1, (1, 11): 1})
    sales.apply({(2, 2, "é"): -1, (1, 1, "a b/c%"): -1, (5, 2, "a b/c%"): 3})
    sales.optimize()
    products.optimize()
    world.run()
    products.apply({(3, 30): 1, (2, 20): -1})
    sales.apply({row: -n for row, n in sales.rows().items()})
    sales.apply({(9, 3, "z"): 1})
    sales.optimize()
    world.run()
    sales.vacuum()
    world.run()
    assert world.assert_exact() == 6, "neither OPTIMIZE nor VACUUM is a transaction"
