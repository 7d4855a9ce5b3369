"""Divide a relation into ranges of the first column of its primary key.

The bounds come from a sample of the table's pages, so that dividing costs little whatever the size; chunks are
therefore only about as large as asked. They hold every row exactly once whatever the bounds are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

from headwater.deltas.extent import Remainder
from headwater.model.relation import Relation
from headwater.sources.postgres.probing import column_list, relation_identifier
from headwater.sources.postgres.selecting import conditions
from headwater.sources.source import Chunk

_SAMPLE_ROWS = 50_000
_MAX_CHUNKS = 10_000
_WHOLE = (Chunk(number=0),)


def divide(connection: psycopg.Connection[Any], relation: Relation, rows_per_chunk: int) -> tuple[Chunk, ...]:
    """Return chunks of about that many rows. One chunk for a relation that is small or has no primary key."""
    if not relation.key:
        return _WHOLE
    row_count = _estimated_rows(connection, relation)
    chunk_count = min(-(-row_count // rows_per_chunk), _MAX_CHUNKS)
    if chunk_count <= 1:
        return _WHOLE
    bounds = _bounds(connection, relation, chunk_count, min(100.0, 100.0 * _SAMPLE_ROWS / row_count))
    if not bounds:
        return _WHOLE
    lows, highs = (None, *bounds), (*bounds, None)
    return tuple(
        Chunk(number=number, column=relation.key[0], low=low, high=high)
        for number, (low, high) in enumerate(zip(lows, highs, strict=True))
    )


def chunk_query(relation: Relation, wanted: tuple[str, ...], chunk: Chunk, rows: Remainder) -> sql.Composed:
    """Return the query that reads the wanted columns of a chunk's rows: those of a remainder, and perhaps others."""
    query = sql.SQL("SELECT {} FROM {} AS r").format(column_list(wanted), relation_identifier(relation))
    tests = [*_bounds_of(relation, chunk), *conditions(relation, rows)]
    return sql.SQL("{} WHERE {}").format(query, sql.SQL(" AND ").join(tests)) if tests else query


def _bounds_of(relation: Relation, chunk: Chunk) -> Iterator[sql.Composable]:
    """Yield the tests that a chunk's rows pass, and no others."""
    if chunk.column is None:
        return
    column = sql.Identifier("r", chunk.column)
    native = sql.SQL(relation.column(chunk.column).native)  # as the catalog prints it: quoted where it must be
    if chunk.low is not None:
        yield sql.SQL("{} > {}::{}").format(column, sql.Literal(chunk.low), native)
    if chunk.high is not None:
        also = sql.SQL(" OR {} IS NULL").format(column) if chunk.low is None else sql.SQL("")
        yield sql.SQL("({} <= {}::{}{})").format(column, sql.Literal(chunk.high), native, also)


def _estimated_rows(connection: psycopg.Connection[Any], relation: Relation) -> int:
    """Return what the statistics say. A table without them is counted."""
    if relation.row_estimate > 0:
        return relation.row_estimate
    query = sql.SQL("SELECT count(*) FROM {}").format(relation_identifier(relation))
    row = connection.execute(query).fetchone()
    assert row is not None
    count: int = row[0]
    return count


def _bounds(
    connection: psycopg.Connection[Any], relation: Relation, chunk_count: int, percent: float
) -> tuple[str, ...]:
    fractions = ",".join(str(number / chunk_count) for number in range(1, chunk_count))
    query = sql.SQL(
        "SELECT DISTINCT ON (bound) format('%s', bound) FROM (SELECT unnest(percentile_disc({}::float8[])"
        " WITHIN GROUP (ORDER BY r.{})) AS bound FROM {} AS r TABLESAMPLE SYSTEM ({})) AS sample"
        " WHERE bound IS NOT NULL ORDER BY bound"
    ).format(
        sql.Literal("{" + fractions + "}"),
        sql.Identifier(relation.key[0]),
        relation_identifier(relation),
        sql.Literal(percent),
    )
    return tuple(row[0] for row in connection.execute(query).fetchall())
