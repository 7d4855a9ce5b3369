"""Rows of a segment whose lineage is sought, and what they are sought for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.deltas.lookup import Origin
from headwater.views.text.spark_text import quoted

OF = "#of"
"""The column that tells which row above a row derives; NULL: every row above."""

PLACE = "#place"
"""The column that numbers the rows of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """All rows of a segment whose `columns` hold the values of one of the rows here. NULL is a value like any other.

    `rows` has those columns and `OF`. `origin` says where they were read, if they are rows of the segment, whole; where
    it says nothing, there may be none such.
    """

    columns: tuple[str, ...]
    rows: pa.Table
    origin: Origin | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is sought."""
        return not len(self.rows)

    def renamed(self, columns: tuple[str, ...]) -> Sought:
        """Return the same of a segment that calls these columns otherwise."""
        held = [self.rows[name] for name in (*self.columns, OF)]
        return Sought(columns=columns, rows=pa.table(held, names=[*columns, OF]))


def numbered(rows: pa.Table, name: str = PLACE) -> pa.Table:
    """Return rows with a column that numbers them.

    >>> numbered(pa.table({"a": [7, 7]})).to_pylist()
    [{'a': 7, '#place': 0}, {'a': 7, '#place': 1}]
    """
    return rows.append_column(name, pa.array(range(rows.num_rows), pa.int64()))


def sought_rows(
    rows: pa.Table, columns: tuple[str, ...], of: pa.ChunkedArray | pa.Array, origin: Origin | None = None
) -> Sought:
    """Return rows as sought, each for the row above that `of` tells."""
    held = [rows[name] for name in columns]
    return Sought(columns=columns, rows=pa.table([*held, of], names=[*columns, OF]), origin=origin)


def same_values(one: str, other: str, columns: Sequence[str]) -> str:
    """Return the SQL condition that two tables agree in columns, NULL being a value like any other.

    >>> same_values("r", "s", ["a"])
    'r.`a` <=> s.`a`'
    """
    return " AND ".join(f"{one}.{quoted(name)} <=> {other}.{quoted(name)}" for name in columns) or "TRUE"
