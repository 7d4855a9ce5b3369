"""Read the rows of a query as Arrow tables, through `COPY … TO STDOUT (FORMAT csv)`.

CSV keeps NULL (nothing) apart from the empty string (quoted), and prints values as the log does. The server sends a row
per message, so a table ends where we choose. Messages are taken from libpq directly: psycopg's own `copy` puts a
generator around each, which takes three times as long as reading short rows.
"""

from __future__ import annotations

import select
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
from psycopg import sql
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from headwater.model.relation import Relation
from headwater.sources.postgres.texts import typed_table

TABLE_ROWS = 262_144
_TABLE_BYTES = 64 << 20
_AT_ONCE = 1
"""Do not wait for a message; there is none if its size is 0."""
_END = -1


def copy_tables(
    connection: psycopg.Connection[Any], query: sql.Composable, relation: Relation, wanted: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield the rows of a query whose columns are the wanted ones of a relation. No table at all if it has no rows."""
    statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)
    rows: list[bytes] = []
    size = 0
    for row in _messages(connection, statement.as_bytes(connection)):
        rows.append(row)
        size += len(row)
        if len(rows) >= TABLE_ROWS or size >= _TABLE_BYTES:
            yield _table(rows, relation, wanted)
            rows, size = [], 0
    if rows:
        yield _table(rows, relation, wanted)


def _messages(connection: psycopg.Connection[Any], statement: bytes) -> Iterator[bytes]:
    """Yield what the server sends. A connection that is left in the middle of it is of no use any more."""
    libpq, ended = connection.pgconn, None
    _check(libpq, libpq.exec_(statement), ExecStatus.COPY_OUT)
    try:
        size, message = libpq.get_copy_data(_AT_ONCE)
        while size != _END:
            if size:
                yield bytes(message)
            else:
                select.select([libpq.socket], [], [])
                libpq.consume_input()
            size, message = libpq.get_copy_data(_AT_ONCE)
        ended = libpq.get_result()
        while libpq.get_result() is not None:
            pass
    finally:
        if ended is None:
            connection.close()
    _check(libpq, ended, ExecStatus.COMMAND_OK)


def _check(libpq: PGconn, result: PGresult | None, status: ExecStatus) -> None:
    """Raise what psycopg would raise if a statement did not end as it should."""
    if libpq.status == ConnStatus.BAD or result is None:
        raise psycopg.OperationalError(libpq.get_error_message())
    if result.status != status:
        raise error_from_result(result)


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
