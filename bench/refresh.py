"""Changes to all of TPC-H, by the number of rows: orders come and go with their lineitems, and rows everywhere change.

Half of the rows are orders with lineitems, copied under new keys or deleted; a quarter are lineitems that change; the
rest are customers, parts, stocks and suppliers that change. An update counts as two changed rows.
"""

from __future__ import annotations

import random

import psycopg

from bench.stream import Change

TRANSACTIONS = 50
"""A batch has about so many at most, of a dozen changed rows at least."""

STRIDE = 100_000_000
"""More than any order's key; copies made together have keys that are so much larger, or twice, and so on."""

COPY_ORDERS = """INSERT INTO orders SELECT o_orderkey + %s, o_custkey, o_orderstatus, o_totalprice, o_orderdate,
    o_orderpriority, o_clerk, o_shippriority, o_comment FROM orders WHERE o_orderkey = ANY(%s)"""
COPY_LINES = """INSERT INTO lineitem SELECT l_orderkey + %s, l_partkey, l_suppkey, l_linenumber, l_quantity,
    l_extendedprice, l_discount, l_tax, l_returnflag, l_linestatus, l_shipdate, l_commitdate, l_receiptdate,
    l_shipinstruct, l_shipmode, l_comment FROM lineitem WHERE l_orderkey = ANY(%s)"""
CHANGE_LINES = """UPDATE lineitem SET l_quantity = 1 + (l_quantity + 6) %% 50,
    l_discount = (l_discount + 0.01) %% 0.11 WHERE l_orderkey = ANY(%s)"""
CHANGE_STOCKS = """UPDATE partsupp SET ps_supplycost = 1 + (ps_supplycost + 36) %% 1000,
    ps_availqty = 1 + (ps_availqty + 96) %% 9999 WHERE ps_partkey = ANY(%s)"""
OTHERS = (
    ("crm", "customer", "UPDATE customer SET c_acctbal = c_acctbal + 1 WHERE c_custkey = ANY(%s)", 1),
    ("supply", "part", "UPDATE part SET p_size = 1 + (p_size + 6) %% 50 WHERE p_partkey = ANY(%s)", 1),
    ("supply", "part", CHANGE_STOCKS, 4),
    ("supply", "supplier", "UPDATE supplier SET s_acctbal = s_acctbal + 1 WHERE s_suppkey = ANY(%s)", 1),
)
"""Source, the table whose keys are drawn, the statement, and how many rows it changes per key."""


class Refresh:
    """Makes transactions that are valid in the order given."""

    def __init__(self, seed: int, connections: dict[str, psycopg.Connection]) -> None:
        self._random = random.Random(seed)
        counted = connections["sales"].execute("SELECT l_orderkey, count(*) FROM lineitem GROUP BY 1").fetchall()
        self._lines = {key: int(lines) for key, lines in counted}
        self._orders = list(self._lines)
        self._offset = max(self._orders) // STRIDE * STRIDE
        self._counts = {(source, table): self._count(connections[source], table) for source, table, *_ in OTHERS}
        stocks = 4 * self._counts["supply", "part"]
        self.row_count = sum(self._counts.values()) + stocks + len(self._orders) + sum(self._lines.values())

    @staticmethod
    def _count(connection: psycopg.Connection, table: str) -> int:
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        assert found is not None
        return int(found[0])

    def take(self, rows: int) -> list[Change]:
        """Return transactions that change about so many rows."""
        changes: list[Change] = []
        per_transaction = max(12, rows // TRANSACTIONS)
        left = rows
        while left > 0:
            changes.append(self._one(min(per_transaction, left)))
            left -= changes[-1].row_count
        return changes

    def _one(self, rows: int) -> Change:
        kind = self._random.random()
        if kind < 0.25:
            return self._copy(max(1, rows // 5))
        if kind < 0.50:
            return self._delete(max(1, rows // 5))
        if kind < 0.75:
            return self._lines_change(max(1, rows // 8))
        source, table, statement, each = self._random.choice(OTHERS)
        most = self._counts[source, table]
        keys = self._random.sample(range(1, most + 1), min(most, max(1, rows // (2 * each))))
        return Change(source, ((statement, (keys,)),), 2 * each * len(keys))

    def _copy(self, count: int) -> Change:
        keys = self._draw_originals(count)
        self._offset += STRIDE
        for key in keys:
            self._lines[key + self._offset] = self._lines[key]
            self._orders.append(key + self._offset)
        statements = ((COPY_ORDERS, (self._offset, keys)), (COPY_LINES, (self._offset, keys)))
        return Change("sales", statements, count + sum(self._lines[key] for key in keys))

    def _draw_originals(self, count: int) -> list[int]:
        """Draw orders that are no copies: copies of copies would have keys twice as large each time."""
        drawn: set[int] = set()
        while len(drawn) < count:
            key = self._random.choice(self._orders)
            if key < STRIDE:
                drawn.add(key)
        return sorted(drawn)

    def _delete(self, count: int) -> Change:
        keys = [self._take_order() for _ in range(count)]
        statements = (
            ("DELETE FROM lineitem WHERE l_orderkey = ANY(%s)", (keys,)),
            ("DELETE FROM orders WHERE o_orderkey = ANY(%s)", (keys,)),
        )
        return Change("sales", statements, count + sum(self._lines.pop(key) for key in keys))

    def _take_order(self) -> int:
        """Take an order out: the last one comes into its place."""
        place = self._random.randrange(len(self._orders))
        self._orders[place], self._orders[-1] = self._orders[-1], self._orders[place]
        return self._orders.pop()

    def _lines_change(self, count: int) -> Change:
        keys = self._random.sample(self._orders, count)
        return Change("sales", ((CHANGE_LINES, (keys,)),), 2 * sum(self._lines[key] for key in keys))
