"""Measure a PostgreSQL database: sizes as its own statistics have them, and the time that small questions take."""

from __future__ import annotations

import time
from collections.abc import Sequence

from psycopg import sql

from headwater.model import costs
from headwater.model.relation import Column, Relation, RelationName
from headwater.sources.measure import ColumnMeasure, RelationMeasure, SourceMeasure
from headwater.sources.postgres.connect import Connection

_TRIPS = 5
_MOVED_BYTES = 1_000_000
_SCANNED_ROWS = 50_000
_COUNTED_ROWS = 50_000
_DEFAULT_DISTINCT = 200.0
"""What PostgreSQL itself takes where it knows nothing."""
_WIDTHS = {"boolean": 1.0, "smallint": 2.0, "int": 4.0, "float": 4.0, "date": 4.0}
_DEFAULT_WIDTH = 8.0
_STATISTICS_SQL = """
SELECT DISTINCT ON (attname) attname, avg_width, n_distinct
FROM pg_stats WHERE schemaname = %s AND tablename = %s ORDER BY attname, inherited DESC
"""


def measure(connection: Connection, relations: Sequence[Relation]) -> SourceMeasure:
    """Measure relations, and the way to them. Changes nothing."""
    block_bytes = int(_value(connection, "SELECT current_setting('block_size')"))
    trip = min(_seconds(connection, sql.SQL("SELECT 1")) for _ in range(_TRIPS))
    moved = _seconds(connection, sql.SQL("SELECT repeat('x', {})").format(sql.Literal(_MOVED_BYTES)))
    found = {relation.name: _measured(connection, relation) for relation in relations}
    return SourceMeasure(
        relations=found,
        block_bytes=block_bytes,
        trip_seconds=trip,
        byte_seconds=max(0.0, moved - trip) / _MOVED_BYTES,
        block_seconds=_block_seconds(connection, found, trip, block_bytes),
    )


def _measured(connection: Connection, relation: Relation) -> RelationMeasure:
    """Return what is known of a relation. A small one is counted."""
    rows = float(relation.row_estimate)
    if rows <= _COUNTED_ROWS:
        rows = float(_value(connection, sql.SQL("SELECT count(*) FROM {}").format(_table(relation.name))))
    known = {
        name: ColumnMeasure(width=float(width), distinct=max(1.0, distinct if distinct >= 0 else -distinct * rows))
        for name, width, distinct in connection.execute(_STATISTICS_SQL, (relation.name.schema, relation.name.name))
    }
    return RelationMeasure(
        rows=rows, columns={one.name: known.get(one.name) or _unknown(one, relation, rows) for one in relation.columns}
    )


def _unknown(column: Column, relation: Relation, rows: float) -> ColumnMeasure:
    """Return what may be said of a column that nobody has analyzed."""
    distinct = rows if relation.key == (column.name,) else min(rows, _DEFAULT_DISTINCT)
    return ColumnMeasure(width=_WIDTHS.get(column.type, _DEFAULT_WIDTH), distinct=max(1.0, distinct))


def _block_seconds(
    connection: Connection, found: dict[RelationName, RelationMeasure], trip: float, block_bytes: int
) -> float:
    """Return the time of a block, from scanning some rows of the largest relation."""
    name = max(found, key=lambda one: found[one].rows, default=None)
    if name is None or not found[name].rows:
        return costs.BLOCK / 1000
    some = sql.SQL("SELECT count(*) FROM (SELECT FROM {} LIMIT {}) AS scanned")
    seconds = _seconds(connection, some.format(_table(name), sql.Literal(_SCANNED_ROWS)))
    rows = min(found[name].rows, _SCANNED_ROWS)
    blocks = max(1.0, rows * found[name].row_size(tuple(found[name].columns)) / block_bytes)
    return max(0.0, seconds - trip) / blocks


def _table(name: RelationName) -> sql.Identifier:
    return sql.Identifier(name.schema, name.name)


def _seconds(connection: Connection, question: sql.Composed | sql.SQL) -> float:
    began = time.perf_counter()
    connection.execute(question).fetchall()
    return time.perf_counter() - began


def _value(connection: Connection, question: str | sql.Composed) -> str:
    row = connection.execute(question.encode() if isinstance(question, str) else question).fetchone()
    assert row is not None, "one row is asked for"
    return str(row[0])
