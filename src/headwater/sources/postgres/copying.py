"""Read the rows of a query as Arrow tables, through `COPY … TO STDOUT (FORMAT csv)`.

CSV keeps NULL (nothing) apart from the empty string (quoted), and prints values as the log does. The server sends a row
per message, so a table ends where we choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql

from headwater.relation import Relation
from headwater.sources.postgres.texts import typed_table

TABLE_ROWS = 262_144
_TABLE_BYTES = 64 << 20


def copy_tables(
    connection: psycopg.Connection[Any], query: sql.Composable, relation: Relation, wanted: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield the rows of a query whose columns are the wanted ones of a relation; no table at all if it has no rows."""
    statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        rows: list[bytes] = []
        size = 0
        for row in copy:
            rows.append(bytes(row))
            size += len(row)
            if len(rows) >= TABLE_ROWS or size >= _TABLE_BYTES:
                yield _table(rows, relation, wanted)
                rows, size = [], 0
        if rows:
            yield _table(rows, relation, wanted)


def _table(rows: list[bytes], relation: Relation, wanted: Sequence[str]) -> pa.Table:
    names = [str(number) for number in range(len(wanted))]
    data = b"".join(rows)
    texts = pa_csv.read_csv(
        pa.BufferReader(data),
        read_options=pa_csv.ReadOptions(column_names=names, block_size=len(data) + 1, use_threads=False),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    assert texts.num_rows == len(rows), "the server sends one row per message"
    return typed_table(relation, wanted, [column.combine_chunks() for column in texts.columns])
