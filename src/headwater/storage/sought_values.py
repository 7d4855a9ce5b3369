"""Values that are looked for, and what need not be read for them: files and row groups whose bounds exclude them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Bounds = Callable[[str], tuple[Any, Any] | None]
"""The lowest and the highest value of a column, where they are known."""


def is_bounded(kind: pa.DataType) -> bool:
    """Tell whether bounds of values of a type are noted: those that everybody writes and compares alike."""
    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_date32(kind))


def noted_bounds(known: pq.Statistics | None) -> tuple[Any, Any] | None:
    """Return the bounds that a writer has left of a column's values, if they are of such a type."""
    if known is None or not known.has_min_max:
        return None
    try:
        bounds = (known.min, known.max)
    except OverflowError:  # a date past the last that Python knows
        return None
    return bounds if all(type(bound) in (int, str, date) for bound in bounds) else None


@dataclass(frozen=True, slots=True)
class SoughtValues:
    """By column the values that are looked for, in order. A row is wanted only if each column has one of its values."""

    values: dict[str, list[Any]]

    @classmethod
    def of_keys(cls, keys: pa.Table) -> SoughtValues:
        """Return the values of keys, but for columns with a NULL among them: bounds do not tell where NULLs are."""
        known = [field.name for field in keys.schema if is_bounded(field.type) and not keys[field.name].null_count]
        listed = {name: _listed(keys[name]) for name in known}
        return cls({name: values for name, values in listed.items() if values is not None})

    def may_be_within(self, bounds: Bounds) -> bool:
        """Tell whether rows that are wanted may be among some whose columns have these bounds.

        >>> some = SoughtValues.of_keys(pa.table({"id": [3, 9], "city": ["Oslo", "Bergen"]}))
        >>> some.may_be_within({"id": (4, 9), "city": ("A", "C")}.get)
        True
        >>> some.may_be_within({"id": (4, 8)}.get)
        False
        """
        return all(
            (known := bounds(name)) is None or _has_between(values, *known) for name, values in self.values.items()
        )


def _listed(values: pa.ChunkedArray) -> list[Any] | None:
    """Return the different values in order. None if Python does not know them all."""
    try:
        return sorted(values.unique().to_pylist())
    except OverflowError:  # a date, as above
        return None


def _has_between(values: list[Any], low: Any, high: Any) -> bool:
    place = bisect_left(values, low)
    return place < len(values) and values[place] <= high
