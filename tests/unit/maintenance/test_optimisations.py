"""What can ever ask less of a view is said with its reason, and nothing is used that was said not to apply."""

from __future__ import annotations

from typing import Any

import pytest
from small_views import change, guarantee, play_out, relation, sent, setting

from headwater.maintenance.published.messages import Answered, Query, changes_of
from headwater.maintenance.published.optimisations import optimisations
from headwater.maintenance.published.telescope import telescope
from headwater.maintenance.published.version_numbers import self_maintaining, version_numbers
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater.views.steps.keys import key_outputs, row_outputs
from headwater_lab.chance import Chances, play
from headwater_lab.world import World

CUSTOMERS = relation("shop.customers(id, city)", key=("id",))
ORDERS = relation("shop.orders(id, customer)", key=("id",), parents={"customer": ("shop.customers", "id")})
ITEMS = relation("store.items(sku, price)", key=("sku",))
JOINED = "FROM shop.orders o, shop.customers c WHERE o.customer = c.id"


def told(sql: str) -> dict[tuple[str, str], tuple[bool, str]]:
    view = setting(sql, {CUSTOMERS: [], ORDERS: [], ITEMS: []}).view
    return {(one.name, one.of): (one.applies, one.why) for one in optimisations(view)}


def test_a_column_that_equals_one_that_is_shown_is_shown() -> None:
    """The key of customers is there under another name: its rows are found in the view, and go by key."""
    view = setting(f"SELECT o.customer, c.city {JOINED}", {CUSTOMERS: [], ORDERS: []}).view
    assert key_outputs(view, "c") == (0,)
    assert row_outputs(view, "c") == (0, 1)
    said = told(f"SELECT o.customer, c.city {JOINED}")
    assert said["rows found in the view", "c"][0]
    assert said["deletes by key", "c"][0]
    assert said["deletes by key", "o"] == (False, "the view does not show its key (id)")
    assert said["irrelevant changes", "c"][0]
    assert said["one query to a source", "shop"][0]


def test_why_not_is_said() -> None:
    said = told(f"SELECT o.id, c.id AS c_id {JOINED} AND c.city > 1")
    assert said["rows found in the view", "c"] == (
        False,
        "the view needs city of it, and does not show it: a change could not be found in it",
    )
    assert "nothing joins by its whole key (id)" in said["rows found in the view", "o"][1]
    alone = told("SELECT i.price, o.id FROM store.items i, shop.orders o WHERE i.price = o.customer")
    assert not alone["irrelevant changes", ""][0]
    assert not alone["one query to a source", ""][0]


def test_a_row_that_is_shown_under_another_name_is_not_asked_for() -> None:
    r, s = relation("one.r(k, a)", key=("k",)), relation("two.s(k, b)", key=("k",))
    sql = "SELECT r.k, r.a, s.b FROM one.r r, two.s s WHERE r.a = s.k"
    asked = {}
    for algorithm in (version_numbers, self_maintaining):
        world = World(setting(sql, {r: [(1, 5)], s: [(5, 7), (6, 8)]}), algorithm)
        world.commit("one", change("one.r", (2, 5)))
        play_out(world)
        world.commit("two", change("two.s", (5, 7), count=-1))
        play_out(world)
        assert guarantee(world) is Guarantee.COMPLETE
        asked[algorithm] = sent(world)
    assert asked == {version_numbers: 1, self_maintaining: 0}, "the delete goes by key in both"


@pytest.mark.parametrize(
    ("new", "queries"),
    [((5, 9, 1, 4), 0), ((5, 7, 1, 3), 1), ((5, 7, 2, 4), 1)],
    ids=["shown only", "read by an expression", "selected"],
)
def test_only_what_is_shown_as_it_is_may_be_modified_in_place(new: tuple[int, ...], queries: int) -> None:
    r, s = relation("one.r(k, a)", key=("k",)), relation("two.s(k, b, chosen, c)", key=("k",))
    sql = "SELECT r.k, r.a, s.b, s.c + 1 AS more FROM one.r r, two.s s WHERE r.a = s.k AND s.chosen > 0"
    world = World(setting(sql, {r: [(1, 5), (2, 5)], s: [(5, 7, 1, 4), (6, 8, 1, 4)]}), version_numbers)
    world.commit("two", {name: {(5, 7, 1, 4): -1, new: 1} for name in change("two.s", new)})
    world.commit("one", change("one.r", (3, 5)))
    before = sent(world)
    play_out(world)
    assert guarantee(world) is Guarantee.COMPLETE
    assert sent(world) - before == queries + 1, "one more for the row of r"


def test_nothing_is_used_that_does_not_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    look = World._look

    def noting(world: World, query: Query[Any]) -> Answered[Any]:
        found.extend(part.steps[0].alias for part in query.parts)
        return look(world, query)

    monkeypatch.setattr(World, "_look", noting)
    looked = 0
    for seed in range(60):
        found.clear()
        world = play(seed, self_maintaining, Chances())
        view, ledger = world.setting.view, world.ledger
        applies = {(one.name, one.of) for one in optimisations(view) if one.applies}
        assert {("rows found in the view", alias) for alias in found} <= applies
        looked += bool(found)
        for tick in range(1, ledger.last_tick + 1):
            parts = telescope(view, changes_of(view, ledger, Tick(tick - 1), Tick(tick)))
            assert {("deletes by key", alias) for alias in parts.removed} <= applies
            assert {("modified in place", alias) for alias in parts.modified} <= applies
    assert looked
