"""Rows are put in order here as Spark does it, whatever their type."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater.deltas.on_spark import run_stamped
from headwater.deltas.order import By, in_order
from headwater.views.steps.computed import order_text

VALUES: dict[str, tuple[pa.DataType, list[object]]] = {
    "tinyint": (pa.int8(), [3, None, -128, 127]),
    "smallint": (pa.int16(), [3, None, -7, 2**15 - 1]),
    "int": (pa.int32(), [3, None, -7, 0, 2**31 - 1]),
    "bigint": (pa.int64(), [2**62, None, -(2**63), 1]),
    "double": (pa.float64(), [math.nan, None, math.inf, -math.inf, -1.5, 5e-324, 1e308, 0.0]),
    "float": (pa.float32(), [math.nan, None, math.inf, -math.inf, -1.5, 0.25]),
    "decimal": (pa.decimal128(38, 18), [Decimal("1e19"), None, Decimal("-1e-18"), Decimal(0)]),
    "string": (pa.string(), ["b", None, "", "a ", "a", "B", "ä", "\U0001f600", "\ufffd", "\x00", "zz"]),
    "binary": (pa.binary(), [b"\xff", None, b"", b"\x00", b"\x7f\x80", b"\x80"]),
    "boolean": (pa.bool_(), [True, None, False]),
    "date": (pa.date32(), [date(2026, 1, 1), None, date(1, 1, 1), date(9999, 12, 31)]),
    "timestamp_ntz": (pa.timestamp("us"), [datetime(2026, 1, 1), None, datetime(1900, 1, 1)]),  # noqa: DTZ001
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [datetime(2026, 1, 1, tzinfo=UTC), None, datetime(1900, 1, 1, tzinfo=UTC)],
    ),
}


@pytest.mark.parametrize("is_descending", [False, True])
def test_differential_every_type_is_ordered_as_on_spark(spark: SparkSession, is_descending: bool) -> None:
    for are_nulls_first in (False, True):
        queries, wanted, tables = [], [], {}
        for kind, (arrow_type, values) in VALUES.items():
            rows = pa.table({"n": pa.array(range(len(values)), pa.int64()), "v": pa.array(values, arrow_type)})
            order = (By("v", is_descending=is_descending, are_nulls_first=are_nulls_first),)
            tables[f"of_{kind}"] = rows
            queries.append(
                f"SELECT '{kind}' AS kind, n, ROW_NUMBER() OVER (ORDER BY {order_text(order)}) AS place FROM of_{kind}"
            )
            wanted += [(kind, n, place) for place, n in enumerate(in_order(rows, order)["n"].to_pylist(), 1)]
        found = run_stamped(spark, " UNION ALL ".join(queries), tables)
        assert sorted((row["kind"], row["n"], row["place"]) for row in found.to_pylist()) == sorted(wanted)
