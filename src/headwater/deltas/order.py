"""Rows in the order that Spark's ORDER BY gives them, without a Spark job.

NULLs stand where the order says, a NaN is larger than every number, texts go by their bytes: `tests/contracts` compares
with Spark. Arrow puts NULLs and NaNs at one end of all columns, so that each becomes a column of its own here.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class By:
    """A column to order by. Without more said, as Spark orders: ascending, NULLs first."""

    column: str
    _: KW_ONLY
    is_descending: bool = False
    are_nulls_first: bool = True


Order = tuple[By, ...]


def can_order(schema: pa.Schema, order: Order) -> bool:
    """Tell whether rows of a schema can be put in an order here: arrays and what else Spark orders cannot."""
    return all(_is_orderable(schema.field(by.column).type) for by in order)


def _is_orderable(kind: pa.DataType) -> bool:
    known = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_decimal,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_binary,
        pa.types.is_date,
        pa.types.is_timestamp,
    )
    return any(test(kind) for test in known)


def places_in_order(rows: pa.Table, order: Order) -> pa.Array:
    """Return the places of rows, the first one's first.

    >>> rows = pa.table({"a": [2.0, None, float("nan"), 1.0], "b": ["x", "y", "z", None]})
    >>> places_in_order(rows, (By("a", is_descending=True, are_nulls_first=False),)).to_pylist()
    [2, 0, 3, 1]
    >>> places_in_order(rows, (By("b"),)).to_pylist()
    [3, 0, 1, 2]
    """
    columns: dict[str, pa.ChunkedArray] = {}
    keys: list[tuple[str, str]] = []
    for by in order:
        values = rows[by.column]
        direction = "descending" if by.is_descending else "ascending"
        parts = []
        if values.null_count:
            parts.append((pc.is_null(values), "descending" if by.are_nulls_first else "ascending"))
        if pa.types.is_floating(values.type):
            is_nan = pc.is_nan(values)
            parts.append((is_nan, direction))
            values = pc.if_else(pc.fill_null(is_nan, fill_value=False), pa.scalar(0, values.type), values)
        for part, way in (*parts, (values, direction)):
            name = f"k{len(columns)}"
            columns[name] = part
            keys.append((name, way))
    return pc.sort_indices(pa.table(columns), sort_keys=keys)


def in_order(rows: pa.Table, order: Order, count: int | None = None) -> pa.Table:
    """Return rows in an order: all, or at least the first `count` of them.

    >>> rows = pa.table({"a": [3, 1, 2, 1], "b": [1, 2, 3, 4]})
    >>> in_order(rows, (By("a"), By("b")), 1).to_pylist()
    [{'a': 1, 'b': 2}, {'a': 1, 'b': 4}]
    """
    if count is not None and count < rows.num_rows:
        rows = rows.take(_first_by(rows, order[:1], count))
    return rows.take(places_in_order(rows, order))


def _first_by(rows: pa.Table, order: Order, count: int) -> pa.Array:
    """Return the places of the first rows by one column, with all that equal the last of them."""
    ordering = rows.select([by.column for by in order])
    places = places_in_order(ordering, order)
    last, later = ordering.slice(places[count - 1].as_py(), 1), places.slice(count)
    beyond = places_upto(ordering.take(later), last, order)
    return pa.concat_arrays([places.slice(0, count), later.slice(0, beyond)])


def places_upto(rows: pa.Table, bound: pa.Table, order: Order) -> int:
    """Return how many of these rows, which are in order, are not after the one row of `bound`."""
    low, high = 0, rows.num_rows
    while low < high:
        middle = (low + high) // 2
        if _is_after(rows.slice(middle, 1), bound, order):
            high = middle
        else:
            low = middle + 1
    return low


def _is_after(row: pa.Table, bound: pa.Table, order: Order) -> bool:
    names = [by.column for by in order]
    both = pa.concat_tables([row.select(names), bound.select(names)])  # sorting is stable: of two equals the first
    return bool(places_in_order(both, order)[0].as_py() == 1)


def upto(rows: pa.Table, bound: pa.Table, order: Order) -> pa.Table:
    """Return the rows that are not after the one row of `bound`, in order."""
    ordered = in_order(rows, order)
    return ordered.slice(0, places_upto(ordered, bound, order))


def perhaps_upto(rows: pa.Table, bound: pa.Table, order: Order) -> pa.Table:
    """Return all rows that are not after the one row of `bound`, and perhaps others: only one column is looked at.

    >>> rows = pa.table({"a": [2.0, None, float("nan"), 1.0]})
    >>> [perhaps_upto(rows, rows.slice(0, 1), (By("a", is_descending=way),))["a"].to_pylist() for way in (False, True)]
    [[2.0, None, 1.0], [2.0, None, nan]]
    """
    by = order[0]
    values, last = rows[by.column], bound[by.column][0]
    is_floating = pa.types.is_floating(values.type)
    if not last.is_valid:
        return rows.filter(pc.is_null(values)) if by.are_nulls_first else rows
    if is_floating and pc.is_nan(last).as_py():
        near = pc.is_nan(values) if by.is_descending else pc.is_valid(values)
    elif by.is_descending:
        near = pc.greater_equal(values, last)
        near = pc.or_(near, pc.is_nan(values)) if is_floating else near
    else:
        near = pc.less_equal(values, last)
    return rows.filter(pc.fill_null(near, fill_value=by.are_nulls_first))
