"""A stream of small transactions over customers, orders and lineitems; an update counts as two changed rows.

40 % two new orders with their lineitems, 30 % delete two orders with theirs, 15 % five customers change segment, 15 %
five lineitems change discount. The hot stream updates one customer and one of its orders over and over.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psycopg

SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
LINES = 4

NEW_ORDER = "INSERT INTO orders VALUES (%s, %s, 'O', %s, %s, '1-URGENT', 'Clerk', 0, 'new')"
NEW_LINE = """INSERT INTO lineitem VALUES (%s, %s, 1, %s, %s, %s, %s, 0.02, 'N', 'O', '1998-01-01', '1998-01-01',
    '1998-01-01', 'NONE', 'AIR', 'new')"""


@dataclass(frozen=True, slots=True)
class Change:
    """One transaction: which source, its statements, how many rows it changes."""

    source: str
    statements: tuple[tuple[str, tuple[object, ...]], ...]
    row_count: int


class Stream:
    """Makes transactions that are valid in the order given."""

    def __init__(self, seed: int, customers: int, order_keys: Sequence[int]) -> None:
        self._random = random.Random(seed)
        self._customers = customers
        self._orders = list(order_keys)
        self._next_order = max(order_keys) + 1

    def take(self, count: int) -> list[Change]:
        return [self._one() for _ in range(count)]

    def hot(self, count: int) -> list[Change]:
        """Update one customer and one order in turn, so that both sides of a join have many versions of one key."""
        key = self._orders[-1]
        return [
            Change("crm", (("UPDATE customer SET c_mktsegment = %s WHERE c_custkey = 1", (SEGMENTS[i // 2 % 5],)),), 2)
            if i % 2
            else Change(
                "sales", (("UPDATE orders SET o_custkey = 1, o_totalprice = %s WHERE o_orderkey = %s", (i, key)),), 2
            )
            for i in range(count)
        ]

    def _one(self) -> Change:
        kind = self._random.random()
        if kind < 0.40:
            return self._insert()
        if kind < 0.70:
            return self._delete()
        if kind < 0.85:
            return self._segments()
        return self._discounts()

    def _insert(self) -> Change:
        statements: list[tuple[str, tuple[object, ...]]] = []
        for _ in range(2):
            key, self._next_order = self._next_order, self._next_order + 1
            customer = self._random.randint(1, self._customers)
            date = f"199{self._random.randint(2, 8)}-{self._random.randint(1, 12):02}-{self._random.randint(1, 28):02}"
            statements.append((NEW_ORDER, (key, customer, self._random.randint(1, 10**6), date)))
            for line in range(LINES):
                price, discount = self._random.randint(1, 10**4), self._random.randint(0, 10) / 100
                statements.append((NEW_LINE, (key, self._random.randint(1, 1000), line, 5, price, discount)))
            self._orders.append(key)
        return Change("sales", tuple(statements), 2 * (1 + LINES))

    def _delete(self) -> Change:
        keys = [self._orders.pop(self._random.randrange(len(self._orders))) for _ in range(2)]
        return Change(
            "sales",
            (
                ("DELETE FROM lineitem WHERE l_orderkey = ANY(%s)", (keys,)),
                ("DELETE FROM orders WHERE o_orderkey = ANY(%s)", (keys,)),
            ),
            2 * (1 + LINES),
        )

    def _segments(self) -> Change:
        keys = [self._random.randint(1, self._customers) for _ in range(5)]
        segment = self._random.choice(SEGMENTS)
        return Change(
            "crm", (("UPDATE customer SET c_mktsegment = %s WHERE c_custkey = ANY(%s)", (segment, keys)),), 10
        )

    def _discounts(self) -> Change:
        keys = [self._random.choice(self._orders) for _ in range(5)]
        discount = self._random.randint(0, 10) / 100
        statement = "UPDATE lineitem SET l_discount = %s WHERE l_orderkey = ANY(%s) AND l_linenumber = 1"
        return Change("sales", ((statement, (discount, keys)),), 10)


def apply(connections: dict[str, psycopg.Connection], changes: Sequence[Change]) -> int:
    """Run the transactions in order, pipelined per source; return how many rows they change."""
    for source, run in _runs(changes):
        connection = connections[source]
        with connection.pipeline():
            for change in run:
                connection.execute("BEGIN")
                for statement, values in change.statements:
                    connection.execute(statement, values)
                connection.execute("COMMIT")
    return sum(change.row_count for change in changes)


def _runs(changes: Sequence[Change]) -> Iterator[tuple[str, list[Change]]]:
    """Yield consecutive changes of one source together."""
    run: list[Change] = []
    for change in changes:
        if run and run[0].source != change.source:
            yield run[0].source, run
            run = []
        run.append(change)
    if run:
        yield run[0].source, run
