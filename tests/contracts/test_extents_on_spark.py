"""An extent means the same rows on Spark, on Arrow and in Python."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import combinations
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - PySpark's own convention

from headwater.deltas.extent import EVERYTHING, NOTHING, Extent, Remainder
from headwater.deltas.on_arrow import remaining
from headwater.deltas.on_spark import passing, to_arrow, to_dataframe
from headwater.deltas.selection import COMPARE, Selection

VALUES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "n": (pa.int32(), (-1, 0, 7)),
    "big": (pa.int64(), (-(2**40), 0, 2**40)),
    "price": (pa.decimal128(8, 2), (Decimal("-0.50"), Decimal("0.00"), Decimal("12.30"))),
    "day": (pa.date32(), (date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31))),
    "a.b": (pa.string(), ("", "B", "a", "a ", "ä", "😀", "it's")),
}


def rows() -> pa.Table:
    """Return rows with every value of a column beside some of the others, NULLs among them."""
    size = 64
    columns = {
        name: pa.array(
            [(*values, None)[(place + place // (7 + skew)) % (len(values) + 1)] for place in range(size)], kind
        )
        for skew, (name, (kind, values)) in enumerate(VALUES.items())
    }
    return pa.table({"place": pa.array(range(size), pa.int64()), **columns})


def extents() -> list[Extent]:
    single = [
        Selection(column=name, compare=compare, values=(value,))
        for name, (_, values) in VALUES.items()
        for compare in COMPARE
        for value in values
    ]
    several = [Selection(column=name, compare="equal", values=values[1:]) for name, (_, values) in VALUES.items()]
    mixed = [
        Extent.of([one, other], [third])
        for (one, other), third in zip(combinations(several, 2), single[::9], strict=False)
    ]
    return [EVERYTHING, NOTHING, *(Extent.of([one]) for one in (*single, *several)), *mixed]


def test_every_engine_means_the_same_rows(spark: SparkSession) -> None:
    table, every = rows(), extents()
    tests = [F.coalesce(passing(extent), F.lit(False)).alias(f"e{number}") for number, extent in enumerate(every)]
    told = to_arrow(to_dataframe(spark, table).coalesce(1).select("place", *tests)).sort_by("place")
    for number, extent in enumerate(every):
        right = [row["place"] for row in table.to_pylist() if extent.passes(row)]
        assert remaining(table, Remainder(of=extent))["place"].to_pylist() == right, str(extent)
        assert told["place"].filter(told[f"e{number}"]).to_pylist() == right, str(extent)
    assert pc.any(pc.is_null(table["a.b"])).as_py(), "NULLs are among them"
