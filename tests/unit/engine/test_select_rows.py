"""Rows of a view that somebody chooses to trace, from entries that sum up to them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headwater.deltas.on_spark import to_dataframe
from headwater.errors import InvalidView
from headwater.lineage.trace_view import select_rows

SCHEMA = pa.schema([("city", pa.string()), ("sold", pa.int32())])
ENTRIES = pa.table(
    {
        "city": ["Oslo", "Bergen", "Bergen", "Oslo", "Bodø"],
        "sold": pa.array([7, 1, 1, 7, None], pa.int32()),
        "_count": [1, 1, 1, -1, 1],
    }
)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (None, [("Bergen", 1, 2), ("Bodø", None, 1)]),
        ("city LIKE 'B%' AND sold > 0", [("Bergen", 1, 2)]),
        ("_count = 1", [("Bodø", None, 1)]),
        ("city = 'Oslo'", []),
    ],
)
def test_a_condition_is_about_rows_not_about_entries(
    spark: SparkSession, where: str | None, expected: list[tuple[object, ...]]
) -> None:
    found = select_rows(to_dataframe(spark, ENTRIES), where, "sold_by_city", SCHEMA)
    assert found.schema.names == ["city", "sold", "_count"]
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == expected


def test_what_spark_cannot_tell_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidView, match="town") as refusal:
        select_rows(to_dataframe(spark, ENTRIES), "town = 'Oslo'", "sold_by_city", SCHEMA)
    assert refusal.value.code == "HW-133"
    assert "`town` cannot be resolved" in refusal.value.detail
    assert "Project" not in refusal.value.detail, "Spark's plan is nothing to a reader"
