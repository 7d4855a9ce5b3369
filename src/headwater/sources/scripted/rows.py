"""Rows of a scripted source: Python tuples in the order of the relation's columns, and Arrow tables of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from headwater.model.relation import COUNT, Relation, RelationName
from headwater.model.transaction import ORDINAL

Values: TypeAlias = tuple[object, ...]
Changes: TypeAlias = Mapping[RelationName, Mapping[Values, int]]
"""The signed rows of a transaction, by relation."""


def table_of(relation: Relation, rows: Sequence[Values]) -> pa.Table:
    """Return rows of a relation as an Arrow table."""
    columns = zip(*rows, strict=True) if rows else [()] * len(relation.columns)
    schema = relation.arrow_schema()
    arrays = [pa.array(values, one.type) for values, one in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def plain_rows(relation: Relation, rows: Mapping[Values, int]) -> pa.Table:
    """Return a bag of rows as an Arrow table, one line per copy."""
    return table_of(relation, [row for row, times in rows.items() for _ in range(times)])


def signed_rows(relation: Relation, transactions: Sequence[Changes]) -> pa.Table:
    """Return what transactions did to a relation, rows that went before rows that came, one line per copy."""
    lines = [
        (row, ordinal, 1 if times > 0 else -1)
        for ordinal, changes in enumerate(transactions)
        for row, times in sorted(changes.get(relation.name, {}).items(), key=lambda one: one[1])
        for _ in range(abs(times))
    ]
    table = table_of(relation, [row for row, _, _ in lines])
    ordinals = pa.array([ordinal for _, ordinal, _ in lines], pa.int32())
    signs = pa.array([sign for _, _, sign in lines], pa.int64())
    return table.append_column(ORDINAL, ordinals).append_column(COUNT, signs)


def key_of(values: Sequence[object]) -> Values:
    """Return values as a key that is found by equality: every NaN is one value, as databases have it.

    >>> key_of([float("nan"), 1]) == key_of([float("nan"), 1])
    True
    """
    return tuple("NaN" if isinstance(value, float) and math.isnan(value) else value for value in values)
