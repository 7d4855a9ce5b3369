"""Batches whose rows are not held: computed on Spark, written by executors, committed by reference, folded, read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from scripted_world import SOLD, TOTALS, Bag, FailPoints, ScriptedWorld
from test_stopped import stopped

from headwater.warehouse.commits import REFERRED

pytestmark = pytest.mark.filterwarnings("ignore:Exception in thread upkeep")  # it died, as it was told

RANKED = "SELECT s.id, s.store, RANK() OVER (PARTITION BY s.store ORDER BY s.id) AS place FROM shop.sales s"
LAST = "SELECT s.id, s.store FROM shop.sales s ORDER BY s.id DESC LIMIT 3"
BOTH = "SELECT s.id FROM shop.sales s UNION ALL SELECT p.id FROM stock.products p"
UNSOLD = "SELECT p.id FROM stock.products p WHERE NOT EXISTS (SELECT 1 FROM shop.sales s WHERE s.product = p.id)"
VIEWS = {"sold": SOLD, "totals": TOTALS, "ranked": RANKED, "last": LAST, "both": BOTH, "unsold": UNSOLD}


def _ranked(sales: Bag, products: Bag) -> Bag:
    del products
    rows = [(number, store) for number, _, store in sales.elements()]
    return Counter((n, store, 1 + sum(m < n for m, other in rows if other == store)) for n, store in rows)


def _last(sales: Bag, products: Bag) -> Bag:
    del products
    return Counter(sorted(((number, store) for number, _, store in sales.elements()), reverse=True)[:3])


def _both(sales: Bag, products: Bag) -> Bag:
    return Counter((row[0],) for row in (*sales.elements(), *products.elements()))


def _unsold(sales: Bag, products: Bag) -> Bag:
    sold = {product for _, product, _ in sales}
    return Counter((number,) for number, _ in products.elements() if number not in sold)


ORACLES = {"ranked": _ranked, "last": _last, "both": _both, "unsold": _unsold}


def holding(rows: int, **maintained: str) -> str:
    kept = "".join(f'[views.{name}]\nmaintenance = "{how}"\n' for name, how in maintained.items())
    return f"[settings.batch]\nheld_rows = {rows}\n{kept}"


def refers(world: ScriptedWorld) -> bool:
    """Tell whether some commit named files that executors wrote."""
    return world.warehouse.commits.table.number(REFERRED) is not None


@pytest.mark.parametrize("held_rows", [1, 4])
def test_every_state_is_exact_whatever_form_its_changes_had(fresh: ScriptedWorld, held_rows: int) -> None:
    fresh.oracles |= ORACLES
    fresh.write_project(VIEWS, holding(held_rows))
    fresh.run()
    fresh.sell(*range(10, 24))
    fresh.price(1, 11)
    fresh.run()
    assert refers(fresh)
    fresh.price(2, 12)
    fresh.price(9, 12)
    fresh.sell(*range(24, 30))
    fresh.run()
    assert fresh.assert_exact(*VIEWS) == 23
    assert not list((fresh.folder / "warehouse" / "scratch").rglob("*.parquet"))


def test_a_view_that_is_recomputed_is_compared_where_its_rows_are(fresh: ScriptedWorld) -> None:
    fresh.oracles |= ORACLES
    fresh.write_project(
        {"totals": TOTALS, "ranked": RANKED}, holding(2, totals="recompute-self", ranked="recompute-self")
    )
    fresh.run()
    for number in range(10, 14):
        fresh.sell(number, number + 10)
        fresh.run()
        fresh.assert_newest("totals", "ranked")


@pytest.mark.parametrize("name", ["rows written", "before commit", "after commit", "before changes append"])
def test_stopped_between_writing_rows_and_folding_them(fresh: ScriptedWorld, points: FailPoints, name: str) -> None:
    fresh.write_project({"sold": SOLD, "totals": TOTALS}, holding(2))
    fresh.run()
    fresh.sell(*range(10, 20))
    fresh.price(1, 11)
    stopped(fresh, points, name)
    fresh.sell(20)
    fresh.run()
    assert refers(fresh)
    assert fresh.assert_exact("sold", "totals") == 12


def test_files_that_commits_name_are_no_strays(fresh: ScriptedWorld) -> None:
    """What executors wrote and nobody has folded yet belongs to its table although Delta does not know it."""
    fresh.write_project({"sold": SOLD}, holding(2))
    fresh.run()
    fresh.sell(*range(10, 20))
    with fresh.running() as maintainer:
        maintainer.upkeep.stop()
        while maintainer.frontier() < 10:
            maintainer.acceptor.wait_for_news(0.05)
        [changes] = Path(fresh.folder / "warehouse" / "views" / "sold").glob("*/changes")
        assert list(changes.glob("data-*/*.parquet")), "rows were written by reference"
        assert fresh.assert_exact("sold") == 10
