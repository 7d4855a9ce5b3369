"""TPC-H rows without a network: DuckDB's generator from a wheel, copied into three embedded PostgreSQL databases."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import duckdb
import duckdb_extension_tpch
import psycopg

SOURCES = {
    "crm": ("region", "nation", "customer"),
    "sales": ("orders", "lineitem"),
    "supply": ("part", "supplier", "partsupp"),
}
"""Which database has which tables: three that know nothing of each other."""

SCHEMA = {
    "region": "CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name text, r_comment text)",
    "nation": """CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name text, n_regionkey int, n_comment text)""",
    "customer": """CREATE TABLE customer (c_custkey bigint PRIMARY KEY, c_name text, c_address text, c_nationkey int,
        c_phone text, c_acctbal numeric(15,2), c_mktsegment text, c_comment text)""",
    "orders": """CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey bigint, o_orderstatus text,
        o_totalprice numeric(15,2), o_orderdate date, o_orderpriority text, o_clerk text, o_shippriority int,
        o_comment text)""",
    "lineitem": """CREATE TABLE lineitem (l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int,
        l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2),
        l_returnflag text, l_linestatus text, l_shipdate date, l_commitdate date, l_receiptdate date,
        l_shipinstruct text, l_shipmode text, l_comment text, PRIMARY KEY (l_orderkey, l_linenumber))""",
    "part": """CREATE TABLE part (p_partkey bigint PRIMARY KEY, p_name text, p_mfgr text, p_brand text, p_type text,
        p_size int, p_container text, p_retailprice numeric(15,2), p_comment text)""",
    "supplier": """CREATE TABLE supplier (s_suppkey bigint PRIMARY KEY, s_name text, s_address text, s_nationkey int,
        s_phone text, s_acctbal numeric(15,2), s_comment text)""",
    "partsupp": """CREATE TABLE partsupp (ps_partkey bigint, ps_suppkey bigint, ps_availqty int,
        ps_supplycost numeric(15,2), ps_comment text, PRIMARY KEY (ps_partkey, ps_suppkey))""",
}
INDEXES = {
    "nation": ("n_regionkey",),
    "customer": ("c_nationkey",),
    "orders": ("o_custkey",),
    "lineitem": ("l_partkey", "l_suppkey"),
    "supplier": ("s_nationkey",),
    "partsupp": ("ps_suppkey",),
}
ORDER_KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}


def generate(scale: float, folder: Path, one_order_in: int = 1) -> dict[str, Path]:
    """Write the tables as CSV files, once per folder; of the orders and their lineitems only one in so many."""
    files = {name: folder / f"{name}.csv" for name in SCHEMA}
    if all(file.exists() for file in files.values()):
        return files
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        extension = next(Path(duckdb_extension_tpch.__file__).parent.rglob("tpch.duckdb_extension*"))
        connection.execute(f"LOAD '{extension}'")
        connection.execute(f"CALL dbgen(sf = {scale})")
        for name, file in files.items():
            kept = f"WHERE {ORDER_KEYS[name]} % {one_order_in} = 0" if name in ORDER_KEYS else ""
            once = "DISTINCT ON (ps_partkey, ps_suppkey)" if name == "partsupp" else ""  # below scale 0.002 it repeats
            connection.execute(f"COPY (SELECT {once} * FROM {name} {kept}) TO '{file}' (FORMAT csv, HEADER false)")
    return files


def load(url: str, table: str, file: Path) -> None:
    """Create and fill one table, with its indexes and statistics."""
    create(url, table)
    with psycopg.connect(url, autocommit=True) as connection:
        fill(connection, table, file)
        connection.execute(f"ANALYZE {table}")


def create(url: str, table: str) -> None:
    """Create one table, with its indexes."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SCHEMA[table])
        for column in INDEXES.get(table, ()):
            connection.execute(f"CREATE INDEX ON {table} ({column})")


def fill(connection: psycopg.Connection, table: str, file: Path) -> None:
    """Copy a file's rows into a table."""
    with file.open("rb") as rows, connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
        while chunk := rows.read(1 << 20):
            copy.write(chunk)


def cache_folder() -> Path:
    return Path(tempfile.gettempdir()) / "headwater-bench"


def spark_columns(table: str) -> str:
    """Return a table's columns as Spark names their types.

    >>> spark_columns("region")
    'r_regionkey int, r_name string, r_comment string'
    """
    written = SCHEMA[table].split("(", 1)[1].split(", PRIMARY KEY (")[0]
    typed = re.findall(r"(\w+) (bigint|int|text|date|numeric\(15,2\))", written)
    spark = {"text": "string", "numeric(15,2)": "decimal(15,2)"}
    return ", ".join(f"{name} {spark.get(kind, kind)}" for name, kind in typed)
