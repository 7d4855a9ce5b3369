"""A row that a person wrote, in the types of what it is a row of."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headwater.deltas.on_spark import run_stamped
from headwater.errors import InvalidView
from headwater.model.relation import Column
from headwater.spark.view_errors import said_by_spark
from headwater.views.text.row_text import read_row


def typed_row(spark: SparkSession, name: str, columns: Sequence[Column], text: str) -> pa.Table:
    """Return the columns and values that a text names, one row, of something that has these columns."""
    by_name = {column.name: column for column in columns}
    values = read_row(text, tuple(by_name))
    listed = ", ".join(
        f"CAST({value} AS {by_name[column].type}) AS c{place}" for place, (column, value) in enumerate(values.items())
    )
    try:
        found = run_stamped(spark, f"SELECT {listed}", {})
    except PySparkException as error:
        raise InvalidView(
            f'this is no row of "{name}": {text}',
            code="HW-136",
            detail=said_by_spark(error),
            hint=f"its columns are: {', '.join(f'{one.name} {one.type}' for one in columns)}",
        ) from None
    types = [by_name[column].arrow_field.type for column in values]
    return pa.table([found[place].cast(kind) for place, kind in enumerate(types)], names=list(values))
