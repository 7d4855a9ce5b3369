"""A source goes away and comes back, or is lost for good; the other goes on, and every state stays exact."""

from __future__ import annotations

import pytest
from scripted_world import ONCE, PRODUCTS, SALES, SOLD, FailPoints, ScriptedWorld, wait_until
from test_stopped import stopped

from headwater.engine.service.live_status import read_sources
from headwater.engine.service.tear_down import tear_down
from headwater.errors import SourceLost, SourceRefused, SourceUnavailable
from headwater.model.moment import parse_moment
from headwater.model.position import Tick
from headwater.observe.events import BootstrapProgress, Event, SourceDisconnected, SourceGone, TransactionsAccepted
from headwater.project.file import load
from headwater.project.plan import Consent

AWAY = SourceUnavailable('source "shop" does not answer', code="HW-303", hint="")
PROBE = '[defaults]\nreading = "probe"\n'


def test_a_source_that_goes_away_and_comes_back(world: ScriptedWorld) -> None:
    with world.running() as maintainer:
        world.shop.fail(AWAY)
        wait_until(lambda: any(isinstance(event, SourceDisconnected) for event in world.events))
        world.sell(*range(16, 19))
        before = maintainer.frontier()
        world.price(3, 33)
        wait_until(lambda: maintainer.frontier() > before)
        assert not maintainer.acceptor.threads()["shop"].is_connected
        world.shop.recover()
        wait_until(lambda: maintainer.frontier() == 7 + 4)
    assert world.assert_exact("sold", "totals") == 11


def test_a_view_that_probes_waits_for_its_source_and_the_others_go_on(fresh: ScriptedWorld) -> None:
    stores = "SELECT store, COUNT(*) AS n FROM shop.sales GROUP BY store"
    probed = '[relations."stock.products"]\nreading = "probe"\n'
    fresh.write_project({"sold": SOLD, "stores": stores}, probed + ONCE)
    fresh.run()
    with fresh.running() as maintainer:
        views = maintainer.views
        fresh.stock.fail(AWAY)
        fresh.sell(*range(10, 13))
        wait_until(lambda: views["stores"].frontier == 3)
        assert (views["sold"].frontier, views["sold"].stopped) == (0, None), "it needs prices, and nobody can be asked"
        fresh.stock.recover()
        fresh.price(1, 11)
        wait_until(lambda: views["sold"].frontier == 4)
    assert fresh.assert_exact("sold") == 4


def test_connections_that_end_again_and_again(world: ScriptedWorld) -> None:
    with world.running() as maintainer:
        for number in range(16, 26):
            world.sell(number)
            world.shop.disconnect()
        world.stock.restart()
        world.price(1, 100)
        wait_until(lambda: maintainer.frontier() == 7 + 11)
    assert world.assert_exact("sold", "totals") == 18


def test_a_server_that_restarts_while_it_is_probed(fresh: ScriptedWorld) -> None:
    fresh.write_project({"sold": SOLD}, PROBE + ONCE)
    fresh.run()
    with fresh.running() as maintainer:
        for number in range(10, 20):
            fresh.sell(number)
            fresh.price(number % 4, number)
            fresh.stock.restart()
        wait_until(lambda: maintainer.frontier() == 20)
    assert fresh.assert_exact("sold") == 20


def test_what_the_log_tells_before_snapshots_show_it(fresh: ScriptedWorld) -> None:
    """An answer that lacks a transaction which has a tick already is brought to that tick."""
    fresh.write_project({"sold": SOLD}, PROBE + ONCE)
    fresh.run()
    hidden = fresh.price(1, 111, is_hidden=True)
    fresh.sell(*range(10, 20))
    fresh.run()
    fresh.price(2, 222)
    fresh.sell(21)
    fresh.run()
    fresh.stock.show(hidden)
    fresh.sell(22)
    fresh.run()
    assert fresh.assert_exact("sold") == 14


def test_a_relation_that_is_emptied_as_a_whole(world: ScriptedWorld) -> None:
    world.sell(16)
    world.shop.commit({}, truncated=[SALES])
    world.sell(17, 18)
    world.run()
    assert world.assert_exact("sold", "totals") == 11


def test_a_relation_that_is_emptied_while_it_is_first_read(fresh: ScriptedWorld) -> None:
    """Shop is read, and before stock is read shop.sales is emptied: what was read is worthless."""

    class Listening(list[Event]):
        is_done = False

        def append(self, event: Event) -> None:
            super().append(event)
            if isinstance(event, BootstrapProgress) and event.relation.source == "stock" and not self.is_done:
                self.is_done = True
                fresh.shop.commit({}, truncated=[SALES])
                wait_until(lambda: any(isinstance(one, TransactionsAccepted) for one in self))

    fresh.events = heard = Listening()
    fresh.run()
    assert heard.is_done
    fresh.sell(20)
    fresh.run()
    assert fresh.assert_exact("sold") == 2


def test_rows_that_were_emptied_away_are_not_missed_at_an_earlier_tick(fresh: ScriptedWorld) -> None:
    """The price that a sale needs is asked for when it is gone: better to stop than to show no sale."""
    fresh.write_project({"sold": SOLD}, PROBE + ONCE)
    fresh.run()
    fresh.sell(10)
    fresh.stock.commit({}, truncated=[PRODUCTS])
    fresh.run()
    stopped_by = fresh.warehouse.head().record.stopped["sold"]
    assert stopped_by.code == "HW-521"
    assert "--rebuild sold" in stopped_by.hint
    assert fresh.warehouse.frontier("sold") == 0


@pytest.mark.parametrize("name", ["after log mark", "slot made", "chunk staged"])
def test_stopped_while_a_lost_source_is_read_again(world: ScriptedWorld, points: FailPoints, name: str) -> None:
    """The slot is made again, and the views are not yet built again: they must not go on over the gap."""
    world.shop.slots.clear()
    world.sell(16)
    stopped(world, points, name)
    world.sell(17)
    world.run()
    warehouse = world.warehouse
    assert warehouse.row_count("sold", warehouse.frontier("sold")) == world.rows("shop").total()


def test_a_database_that_was_restored_is_not_the_one_it_was(world: ScriptedWorld) -> None:
    with world.running() as maintainer:
        world.shop.restore(world.shop.transactions[:-2])
        wait_until(lambda: any(isinstance(event, SourceGone) for event in world.events))
        [gone] = [event for event in world.events if isinstance(event, SourceGone)]
        assert gone.error.code == "HW-310"
        assert "(how often it was restored)" in gone.error.detail
        before = maintainer.frontier()
        world.price(3, 33)
        wait_until(lambda: maintainer.frontier() > before)
    with pytest.raises(SourceLost) as lost:
        world.run()
    assert lost.value.code == "HW-310"


def test_a_log_that_was_thrown_away(world: ScriptedWorld) -> None:
    [slot] = world.shop.slots.values()
    slot.lost = "it was too long"
    with pytest.raises(SourceLost, match="thrown away log") as lost:
        world.run()
    assert lost.value.code == "HW-311"
    assert [one.what.partition("_")[0] for one in tear_down(load(world.folder), ["shop"]).dropped] == ["slot shop"]
    world.sell(16)
    world.run(Consent(is_given=True))
    world.sell(17)
    world.run()
    warehouse = world.warehouse
    assert warehouse.row_count("sold", warehouse.frontier("sold")) == world.rows("shop").total()


def test_a_slot_that_another_has_used_is_refused(world: ScriptedWorld) -> None:
    world.sell(16, 17)
    [slot] = world.shop.slots.values()
    slot.forgotten_to[""] += 1
    with pytest.raises(SourceLost, match="already forgotten changes") as lost:
        world.run()
    assert lost.value.code == "HW-314"
    slot.forgotten_to[""] -= 1
    world.run()
    assert world.assert_exact("sold", "totals") == 9


def test_the_default_schema_of_a_source_is_not_named(world: ScriptedWorld) -> None:
    world.write_project({"sold": SOLD.replace("shop.sales", "shop.memory.sales")})
    with pytest.raises(SourceRefused, match="no relation") as refused:
        world.start()
    assert "write shop.sales" in refused.value.detail


def test_positions_are_shown_and_asked_for_in_the_notation_of_their_source(world: ScriptedWorld) -> None:
    with world.running():
        wait_until(lambda: {one.lag for one in read_sources(load(world.folder), world.warehouse)} == {"0 transactions"})
        shop, _ = read_sources(load(world.folder), world.warehouse)
    assert [str(position) for position in shop.positions] == ["shop:15"]
    assert (shop.lag_bytes, shop.lag_seconds) == (None, 0.0)
    log = world.warehouse.log
    ticks = [tick for tick, _ in log.transactions("shop", Tick(0), Tick(7))]  # the transaction of "stock" is anywhere
    asked = [world.warehouse.resolve_at("sold", parse_moment(f"shop:{number}")) for number in (9, 10, 15)]
    assert asked == [0, ticks[0], ticks[-1]]
    assert [str(one.position) for _, one in log.transactions("stock", Tick(0), Tick(7))] == ["stock:5"]
