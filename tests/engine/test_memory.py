"""What does not fit into the budget is maintained exactly: a state ten times as large, and large transactions."""

from __future__ import annotations

import pytest
from scripted_world import EACH, SOLD, TOTALS, ScriptedWorld, wait_until

from headwater.engine.service.live_status import read_memory
from headwater.engine.service.maintainer import Maintainer
from headwater.observe.status import MemoryStatus

MEMORY = """
[maintenance]
memory = "100 kB"
batch_ticks = 1
[settings.batch]
replica_behind_rows = 500
[settings.upkeep]
interval = "200 ms"
replica_refresh_rows = 1000
"""
LIMIT = 100_000
ROWS = 20_000


def kept_bytes(maintainer: Maintainer) -> int:
    """Return how large the rows are that are looked up, wherever they are."""
    tables = [table for view in maintainer.views.values() for table in view.segments.values()]
    readers = [*maintainer.replicas.values(), *(reader for table in tables for reader in table._readers.values())]
    return sum(part.nbytes for reader in readers for part in reader.rows.parts())


def maintained(world: ScriptedWorld) -> MemoryStatus:
    """Maintain to the end, and return what was held then. Nothing was ever over its share."""
    maintainer = world.start()
    budget, over = maintainer.budget, list[str]()

    def watch(event: object) -> None:
        if budget.rows.held_bytes > budget.rows.limit_bytes or maintainer.log.tail.byte_count > budget.tail_bytes:
            over.append(type(event).__name__)

    maintainer.listener, listener = lambda event: (watch(event), listener(event))[1], maintainer.listener
    try:
        maintainer.run(until_idle=True, ticks=None)
        assert kept_bytes(maintainer) > 10 * LIMIT
        return maintainer._signs._memory()
    finally:
        maintainer.release()
        assert not over


@pytest.mark.parametrize("reading", ["replica", "probe"])
def test_a_state_ten_times_as_large_as_the_budget_is_exact(fresh: ScriptedWorld, reading: str) -> None:
    world = fresh
    settings = f'{MEMORY}[relations."stock.products"]\nreading = "{reading}"\n'
    world.write_project({"sold": SOLD, "totals": TOTALS, "each": EACH}, settings)
    world.shop.commit({world.sales: {(n, n % 4, n % 3): 1 for n in range(100, ROWS)}})
    found = maintained(world)
    assert found.limit_bytes == LIMIT
    assert found.rows_bytes <= LIMIT / 4
    assert found.mapped_bytes > 10 * LIMIT

    moved = {(n, n % 4, n % 3): -1 for n in range(2_000, 6_000)} | {(n, 2, 1): 1 for n in range(2_000, 6_000)}
    world.shop.commit({world.sales: moved})  # itself larger than the budget
    world.price(2, 7)
    world.sell(*range(ROWS, ROWS + 5))
    assert maintained(world).tail_bytes <= LIMIT / 8
    assert world.assert_exact("sold", "totals", "each") == 7


def test_a_truncate_of_what_does_not_fit_is_exact(fresh: ScriptedWorld) -> None:
    world = fresh
    world.write_project({"sold": SOLD, "totals": TOTALS, "each": EACH}, MEMORY)
    world.shop.commit({world.sales: {(n, n % 4, n % 3): 1 for n in range(100, ROWS)}})
    maintained(world)
    world.sell(*range(ROWS, ROWS + 3))
    world.shop.commit({world.sales: {(n, n % 4, n % 3): 1 for n in range(ROWS)}}, truncated=(world.sales,))
    maintained(world)
    assert world.assert_exact("sold", "totals", "each") == 4


def test_status_says_what_a_running_maintainer_holds(world: ScriptedWorld) -> None:
    world.write_project({"sold": SOLD, "totals": TOTALS}, MEMORY)
    with world.running() as maintainer:
        wait_until(lambda: (found := read_memory(world.warehouse)) is not None and found.limit_bytes == LIMIT)
        said = read_memory(world.warehouse)
        assert said is not None
        assert said.rows_bytes == maintainer.budget.rows.held_bytes
        assert said.used_bytes >= said.rows_bytes + said.tail_bytes
        assert said.spark_limit_bytes is not None
        assert 10**8 < said.spark_limit_bytes < 10**11
    assert read_memory(world.warehouse) is None, "nobody runs any more"
