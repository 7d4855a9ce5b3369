"""Rows are found by an index as by looking at every one of them."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from volume import volume

from headwater.deltas.indexed_rows import IndexedRows

SCHEMA = pa.schema(
    [("i", pa.int32()), ("s", pa.string()), ("m", pa.decimal128(9, 2)), ("t", pa.date32()), ("f", pa.float64())]
)
VALUES: tuple[tuple[object, ...], ...] = (
    (None, *range(-3, 9)),
    (None, "", "a", "ä", "b"),
    (None, Decimal("1.50"), Decimal("2.00")),
    (None, date(2026, 1, 1), date(1, 1, 1)),
    (None, 0.5, 1e300),
)


def random_rows(random: Random, count: int) -> pa.Table:
    columns = [
        pa.array([random.choice(values) for _ in range(count)], field.type)
        for values, field in zip(VALUES, SCHEMA, strict=True)
    ]
    return pa.table(columns, SCHEMA)


@pytest.mark.parametrize("seed", range(volume(40, 1_000)))
def test_oracle_rows_with_keys(seed: int) -> None:
    random = Random(seed)
    parts = [random_rows(random, random.choice((0, 1, 30))) for _ in range(3)]
    table = pa.concat_tables(parts)
    rows = IndexedRows(table)
    for _ in range(5):
        columns = tuple(random.sample(SCHEMA.names, random.choice((1, 1, 2, 3))))
        keys = random_rows(random, random.choice((0, 1, 4, 40))).select(list(columns))
        wanted = {tuple(key.values()) for key in keys.to_pylist()}
        right = [row for row in table.to_pylist() if tuple(row[name] for name in columns) in wanted]
        found = rows.matching(columns, keys).to_pylist()
        assert sorted(map(repr, found)) == sorted(map(repr, right))
