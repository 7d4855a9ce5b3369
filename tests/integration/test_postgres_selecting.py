"""What PostgreSQL leaves out when it is told which rows are wanted: none of them, and where it is sure, all others."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.deltas.extent import EVERYTHING, WHOLE, Extent, Remainder
from headwater.deltas.on_arrow import remaining
from headwater.deltas.selection import COMPARE, Selection

TABLE = """
    CREATE DOMAIN digits AS text;
    CREATE TABLE things (n int, big bigint, price numeric(10, 2), free numeric, day date, word text, short varchar(9),
                         padded char(6), code uuid, digits digits, flag "char");
    INSERT INTO things
    SELECT nullif(g % 5, 4), g % 3 - 1, nullif(g % 4, 3) * 0.5, g % 3, DATE '2024-02-28' + nullif(g % 3, 2), w, w, w,
           ('00000000-0000-0000-0000-00000000000' || g % 4)::uuid, w, left(w, 1)::"char"
    FROM generate_series(1, 60) g,
         LATERAL (SELECT (ARRAY['a', 'B', 'A', 'ä', 'it''s', '', 'a\\b', 'Z', 'z'])[1 + g % 10] AS w) AS words
"""
VALUES: dict[str, tuple[Any, ...]] = {
    "n": (0, 2),
    "big": (-1, 0),
    "price": (Decimal("0.50"), Decimal("-0.50")),
    "free": (Decimal(1), Decimal(0)),
    "day": (date(2024, 2, 29), date(2024, 2, 28)),
    **dict.fromkeys(("word", "short", "padded", "digits", "flag"), ("a", "it's", "a\\b", "")),
    "code": ("00000000-0000-0000-0000-000000000002", "x"),
}
EXACT = ("n", "big", "price", "free", "day", "word", "short", "padded")


def where(column: str, compare: str, *values: Any) -> Extent:
    return Extent.of([Selection(column=column, compare=compare, values=values)])


def asked(world: Any, rows: Remainder) -> pa.Table:
    relation = world.relations["things"]
    with world.source.snapshot() as snapshot:
        [chunk] = snapshot.chunks(relation, 10**9)
        tables = list(snapshot.read(relation, relation.column_names, chunk, rows))
    return pa.concat_tables([relation.arrow_schema().empty_table(), *tables])


@pytest.fixture
def things(world: Any) -> Any:
    world.execute(TABLE)
    world.declare("things")
    return world


def test_every_comparison_means_the_same_there(things: Any) -> None:
    whole = asked(things, WHOLE)
    for column, values in VALUES.items():
        extents = [where(column, compare, value) for compare in COMPARE for value in values]
        for extent in [*extents, where(column, "equal", *values)]:
            for rows in (Remainder(of=extent), Remainder(of=EVERYTHING, without=extent)):
                found, right = asked(things, rows), remaining(whole, rows)
                assert things.bag(remaining(found, rows)) == things.bag(right), f"{column}: {rows}"
                if column in EXACT:
                    assert found.num_rows == right.num_rows, f"{column}: {rows}"


def test_what_cannot_be_tested_there_lets_rows_through_but_leaves_none_out(things: Any) -> None:
    whole = asked(things, WHOLE)
    few, code = where("n", "less", 2), where("code", "equal", VALUES["code"][0])
    both = Extent.of([*few.any_of[0], *code.any_of[0]])
    assert asked(things, Remainder(of=both)).num_rows == remaining(whole, Remainder(of=few)).num_rows
    assert asked(things, Remainder(of=few.plus(code))).num_rows == whole.num_rows
    assert asked(things, Remainder(of=few, without=code)).num_rows == remaining(whole, Remainder(of=few)).num_rows
    unsaid = where("word", "equal", "a\x00b")
    assert asked(things, Remainder(of=unsaid)).num_rows == whole.num_rows


def test_a_chunk_has_its_own_bounds_too(world: Any) -> None:
    world.execute("CREATE TABLE sales (id int PRIMARY KEY, n int)")
    world.execute("INSERT INTO sales SELECT g, g % 10 FROM generate_series(1, 5000) g; ANALYZE sales")
    world.declare("sales")
    sales = world.relations["sales"]
    rows = Remainder(of=where("n", "less", 3), without=where("n", "equal", 1))
    with world.source.snapshot() as snapshot:
        chunks = snapshot.chunks(sales, 1_000)
        assert len(chunks) > 2
        tables = [table for chunk in chunks for table in snapshot.read(sales, ("id", "n"), chunk, rows)]
    found = pa.concat_tables(tables)
    assert (found.num_rows, len(set(found["id"].to_pylist()))) == (1_000, 1_000)
    assert set(found["n"].to_pylist()) == {0, 2}
