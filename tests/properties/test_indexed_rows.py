"""Rows are found by an index as by looking at every one of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import pyarrow as pa
import pytest
from volume import volume

from headwater.deltas.indexed_rows import IndexedRows

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("s", pa.string()),
        ("m", pa.decimal128(9, 2)),
        ("t", pa.date32()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("x", pa.binary()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("long", pa.int64()),
    ]
)
VALUES: tuple[tuple[object, ...], ...] = (
    (None, *range(-3, 9)),
    (None, "", "a", "a\0", "ä", "12345678", "123456789", "9" * 30),
    (None, Decimal("1.50"), Decimal("2.00")),
    (None, date(2026, 1, 1), date(1, 1, 1)),
    (None, 0.0, 0.5, 1e300),
    (None, True, False),
    (None, b"", b"\0", b"\0\0", b"a"),
    (None, datetime(2026, 1, 1, tzinfo=UTC), datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
    (None, 0, -1, 2**62),
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
