"""What a batch's changes tell of the rows before it, held against the rows before it."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.deltas.lookup import RowRequest, restricted
from headwater.maintenance.known_rows import known_rows
from headwater.model.position import Tick
from headwater.model.relation import Column, ForeignKey, Relation, RelationName
from headwater_lab.in_memory.bag import InMemoryBag, InMemoryKeys, Row

CUSTOMERS = RelationName(source="shop", name="customers")
ORDERS = RelationName(source="shop", name="orders")
COLUMNS = {CUSTOMERS: ("id", "city"), ORDERS: ("number", "customer", "amount")}
RELATIONS = {
    CUSTOMERS: Relation(
        name=CUSTOMERS,
        columns=tuple(Column(name=name, type="int", native="int4") for name in COLUMNS[CUSTOMERS]),
        key=("id",),
    ),
    ORDERS: Relation(
        name=ORDERS,
        columns=tuple(Column(name=name, type="int", native="int4") for name in COLUMNS[ORDERS]),
        key=("number",),
        foreign_keys=(ForeignKey(columns=("customer",), parent=CUSTOMERS, parent_columns=("id",)),),
    ),
}
ASKED = ((CUSTOMERS, ("id",)), (ORDERS, ("number",)), (ORDERS, ("customer",)))
NUMBERS = range(6)


class Shop:
    """Customers and their orders, which a source keeps in order by keys and a reference."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.cities: dict[int, int] = {}
        self.orders: dict[int, tuple[int | None, int]] = {}

    def commit(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self._write(self.random.choice(NUMBERS))

    def _write(self, number: int) -> None:
        random = self.random
        match random.randrange(4):
            case 0:
                self.cities[number] = random.randrange(2)
            case 1:
                for order in [one for one, (customer, _) in self.orders.items() if customer == number]:
                    del self.orders[order]
                self.cities.pop(number, None)
            case 2:
                self.orders[number] = (random.choice([*self.cities, None]), random.randrange(2))
            case _:
                self.orders.pop(number, None)

    def rows(self) -> dict[RelationName, Counter[Row]]:
        return {
            CUSTOMERS: Counter(self.cities.items()),
            ORDERS: Counter((number, *rest) for number, rest in self.orders.items()),
        }


def play(seed: int) -> tuple[int, int]:
    """Return how many keys were asked for, and how many of them were known; what was known must be right."""
    random = Random(seed)
    shop = Shop(random)
    for _ in range(4):
        shop.commit()
    before = shop.rows()
    for _ in range(random.randint(1, 5)):
        shop.commit()
    net = {}
    for name, after in shop.rows().items():
        change = Counter(after)
        change.subtract(before[name])
        net[name] = InMemoryBag.of(COLUMNS[name], [(7, row, count) for row, count in change.items() if count])
    asked = known = 0
    for name, columns in ASKED:
        keys = InMemoryKeys(frozenset((number,) for number in NUMBERS))
        probe = RowRequest(relation=name, wanted=COLUMNS[name], within=restricted(columns, keys))
        found = known_rows(probe, RELATIONS[name], net, COLUMNS)
        place = COLUMNS[name].index(columns[0])
        right = {row: count for row, count in before[name].items() if (row[place],) in found.keys.values}
        assert {row: count for (_, row), count in found.rows.net().entries.items()} == right
        assert all(tick == Tick(7) for tick, _ in found.rows.entries)
        asked, known = asked + len(keys), known + len(found.keys)
    return asked, known


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_what_is_known_was_there_and_nothing_else(seed: int) -> None:
    play(seed)


def test_much_is_known() -> None:
    counts = [play(seed) for seed in range(200)]
    assert sum(known for _, known in counts) > 0.2 * sum(asked for asked, _ in counts)


def test_a_parent_whose_key_is_not_seen_tells_nothing() -> None:
    net = {CUSTOMERS: InMemoryBag.of(("city",), [(7, (1,), 1)]), ORDERS: InMemoryBag.of(COLUMNS[ORDERS], [])}
    probe = RowRequest(
        relation=ORDERS, wanted=COLUMNS[ORDERS], within=restricted(("customer",), InMemoryKeys(frozenset({(1,), (2,)})))
    )
    assert not len(known_rows(probe, RELATIONS[ORDERS], net, {**COLUMNS, CUSTOMERS: ("city",)}).keys)
