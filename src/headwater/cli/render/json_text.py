"""Results as JSON: fields by their names, exact numbers as texts, times in ISO 8601."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path

import pyarrow as pa

from headwater.deltas.compare import Difference
from headwater.model.moment import AtPosition
from headwater.model.position import Position
from headwater.model.relation import RelationName


def to_json(value: object) -> object:  # noqa: C901, PLR0911 — one line per kind of value
    """Return a value as what `json.dumps` takes.

    Decimals are texts, because a JSON number is a float to most readers; NaN and infinities are texts too.

    >>> from headwater.model.position import Tick
    >>> to_json({"amount": Decimal("1.10"), "rate": float("nan"), "tick": Tick(3)})
    {'amount': '1.10', 'rate': 'NaN', 'tick': 3}
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(Decimal(value))
        case Enum():
            return value.value
        case Decimal() | Path() | Position() | AtPosition() | RelationName() | timedelta():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case bytes() | bytearray():
            return value.hex()
        case pa.Table():
            return _table(value)
        case Difference():
            return {
                "missing": [{"row": to_json(row), "count": count} for row, count in value.missing],
                "surplus": [{"row": to_json(row), "count": count} for row, count in value.surplus],
            }
        case Mapping():
            return {str(key): to_json(element) for key, element in value.items()}
        case list() | tuple():
            return [to_json(element) for element in value]
        case _ if is_dataclass(value):
            return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
        case _:
            return str(value)


def _table(table: pa.Table) -> object:
    columns = [{"name": field.name, "type": str(field.type)} for field in table.schema]
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    return {"columns": columns, "rows": [to_json(row) for row in rows]}
