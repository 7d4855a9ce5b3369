"""What need not be read for values that are looked for: only what surely holds none of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.storage.data_file import describe
from headwater.storage.sought_values import SoughtValues

NEVER = {"x": (100, 200)}
UTC_TIME = pa.timestamp("us", tz="UTC")
PAST_PYTHON = pa.array([0, 4_000_000], pa.int32()).cast(pa.date32())


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, None]),
        pa.array([Decimal(1)]),
        pa.array([1.5, float("nan")]),
        pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], UTC_TIME),
        pa.array([True]),
        PAST_PYTHON,
    ],
)
def test_of_other_values_everything_is_read(values: pa.Array) -> None:
    assert SoughtValues.of_keys(pa.table({"x": values})).may_be_within(NEVER.get)
    assert not SoughtValues.of_keys(pa.table({"x": [1]})).may_be_within(NEVER.get)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (pa.array([3, 1, None]), 1, 3),
        (pa.array(["Zürich", "", "Århus"]), "", "Århus"),
        (pa.array([dt.date(2026, 1, 2), dt.date(2026, 1, 1)]), "2026-01-01", "2026-01-02"),
        (pa.array([None, None], pa.int64()), None, None),
        (PAST_PYTHON, None, None),
        (pa.array([Decimal(1)]), None, None),
        (pa.array([float("nan")]), None, None),
        (pa.array(["a" * 5000]), None, None),
    ],
)
def test_bounds_are_noted_where_all_compare_alike(tmp_path: Path, values: pa.Array, low: object, high: object) -> None:
    pq.write_table(pa.table({"x": values, "y": values}), tmp_path / "one.parquet")
    file = describe(str(tmp_path), "one.parquet", ["x"])
    assert (file.lowest.get("x"), file.highest.get("x")) == (low, high)
    assert file.nulls == {"x": values.null_count}
