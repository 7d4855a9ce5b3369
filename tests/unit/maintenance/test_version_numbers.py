"""Version numbers: paper 001's examples, the stories it leaves out, and what its improvements cost and save."""

from __future__ import annotations

from random import Random

import pytest
from small_views import change, guarantee, name_of, play_out, relation, sent, setting

from headwater.maintenance.published.irrelevant import Reference, references
from headwater.maintenance.published.messages import Algorithm, changes_of
from headwater.maintenance.published.telescope import telescope
from headwater.maintenance.published.version_numbers import version_numbers
from headwater.maintenance.visit_plan import plan
from headwater.maintenance.visits import layout_of
from headwater.model.guarantee import Guarantee
from headwater.model.position import Tick
from headwater_lab.chance import Chances, play
from headwater_lab.ledger import Ledger, LedgerEntry, Rows
from headwater_lab.literal.completion_order_install import COMPLETION_ORDER_INSTALL
from headwater_lab.literal.initial_versions import INITIAL_VERSIONS_AFTER, INITIAL_VERSIONS_BEFORE
from headwater_lab.literal.no_follow_up import NO_FOLLOW_UP
from headwater_lab.literal.versions_on_tuples import VERSIONS_ON_TUPLES
from headwater_lab.world import Installed, World, WorldSetting


def _example_1() -> WorldSetting:
    """R1 holds (a1, b1), R2 is empty; V = π_C (R1 ⋈ R2)."""
    r1, r2 = relation("one.r1(a, b)", key=("a",)), relation("two.r2(b, c)", key=("b",))
    return setting("SELECT r2.c FROM one.r1 r1, two.r2 r2 WHERE r1.b = r2.b", {r1: [(1, 1)], r2: []})


def test_example_1_an_interfering_insert_counts_once() -> None:
    world = World(_example_1(), version_numbers)
    world.commit("one", change("one.r1", (2, 1)))
    world.deliver("one")
    world.commit("two", change("two.r2", (1, 7)))
    world.serve("two")
    play_out(world)
    assert world.state == {(7,): 2}
    assert guarantee(world) is Guarantee.COMPLETE


def test_example_2_one_sub_query_goes_to_both_relations_of_a_source() -> None:
    r1 = relation("one.r1(a, b, c)", key=("a",))
    r2, r3 = relation("two.r2(c, d, e)", key=("c",)), relation("two.r3(e, f, g)", key=("e",))
    rows = {r1: [(1, 1, 1)], r2: [(1, 1, 1), (2, 2, 2)], r3: [(1, 1, 1), (2, 2, 2)]}
    sql = "SELECT r1.b, r1.c, r3.f FROM one.r1 r1, two.r2 r2, two.r3 r3 WHERE r1.c = r2.c AND r2.e = r3.e"
    world = World(setting(sql, rows), version_numbers)
    world.commit("one", change("one.r1", (2, 2, 2), (3, 3, 1)))
    play_out(world)
    assert world.state == {(1, 1, 1): 1, (3, 1, 1): 1, (2, 2, 2): 1}
    assert guarantee(world) is Guarantee.COMPLETE
    assert sent(world) == 1


def _empty_answer(algorithm: Algorithm) -> World:
    """Erratum 1: R1 = {(0,0)}, R2 = {}; R2 +(0,1), and R1 -(0,0) before the query arrives."""
    r1, r2 = relation("one.r1(a, b)"), relation("two.r2(b, c)")
    sql = "SELECT r1.a, r1.b, r2.c FROM one.r1 r1, two.r2 r2 WHERE r1.b = r2.b"
    world = World(setting(sql, {r1: [(0, 0)], r2: []}), algorithm)
    world.commit("two", change("two.r2", (0, 1)))
    world.deliver("two")
    world.commit("one", change("one.r1", (0, 0), count=-1))
    world.serve("one")
    play_out(world)
    return world


def test_an_empty_answer_has_a_version_too() -> None:
    ours, theirs = _empty_answer(version_numbers), _empty_answer(VERSIONS_ON_TUPLES.run)
    assert [len(state) for state in ours.shown_states()] == [0, 1, 0]
    assert guarantee(ours) is Guarantee.COMPLETE
    assert theirs.state == {(0, 0, 1): -1}
    assert guarantee(theirs) is Guarantee.NONE


def _hidden_way_on(algorithm: Algorithm) -> World:
    """§3.2: V = S ⋈ R1 ⋈ R2, R1 and R2 at one source; S +(1,0), and R1 -(0,1) before the query arrives."""
    s, r1, r2 = relation("one.s(x, y)"), relation("two.r1(y, z)"), relation("two.r2(z, w)")
    sql = "SELECT s.x, r1.y, r2.z FROM one.s s, two.r1 r1, two.r2 r2 WHERE s.y = r1.y AND r1.z = r2.z"
    world = World(setting(sql, {s: [], r1: [(0, 1)], r2: [(1, 0)]}), algorithm)
    world.commit("one", change("one.s", (1, 0)))
    world.deliver("one")
    world.commit("two", change("two.r1", (0, 1), count=-1))
    world.serve("two")
    play_out(world)
    return world


def test_a_row_that_is_put_back_is_followed_to_the_other_relations_of_its_source() -> None:
    ours, theirs = _hidden_way_on(version_numbers), _hidden_way_on(NO_FOLLOW_UP.run)
    assert guarantee(ours) is Guarantee.COMPLETE
    assert guarantee(theirs) is Guarantee.NONE
    assert sent(ours) == sent(theirs) + 1


def test_a_delete_that_was_delivered_before_the_query_was_sent_needs_no_follow_up() -> None:
    s, r1, r2 = relation("one.s(x, y)"), relation("two.r1(y, z)"), relation("two.r2(z, w)")
    sql = "SELECT s.x, r1.y, r2.z FROM one.s s, two.r1 r1, two.r2 r2 WHERE s.y = r1.y AND r1.z = r2.z"
    beginning = setting(sql, {s: [], r1: [(0, 1)] + [(k, k) for k in range(5, 15)], r2: [(1, 0)]})
    world = World(beginning, version_numbers)
    for k in range(5, 13):
        world.commit("two", change("two.r1", (k, k), count=-1))
        world.deliver("two")
    world.commit("one", change("one.s", (1, 0)))
    world.deliver("one")
    world.commit("two", change("two.r1", (0, 1), count=-1))
    world.deliver("two")
    before = sent(world)
    assert before == 16, "each delete asks both sources at once"
    play_out(world)
    assert guarantee(world) is Guarantee.COMPLETE
    assert sent(world) == before + 1 + 2


def _second_ends_first(algorithm: Algorithm) -> World:
    r, s, t = relation("one.r(a, b)"), relation("two.s(b, c)"), relation("three.t(c, d)")
    sql = "SELECT r.a, s.b, t.d FROM one.r r, two.s s, three.t t WHERE r.b = s.b AND s.c = t.c"
    world = World(setting(sql, {r: [(1, 1)], s: [(1, 1)], t: [(1, 1)]}), algorithm)
    world.commit("one", change("one.r", (2, 1)))
    world.deliver("one")
    world.commit("three", change("three.t", (1, 2), count=1))
    world.deliver("three")
    world.serve("two")
    world.serve("two")
    world.deliver("two")
    world.deliver("two")
    world.serve("one")
    world.deliver("one")
    play_out(world)
    return world


def test_installs_follow_the_order_of_acceptance() -> None:
    ours, theirs = _second_ends_first(version_numbers), _second_ends_first(COMPLETION_ORDER_INSTALL.run)
    assert guarantee(ours) is Guarantee.COMPLETE
    assert guarantee(theirs) is Guarantee.CONVERGENT
    assert [event.upto for event in theirs.events if isinstance(event, Installed)] == [2, 1]


@pytest.mark.parametrize(
    "variant",
    [VERSIONS_ON_TUPLES, INITIAL_VERSIONS_BEFORE, INITIAL_VERSIONS_AFTER, NO_FOLLOW_UP, COMPLETION_ORDER_INSTALL],
    ids=lambda variant: variant.name,
)
def test_the_literal_readings_fail_by_chance_too(variant: object) -> None:
    chances = Chances(delete=0.6, transaction_count=16, reference=0.1, shown_keys=0.1, by_key=0.1)
    found = [guarantee(play(seed, variant.run, chances)) for seed in range(40)]  # type: ignore[attr-defined]
    assert min(found) < Guarantee.STRONG


def _starts(world: World, tick: int) -> list[frozenset[str]]:
    changed = world.ledger.entries[tick - 1].changes
    return [frozenset({one.alias}) for one in world.setting.view.occurrences if one.relation.name in changed]


def test_without_concurrent_transactions_it_costs_the_visits_of_its_plan_and_with_them_no_more_than_sweep() -> None:
    chances = Chances(theta=0.0)
    for seed in range(80):
        busy = play(seed, version_numbers, chances)
        others = len(busy.setting.view.occurrences) - 1
        assert sent(busy) <= sum(len(_starts(busy, tick)) * others for tick in range(1, busy.ledger.last_tick + 1))
        calm = World(busy.setting, version_numbers)
        layout = layout_of(busy.setting.view, closure=True)
        for tick, entry in enumerate(busy.ledger.entries, start=1):
            before = sent(calm)
            calm.commit(entry.source, entry.changes)
            play_out(calm)
            assert sent(calm) - before <= (len(plan(layout, starts)) if (starts := _starts(calm, tick)) else 0)
        assert guarantee(calm) is Guarantee.COMPLETE


def test_a_modification_is_one_change() -> None:
    world = World(_orders(), version_numbers)
    world.commit("store", {name_of("store.goods"): {(1, 5): -1, (1, 6): 1}})
    play_out(world)
    assert guarantee(world) is Guarantee.COMPLETE
    assert sent(world) == 1


def _orders(*, parents: bool = True, outputs: str = "o.total, c.city") -> WorldSetting:
    """Orders of customers, all at one source, and the goods they are of, at another."""
    customers = relation("shop.customers(id, city)", key=("id",))
    orders = relation(
        "shop.orders(id, customer, good, total)",
        key=("id",),
        parents={"customer": ("shop.customers", "id")} if parents else None,
    )
    goods = relation("store.goods(good, price)")
    sql = (
        f"SELECT {outputs}, g.price FROM shop.orders o, shop.customers c, store.goods g "
        "WHERE o.customer = c.id AND o.good = g.good"
    )
    rows = {customers: [(1, 1), (2, 2)], orders: [(1, 1, 1, 10), (2, 2, 1, 20)], goods: [(1, 5)]}
    return setting(sql, rows)


def test_which_references_count_is_read_from_the_catalog() -> None:
    assert references(_orders().view) == (Reference(parent="c", child="o"),)
    assert references(_orders(parents=False).view) == ()


@pytest.mark.parametrize(
    ("change_of_customers", "queries"),
    [({(3, 3): 1}, 0), ({(2, 2): -1}, 2), ({(2, 2): -1, (2, 3): 1}, 2)],
    ids=["insert", "delete with its orders", "modification"],
)
def test_what_a_foreign_key_makes_irrelevant_asks_nobody(change_of_customers: dict[object, int], queries: int) -> None:
    world = World(_orders(), version_numbers)
    changes = {name: change_of_customers for name in world.setting.catalog if name.name == "customers"}
    if change_of_customers == {(2, 2): -1}:
        changes |= change("shop.orders", (2, 2, 1, 20), count=-1)  # type: ignore[operator]
    world.commit("shop", changes)  # type: ignore[arg-type]
    play_out(world)
    assert guarantee(world) is Guarantee.COMPLETE
    assert sent(world) == queries


@pytest.mark.parametrize("count", [1, -1], ids=["both come", "both go"])
def test_the_order_inside_a_transaction_puts_the_parent_on_the_right_side(count: int) -> None:
    world = World(_orders(), version_numbers)
    both = change("shop.customers", (2, 2) if count < 0 else (3, 3), count=count) | change(  # type: ignore[operator]
        "shop.orders", (2, 2, 1, 20) if count < 0 else (3, 3, 1, 30), count=count
    )
    parts = telescope(world.setting.view, _bags(world, both))
    assert parts.computed == ("o",)
    assert parts.order.index("c") < parts.order.index("o") if count > 0 else True
    assert parts.order.index("o") < parts.order.index("c") if count < 0 else True
    world.commit("shop", both)
    play_out(world)
    assert guarantee(world) is Guarantee.COMPLETE


def _bags(world: World, changes: Rows) -> dict[object, object]:
    ledger = Ledger(world.setting.catalog)
    ledger.append(LedgerEntry(source="shop", version=1, changes=changes))
    return dict(changes_of(world.setting.view, ledger, Tick(0), Tick(1)))


def test_deletes_take_rows_out_by_key_where_the_view_holds_it() -> None:
    world = World(_orders(outputs="o.id, o.total"), version_numbers)
    world.commit("shop", change("shop.orders", (1, 1, 1, 10), count=-1))
    play_out(world)
    assert guarantee(world) is Guarantee.COMPLETE
    assert sent(world) == 0


def test_foreign_keys_keep_it_complete_and_save_queries() -> None:
    asked = {}
    for parents in (True, False):
        total = 0
        for seed in range(60):
            world = _busy_shop(Random(seed), _orders(parents=parents))
            assert guarantee(world) is Guarantee.COMPLETE, seed
            total += sent(world)
        asked[parents] = total
    assert asked[True] < asked[False]


def _busy_shop(random: Random, beginning: WorldSetting) -> World:
    """Play transactions that keep the reference, each of one or more relations of the shop, in any interleaving."""
    world = World(beginning, version_numbers)
    remaining = 14
    while remaining or not world.is_quiet:
        moves = [("serve", source) for source, waiting in world.queries.items() if waiting]
        moves += [("deliver", source) for source, waiting in world.channels.items() if waiting]
        moves += [("commit", "shop"), ("commit", "store")] if remaining else []
        move, source = random.choice(moves)
        if move == "serve":
            world.serve(source)
        elif move == "deliver":
            world.deliver(source)
        else:
            remaining -= 1
            changes = _goods(random) if source == "store" else _shop_transaction(random, world)
            if changes:
                world.commit(source, changes)
    return world


def _goods(random: Random) -> Rows:
    return change("store.goods", (random.randrange(2), random.randrange(9)))


def _shop_transaction(random: Random, world: World) -> Rows:
    rows = {name.name: dict(own) for name, own in world.rows.items() if name.source == "shop"}
    customers = {row[0]: row for row in rows["customers"]}
    orders = {row[0]: row for row in rows["orders"]}
    for _ in range(random.randint(1, 3)):
        draw = random.random()
        customer = random.randrange(6)
        if draw < 0.3:
            customers.setdefault(customer, (customer, random.randrange(3)))
        elif draw < 0.5:
            customers.pop(customer, None)
            orders = {key: row for key, row in orders.items() if row[1] != customer}
        elif draw < 0.6 and customer in customers:
            customers[customer] = (customer, random.randrange(3))
        elif draw < 0.9 and customers:
            key = random.randrange(8)
            orders[key] = (key, random.choice(sorted(customers)), random.randrange(2), random.randrange(9))
        else:
            orders.pop(random.randrange(8), None)
    after = {"customers": customers.values(), "orders": orders.values()}
    changes = {}
    for name, own in world.rows.items():
        if name.source == "shop":
            delta = {row: -1 for row in own if row not in after[name.name]}
            delta |= {row: 1 for row in after[name.name] if row not in own}
            if delta:
                changes[name] = delta
    return changes
