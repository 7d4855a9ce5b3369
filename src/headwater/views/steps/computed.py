"""What a regroup computes within a partition: aggregates, windows, or the first rows. Each says all about itself.

The query of each gives rows from a table of plain rows. Its law computes the states of a partition at several ticks by
the same query: `stamps` are then columns that tell the states apart, and that the result has too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.deltas.order import Order
from headwater.views.text.spark_text import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregates:
    """Aggregate functions over a partition's rows, one row per partition: `outputs` are (name, Spark expression)."""

    outputs: tuple[tuple[str, str], ...]

    def sql(self, keys: Sequence[str], table: str, _columns: Sequence[str], stamps: Sequence[str] = ()) -> str:
        """Return the query for keys and aggregates of a table's rows."""
        by = [*keys, *stamps]
        outputs = ", ".join([*map(quoted, by), *(f"{text} AS {quoted(name)}" for name, text in self.outputs)])
        return f"SELECT {outputs} FROM {table}{f' GROUP BY {_listed(by)}' if by else ''}"

    def passed(self, keys: Sequence[str], _columns: Sequence[str]) -> dict[str, str]:
        """Return the output columns that are columns of the input, with these."""
        return {key: key for key in keys}

    def partition_columns(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the output columns that hold the keys of their partition, with these."""
        return {key: key for key in keys}


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """Window functions over a partition's rows, one row per row: (name, Spark expression).

    An expression writes `{partition}` after PARTITION BY, for what Headwater partitions by.
    """

    outputs: tuple[tuple[str, str], ...]

    def sql(self, keys: Sequence[str], table: str, _columns: Sequence[str], stamps: Sequence[str] = ()) -> str:
        """Return the query for window functions over a table's rows, partitioned by keys."""
        return self.sql_with(keys, table, stamps, stamps)

    def sql_with(self, keys: Sequence[str], table: str, stamps: Sequence[str], also: Sequence[str]) -> str:
        """Return the query for window functions over a table's rows, and some columns as they are."""
        partition = _listed([*keys, *stamps]) or "1"
        texts = [(text.replace("{partition}", partition), name) for name, text in self.outputs]
        outputs = ", ".join([*(f"{text} AS {quoted(name)}" for text, name in texts), *map(quoted, also)])
        return f"SELECT {outputs} FROM {table}"

    def passed(self, _keys: Sequence[str], _columns: Sequence[str]) -> dict[str, str]:
        """Return the output columns that are columns of the input, with these."""
        return {name: name for name, text in self.outputs if text == quoted(name)}

    def partition_columns(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the output columns that hold the keys of their partition, with these."""
        texts = {quoted(key): key for key in keys}
        return {name: texts[text] for name, text in self.outputs if text in texts}


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The first rows of a partition in an order, as they are. It names every column of the input, so it is total."""

    order: Order
    limit: int
    offset: int = 0

    @property
    def last(self) -> int:
        """The place of the last row that shows, counted from one."""
        return self.offset + self.limit

    def sql(self, keys: Sequence[str], table: str, columns: Sequence[str], stamps: Sequence[str] = ()) -> str:
        """Return the query for the first rows of every partition of a table, by keys."""
        by, shown = [*keys, *stamps], _listed([*columns, *stamps])
        partition = f"PARTITION BY {_listed(by)} " if by else ""
        place = f"ROW_NUMBER() OVER ({partition}ORDER BY {order_text(self.order)}) AS _place"
        placed = f"(SELECT {shown}, {place} FROM {table}) AS placed"
        return f"SELECT {shown} FROM {placed} WHERE _place > {self.offset} AND _place <= {self.last}"

    def passed(self, _keys: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
        """Return the output columns that are columns of the input, with these."""
        return {name: name for name in columns}

    def partition_columns(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the output columns that hold the keys of their partition, with these."""
        return {key: key for key in keys}


Computed = Aggregates | Windows | First


def order_text(order: Order) -> str:
    """Return an order as Spark's ORDER BY takes it.

    >>> from headwater.deltas.order import By
    >>> order_text((By("a", is_descending=True, are_nulls_first=False), By("b")))
    '`a` DESC NULLS LAST, `b` ASC NULLS FIRST'
    """
    return ", ".join(
        f"{quoted(by.column)} {'DESC' if by.is_descending else 'ASC'} NULLS {'FIRST' if by.are_nulls_first else 'LAST'}"
        for by in order
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(quoted(name) for name in names)
