"""Extents as JSON holds them: lists of selections, and values that keep their type."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from headwater.deltas.extent import Extent
from headwater.deltas.selection import Selection


def extent_json(extent: Extent) -> list[list[list[Any]]]:
    """Return an extent as JSON values.

    >>> dear = Extent.of([Selection(column="price", compare="greater", values=(Decimal("9.50"),))])
    >>> extent_json(dear)
    [[['price', 'greater', [{'decimal': '9.50'}]]]]
    >>> parse_extent(extent_json(dear)) == dear
    True
    """
    return [[[one.column, one.compare, [_written(v) for v in one.values]] for one in many] for many in extent.any_of]


def parse_extent(value: list[list[list[Any]]]) -> Extent:
    """Read a written extent."""
    lists = [
        [Selection(column=column, compare=compare, values=tuple(map(_read, values))) for column, compare, values in one]
        for one in value
    ]
    return Extent.of(*lists)


def _written(value: Any) -> Any:
    match value:
        case Decimal():
            return {"decimal": str(value)}
        case date():
            return {"date": value.isoformat()}
        case _:
            assert isinstance(value, int | str), f"not a value of a selection: {value!r}"
            return value


def _read(value: Any) -> Any:
    match value:
        case {"decimal": text}:
            return Decimal(text)
        case {"date": text}:
            return date.fromisoformat(text)
        case _:
            return value
