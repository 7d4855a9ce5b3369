"""TPC-H rows without a network: DuckDB's generator from a wheel, copied into embedded PostgreSQL servers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import duckdb_extension_tpch
import psycopg

SCHEMA = {
    "customer": """CREATE TABLE customer (c_custkey bigint PRIMARY KEY, c_name text, c_address text, c_nationkey int,
        c_phone text, c_acctbal numeric(15,2), c_mktsegment text, c_comment text)""",
    "orders": """CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey bigint, o_orderstatus text,
        o_totalprice numeric(15,2), o_orderdate date, o_orderpriority text, o_clerk text, o_shippriority int,
        o_comment text)""",
    "lineitem": """CREATE TABLE lineitem (l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int,
        l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2),
        l_returnflag text, l_linestatus text, l_shipdate date, l_commitdate date, l_receiptdate date,
        l_shipinstruct text, l_shipmode text, l_comment text, PRIMARY KEY (l_orderkey, l_linenumber))""",
}
INDEXES = {"orders": "CREATE INDEX ON orders (o_custkey)"}


def generate(scale: float, folder: Path) -> dict[str, Path]:
    """Write the tables as CSV files, once per scale factor."""
    files = {name: folder / f"{name}.csv" for name in SCHEMA}
    if all(file.exists() for file in files.values()):
        return files
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        extension = next(Path(duckdb_extension_tpch.__file__).parent.rglob("tpch.duckdb_extension*"))
        connection.execute(f"LOAD '{extension}'")
        connection.execute(f"CALL dbgen(sf = {scale})")
        for name, file in files.items():
            connection.execute(f"COPY {name} TO '{file}' (FORMAT csv, HEADER false)")
    return files


def load(url: str, table: str, file: Path) -> None:
    """Create and fill one table, with its indexes and statistics."""
    with psycopg.connect(url, autocommit=True) as connection, file.open("rb") as rows:
        connection.execute(SCHEMA[table])
        with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
            while chunk := rows.read(1 << 20):
                copy.write(chunk)
        if table in INDEXES:
            connection.execute(INDEXES[table])
        connection.execute(f"ANALYZE {table}")


def cache_folder() -> Path:
    return Path(tempfile.gettempdir()) / "headwater-bench"
