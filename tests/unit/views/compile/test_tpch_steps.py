"""The 22 queries of TPC-H: what each becomes, and that it gives what the query gives on DuckDB's own TPC-H rows."""

from __future__ import annotations

from pathlib import Path

import duckdb_extension_tpch
import pytest
from in_duckdb import World, relation

from headwater.views.steps.segments import SegmentedView

QUERIES = Path(__file__).parents[3] / "tpch" / "queries"
MONEY = "decimal(15,2)!"
RELATIONS = (
    relation(
        "crm",
        "customer",
        key=("c_custkey",),
        c_custkey="bigint!",
        c_name="string!",
        c_address="string!",
        c_nationkey="int!",
        c_phone="string!",
        c_acctbal=MONEY,
        c_mktsegment="string!",
        c_comment="string!",
    ),
    relation(
        "crm",
        "nation",
        key=("n_nationkey",),
        n_nationkey="int!",
        n_name="string!",
        n_regionkey="int!",
        n_comment="string!",
    ),
    relation("crm", "region", key=("r_regionkey",), r_regionkey="int!", r_name="string!", r_comment="string!"),
    relation(
        "sales",
        "orders",
        key=("o_orderkey",),
        o_orderkey="bigint!",
        o_custkey="bigint!",
        o_orderstatus="string!",
        o_totalprice=MONEY,
        o_orderdate="date!",
        o_orderpriority="string!",
        o_clerk="string!",
        o_shippriority="int!",
        o_comment="string!",
    ),
    relation(
        "sales",
        "lineitem",
        key=("l_orderkey", "l_linenumber"),
        l_orderkey="bigint!",
        l_partkey="bigint!",
        l_suppkey="bigint!",
        l_linenumber="bigint!",
        l_quantity=MONEY,
        l_extendedprice=MONEY,
        l_discount=MONEY,
        l_tax=MONEY,
        l_returnflag="string!",
        l_linestatus="string!",
        l_shipdate="date!",
        l_commitdate="date!",
        l_receiptdate="date!",
        l_shipinstruct="string!",
        l_shipmode="string!",
        l_comment="string!",
    ),
    relation(
        "supply",
        "supplier",
        key=("s_suppkey",),
        s_suppkey="bigint!",
        s_name="string!",
        s_address="string!",
        s_nationkey="int!",
        s_phone="string!",
        s_acctbal=MONEY,
        s_comment="string!",
    ),
    relation(
        "supply",
        "part",
        key=("p_partkey",),
        p_partkey="bigint!",
        p_name="string!",
        p_mfgr="string!",
        p_brand="string!",
        p_type="string!",
        p_size="int!",
        p_container="string!",
        p_retailprice=MONEY,
        p_comment="string!",
    ),
    relation(
        "supply",
        "partsupp",
        key=("ps_partkey", "ps_suppkey"),
        ps_partkey="bigint!",
        ps_suppkey="bigint!",
        ps_availqty="bigint!",
        ps_supplycost=MONEY,
        ps_comment="string!",
    ),
)

STEPS = {
    1: "Join Group* Join*",
    2: "Join Group* Regroup* Join* Regroup Join*",
    3: "Join Group* Join* Regroup Join*",
    4: "Join Group* Join Group* Join*",
    5: "Join Group* Join*",
    6: "Join Group* Join*",
    7: "Join Group* Join*",
    8: "Join Group* Join*",
    9: "Join Group* Join*",
    10: "Join Group* Join* Regroup Join*",
    11: "Join Group* Join Group* Join*",
    12: "Join Group* Join*",
    13: "Join Join Join Group* Join Union Join Group* Join Group* Join*",
    14: "Join Group* Join*",
    15: "Join Group* Join Group* Regroup* Join*",
    16: "Join Join Union Group* Join Group* Join*",
    17: "Join Group* Join Group* Join*",
    18: "Join Group* Join Group* Join* Regroup Join*",
    19: "Join Group* Join*",
    20: "Join Group* Join Group* Join*",
    21: "Join Group* Join Join Group* Join Union Group* Join* Regroup Join*",
    22: "Join Group* Join Join Group* Join Union Join Group* Join*",
}


@pytest.fixture(scope="module")
def world() -> World:
    world = World(RELATIONS)
    folder = Path(duckdb_extension_tpch.__file__).parent
    [extension] = folder.rglob("*.duckdb_extension")
    world.connection.execute(f"LOAD '{extension}'")
    world.connection.execute("CALL dbgen(sf = 0.01)")
    for name, table in world.tables.items():
        columns = ", ".join(world.catalog[name].column_names)
        world.connection.execute(f"INSERT INTO {table} SELECT {columns} FROM {name.name}")
    return world


def steps(view: SegmentedView) -> str:
    return " ".join(type(s.step).__name__.removesuffix("Step") + "*" * s.is_kept for s in view.segments)


@pytest.mark.parametrize("number", STEPS)
def test_oracle_a_tpch_query_becomes_steps_that_give_what_it_gives(number: int, world: World) -> None:
    sql = (QUERIES / f"q{number:02}.sql").read_text()
    view = world.compile(sql)
    assert steps(view) == STEPS[number]
    assert {reason.code for reason in view.reasons} <= {"HW-260", "HW-265"}
    assert world.evaluate(view) == world.original(sql)
