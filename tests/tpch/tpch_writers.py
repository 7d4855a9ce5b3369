"""Writers for TPC-H: the refresh stream, and random updates, deletes and returns of rows in every relation.

New orders come with their lineitems and old ones go with theirs, in one transaction, as the specification's two refresh
functions do it. Dates lie where the queries look. What TPC-H never has comes too: NULLs, prices that change, suppliers
that move to another country, nations that change their region or vanish for a while.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal

from writers import Cursor, Writer, Writers

from headwater.sources.embedded import EmbeddedServer

Step = Callable[[random.Random, Cursor], None]
Value = Callable[[random.Random], object]

SEASONS = tuple(
    date.fromisoformat(day)
    for day in ("1993-08-15", "1993-11-10", "1994-05-20", "1995-02-10", "1995-08-25", "1996-01-10")
)
"""Around these days orders are placed: each is what some query looks for."""
PERUVIAN = (1, 8)
"""Suppliers of the nation that several queries look for."""


def one_of(*values: object) -> Value:
    return lambda chance: chance.choice(values)


def between(low: int, high: int) -> Value:
    return lambda chance: chance.randint(low, high)


def cents(low: int, high: int) -> Value:
    return lambda chance: Decimal(chance.randint(low, high)) / 100


def day(chance: random.Random) -> date:
    return chance.choice(SEASONS) + timedelta(days=chance.randint(-30, 30))


CHANGES: Mapping[str, Mapping[str, Value]] = {
    "region": {"r_name": one_of("AMERICA", "ASIA", "EUROPE", "AFRICA")},
    "nation": {"n_name": one_of("PERU", "IRAN", "KENYA"), "n_regionkey": between(0, 4)},
    "customer": {
        "c_mktsegment": one_of("BUILDING", "MACHINERY", None),
        "c_nationkey": between(0, 24),
        "c_acctbal": cents(-99_999, 999_999),
        "c_phone": one_of("13-111", "31-222", "23-333", "10-444", None),
    },
    "orders": {
        "o_custkey": between(1, 160),
        "o_orderstatus": one_of("F", "O"),
        "o_totalprice": cents(100_000, 50_000_000),
        "o_orderdate": day,
        "o_orderpriority": one_of("1-URGENT", "2-HIGH", "5-LOW", None),
        "o_comment": one_of("special packages requests", "plain", None),
    },
    "lineitem": {
        "l_partkey": between(1, 200),
        "l_suppkey": one_of(*PERUVIAN, 3, 5),
        "l_quantity": cents(100, 5000),
        "l_extendedprice": cents(100_000, 9_000_000),
        "l_discount": cents(0, 10),
        "l_returnflag": one_of("R", "A", "N"),
        "l_shipdate": day,
        "l_receiptdate": day,
        "l_shipmode": one_of("MAIL", "SHIP", "AIR", None),
    },
    "part": {
        "p_name": one_of("forest green", "blue", None),
        "p_brand": one_of("Brand#12", "Brand#23", "Brand#34", "Brand#45"),
        "p_type": one_of("PROMO BRASS", "ECONOMY ANODIZED STEEL", "MEDIUM POLISHED TIN"),
        "p_size": between(1, 50),
        "p_container": one_of("SM BOX", "MED BOX", "LG BOX"),
    },
    "supplier": {
        "s_nationkey": one_of(17, 10, 1, None),
        "s_acctbal": cents(-99_999, 999_999),
        "s_comment": one_of("Customer has Complaints", "fine", None),
    },
    "partsupp": {"ps_availqty": one_of(1, 20, 5000), "ps_supplycost": cents(100, 100_000)},
}


def change(table: str) -> Step:
    """Return a step that changes a column of one row, takes a row away, or brings one back."""
    any_row = f"(SELECT ctid FROM {table} ORDER BY md5(ctid::text || %s) LIMIT 1)"

    def step(chance: random.Random, cursor: Cursor) -> None:
        seed = str(chance.random())
        kind = chance.random()
        if kind < 0.6:
            column, value = chance.choice(tuple(CHANGES[table].items()))
            cursor.execute(f"UPDATE {table} SET {column} = %s WHERE ctid = {any_row}", (value(chance), seed))
        elif kind < 0.8:
            cursor.execute(
                f"WITH taken AS (DELETE FROM {table} WHERE ctid = {any_row} RETURNING *)"
                f"INSERT INTO gone.{table} SELECT * FROM taken",
                (seed,),
            )
        else:
            cursor.execute(
                f"WITH back AS (DELETE FROM gone.{table} WHERE ctid = (SELECT min(ctid) FROM gone.{table}) RETURNING *)"
                f"INSERT INTO {table} SELECT * FROM back ON CONFLICT DO NOTHING"
            )

    return step


def new_order(chance: random.Random, cursor: Cursor) -> None:
    """Bring an order with its lineitems: the first refresh function."""
    key, placed = chance.randint(10_000, 10**9), day(chance)
    cursor.execute(
        "INSERT INTO orders VALUES (%s, %s, %s, %s, %s, %s, 'Clerk', 0, 'new')",
        (
            key,
            chance.randint(1, 160),
            chance.choice("FFO"),
            Decimal(chance.randint(100_000, 50_000_000)) / 100,
            placed,
            chance.choice(("1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW")),
        ),
    )
    for line in range(1, chance.randint(1, 7) + 1):
        shipped = placed + timedelta(days=chance.randint(1, 60))
        cursor.execute(
            "INSERT INTO lineitem VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 'new')",
            (
                key,
                chance.randint(1, 200),
                chance.choice((*PERUVIAN, chance.randint(1, 10))),
                line,
                chance.randint(15, 50),
                Decimal(chance.randint(100_000, 9_000_000)) / 100,
                Decimal(chance.randint(0, 10)) / 100,
                Decimal(chance.randint(0, 8)) / 100,
                chance.choice("RAN"),
                chance.choice("OF"),
                shipped,
                placed + timedelta(days=chance.randint(10, 60)),
                shipped + timedelta(days=chance.randint(1, 30)),
                chance.choice(("NONE", "DELIVER IN PERSON")),
                chance.choice(("MAIL", "SHIP", "AIR", "RAIL")),
            ),
        )


def old_order(chance: random.Random, cursor: Cursor) -> None:
    """Take an order away with its lineitems: the second refresh function."""
    cursor.execute(
        "SELECT o_orderkey FROM orders WHERE o_orderkey >= %s ORDER BY o_orderkey LIMIT 1", (chance.randint(1, 6500),)
    )
    if (found := cursor.fetchone()) is not None:
        cursor.execute("DELETE FROM lineitem WHERE l_orderkey = %s", found)
        cursor.execute("DELETE FROM orders WHERE o_orderkey = %s", found)


def tpch_writers(
    servers: Mapping[str, EmbeddedServer], database: str, *, transactions: int, pause_seconds: float = 0.02
) -> Writers:
    """Return five writers who share so many transactions; one of them holds its transactions open."""
    plans = (
        ("sales", (new_order, old_order), 0.30, 0.0),
        ("sales", (change("lineitem"), change("orders"), change("lineitem")), 0.25, 0.0),
        ("sales", (change("lineitem"), new_order), 0.05, 0.2),
        ("crm", (change("customer"), change("nation"), change("customer"), change("region")), 0.20, 0.0),
        ("supply", (change("part"), change("supplier"), change("partsupp")), 0.20, 0.0),
    )
    return Writers(
        [
            Writer(
                servers[source],
                database,
                steps,
                seed=number,
                transactions=max(1, round(share * transactions)),
                pause_seconds=pause_seconds / share / len(plans) if not held else pause_seconds,
                held_seconds=held,
            )
            for number, (source, steps, share, held) in enumerate(plans)
        ]
    )
