"""Measure a MariaDB database: sizes as its own statistics have them, and the time that small questions take."""

from __future__ import annotations

import time
from collections.abc import Sequence

from headwater.model import costs
from headwater.model.relation import Column, Relation
from headwater.sources.mariadb.catalog import schema_of, table_of
from headwater.sources.mariadb.connect import Connection, text_literal, texts
from headwater.sources.measure import ColumnMeasure, RelationMeasure, SourceMeasure

_TRIPS = 5
_MOVED_BYTES = 1_000_000
_SCANNED_ROWS = 50_000
_COUNTED_ROWS = 50_000
_DEFAULT_DISTINCT = 200.0
_WIDTHS = {"tinyint": 1.0, "smallint": 2.0, "int": 4.0, "float": 4.0, "date": 4.0}
_DEFAULT_WIDTH = 8.0
_CARDINALITIES = """
SELECT column_name, max(cardinality) FROM information_schema.statistics
WHERE table_schema = {schema} AND table_name = {table} AND seq_in_index = 1 AND cardinality > 0 GROUP BY column_name
"""


def measure(connection: Connection, relations: Sequence[Relation], database: str) -> SourceMeasure:
    """Measure relations, and the way to them. Changes nothing."""
    trip = min(_seconds(connection, "SELECT 1") for _ in range(_TRIPS))
    moved = _seconds(connection, f"SELECT REPEAT('x', {_MOVED_BYTES})")
    found = {relation.name: _measured(connection, relation, database) for relation in relations}
    block_bytes = int(texts(connection, "SELECT @@innodb_page_size")[0][0])
    name = max(found, key=lambda one: found[one].rows, default=None)
    block_seconds = costs.BLOCK / 1000
    if name is not None and found[name].rows:
        some = f"SELECT count(*) FROM (SELECT 1 FROM {table_of(name, database)} LIMIT {_SCANNED_ROWS}) AS scanned"
        rows = min(found[name].rows, _SCANNED_ROWS)
        blocks = max(1.0, rows * found[name].row_size(tuple(found[name].columns)) / block_bytes)
        block_seconds = max(0.0, _seconds(connection, some) - trip) / blocks
    return SourceMeasure(
        relations=found,
        block_bytes=block_bytes,
        trip_seconds=trip,
        byte_seconds=max(0.0, moved - trip) / _MOVED_BYTES,
        block_seconds=block_seconds,
    )


def _measured(connection: Connection, relation: Relation, database: str) -> RelationMeasure:
    """Return what is known of a relation. A small one is counted."""
    rows = float(relation.row_estimate)
    if rows <= _COUNTED_ROWS:
        rows = float(texts(connection, f"SELECT count(*) FROM {table_of(relation.name, database)}")[0][0])
    place = {
        "schema": text_literal(schema_of(relation.name, database)),
        "table": text_literal(relation.name.name),
    }
    known = {name: float(count) for name, count in texts(connection, _CARDINALITIES.format(**place))}
    return RelationMeasure(
        rows=rows, columns={one.name: _column(one, relation, rows, known.get(one.name)) for one in relation.columns}
    )


def _column(column: Column, relation: Relation, rows: float, known: float | None) -> ColumnMeasure:
    distinct = rows if relation.key == (column.name,) else known or min(rows, _DEFAULT_DISTINCT)
    return ColumnMeasure(width=_WIDTHS.get(column.type, _DEFAULT_WIDTH), distinct=max(1.0, distinct))


def _seconds(connection: Connection, question: str) -> float:
    began = time.perf_counter()
    texts(connection, question)
    return time.perf_counter() - began
