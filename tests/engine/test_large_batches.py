"""Batches whose rows are not held: computed on Spark, written by executors, committed by reference, folded, read."""

from __future__ import annotations

import errno
import os
from collections import Counter
from pathlib import Path
from typing import Never

import pytest
from scripted_world import SOLD, TOTALS, Bag, FailPoints, ScriptedWorld
from test_stopped import stopped

from headwater.engine.batch import join_batch
from headwater.engine.state import runner
from headwater.engine.state.replica_reader import refresh_replica
from headwater.errors import WarehouseRefused
from headwater.storage.storage_errors import stored
from headwater.warehouse.commits import REFERRED
from headwater.warehouse.folders import replica_folder
from headwater.warehouse.replica import Replica

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


@pytest.mark.parametrize("maintenance", ["recompute-self", "self"])
def test_parts_of_one_batch_may_give_few_rows_or_many(
    fresh: ScriptedWorld, maintenance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ticks of a view that is recomputed, and pieces of a join that is cut for a hot key."""
    monkeypatch.setattr(join_batch, "most_combinations", lambda _: 6)
    fresh.write_project({"sold": SOLD}, f'{holding(4, sold=maintenance)}guarantee = "complete"\n')
    fresh.sell(*range(10, 34))
    fresh.run()
    fresh.sell(34)
    fresh.price(1, 11)
    fresh.sell(35)
    fresh.run()
    assert refers(fresh)
    assert fresh.assert_exact("sold")


def test_what_one_relation_changes_is_not_netted_and_exact(
    fresh: ScriptedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []
    noted = join_batch.combined_sql
    monkeypatch.setattr(join_batch, "combined_sql", lambda *given: used.append("") or noted(*given))
    fresh.write_project({"sold": SOLD}, holding(4))
    fresh.sell(*range(10, 34))
    fresh.run()
    fresh.sell(*range(34, 44))
    fresh.run()
    assert used
    fresh.price(1, 11)
    fresh.price(1, 12)
    fresh.price(1, 11)
    fresh.run()
    fresh.price(2, 11)
    fresh.sell(*range(44, 50))
    fresh.run()
    assert fresh.assert_exact("sold")


def test_partitions_that_change_at_every_tick_are_not_held(fresh: ScriptedWorld) -> None:
    """The changes and the old rows are few, but each change alters the ranks of many."""
    fresh.oracles |= ORACLES
    fresh.write_project({"ranked": RANKED}, holding(40))
    fresh.sell(*range(40, 58))
    fresh.run()
    fresh.sell(9, 6, 3, 12, 15)
    fresh.run()
    assert refers(fresh)
    assert fresh.assert_exact("ranked")


def test_a_full_disk_ends_the_run_and_stops_no_view(fresh: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh.write_project({"sold": SOLD}, holding(1))
    fresh.run()
    fresh.sell(*range(10, 16))

    def full(*_: object) -> Never:
        with stored("/somewhere"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(runner, "write_bag", full)
        with pytest.raises(WarehouseRefused) as raised:
            fresh.run()
        assert raised.value.code == "HW-434"
    assert not fresh.warehouse.head().record.stopped
    fresh.run()
    assert fresh.assert_exact("sold")


def test_a_replica_that_was_stored_again_is_taken_over_while_nothing_changes(fresh: ScriptedWorld) -> None:
    """The files of the one before are deleted some time later, and a large batch would read them."""
    fresh.write_project({"sold": SOLD})
    fresh.run()
    maintainer = fresh.start()
    try:
        name, reader = next(iter(maintainer.replicas.items()))
        replica = Replica.open(replica_folder(maintainer.warehouse.path, name, reader.entry.generation))
        maintainer.upkeep.refreshed[name] = fresh_one = refresh_replica(reader, replica, maintainer.log)
        assert not maintainer.step()
        assert maintainer.replicas[name] is fresh_one
    finally:
        maintainer.close()
        maintainer.release()


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
