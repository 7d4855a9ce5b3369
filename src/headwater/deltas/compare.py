"""Compare two bags of rows, and say what differs in words.

Python's own equality is almost that of SQL's `IS NOT DISTINCT FROM`, but NaN equals nothing there, and a list has no
hash. So rows are compared by `row_key`, in which every NaN is one value and lists are tuples. 1, 1.0 and
Decimal("1.00") are one value; that two columns have one *type* is compared elsewhere, by their schemas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

Row: TypeAlias = tuple[object, ...]
Bag: TypeAlias = Mapping[Row, int]
RowKey: TypeAlias = tuple[Hashable, ...]

_NAN = "\0NaN"
"""What every NaN becomes in a row key; no text of PostgreSQL or Spark starts with this character by accident."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What one bag has too few of, and what it has too many of, against the right one. Counts are positive."""

    missing: tuple[tuple[Row, int], ...] = ()
    surplus: tuple[tuple[Row, int], ...] = ()

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self.missing or self.surplus)

    @property
    def size(self) -> int:
        """How many rows would have to come or go."""
        return sum(count for _, count in (*self.missing, *self.surplus))

    def __str__(self) -> str:
        """Return all of it, one line per row."""
        return self.text()

    def text(self, line_limit: int | None = None) -> str:
        """Return it one line per row, missing rows first. Lines over the limit are only counted, in a last line."""
        lines = [
            *(f"missing {count} × {format_row(row)}" for row, count in self.missing),
            *(f"surplus {count} × {format_row(row)}" for row, count in self.surplus),
        ]
        if line_limit is not None and len(lines) > line_limit:
            lines = [*lines[:line_limit], f"… and {len(lines) - line_limit} more"]
        return "\n".join(lines) or "no difference"


def difference(expected: Bag, actual: Bag) -> Difference:
    """Return what `actual` lacks and has too much of.

    A row with count zero is no row. Equal rows that are spelt differently (NaN twice, 1 and 1.0) are added up.

    >>> print(difference({(1, "a"): 1, (2, None): 3}, {(1, "a"): 1, (2, None): 1, (3, "c"): 1}))
    missing 2 × (2, NULL)
    surplus 1 × (3, 'c')
    >>> print(difference({(float("nan"),): 1}, {(float("nan"),): 1}))
    no difference
    """
    balance: Counter[RowKey] = Counter()
    spelling: dict[RowKey, Row] = {}
    for bag, sign in ((expected, 1), (actual, -1)):
        for row, count in bag.items():
            key = row_key(row)
            balance[key] += sign * count
            spelling.setdefault(key, row)
    wrong = [(spelling[key], count) for key, count in balance.items() if count]
    return Difference(
        missing=tuple(sorted(((row, count) for row, count in wrong if count > 0), key=_reading_order)),
        surplus=tuple(sorted(((row, -count) for row, count in wrong if count < 0), key=_reading_order)),
    )


def bag_of(rows: Iterable[Row]) -> Counter[Row]:
    """Return the bag that holds each of these rows as often as it comes.

    >>> bag_of([(1,), (1,), (2,)])
    Counter({(1,): 2, (2,): 1})
    """
    return Counter(rows)


def bag_key(bag: Bag) -> frozenset[tuple[RowKey, int]]:
    """Return a value that two bags share exactly if there is no difference between them.

    >>> bag_key({(float("nan"), 1): 2}) == bag_key({(float("nan"), 1.0): 2, (5, 5): 0})
    True
    """
    counts: Counter[RowKey] = Counter()
    for row, count in bag.items():
        counts[row_key(row)] += count
    return frozenset((key, count) for key, count in counts.items() if count)


def row_key(row: Row) -> RowKey:
    """Return a value that two rows share exactly if they are the same row to SQL.

    >>> row_key((float("nan"), None, [1, 2])) == row_key((Decimal("NaN"), None, (1, 2)))
    True
    """
    return tuple(_value_key(value) for value in row)


def hashable_row(row: Row) -> Row:
    """Return a row that can be counted: its lists become tuples.

    >>> hashable_row((1, [2, None]))
    (1, (2, None))
    """
    return tuple(_hashable(value) for value in row)


def _hashable(value: object) -> object:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def format_row(row: Row) -> str:
    """Return a row as SQL would show it.

    >>> format_row((1, None, "O'Hara", Decimal("2.50"), True))
    "(1, NULL, 'O''Hara', 2.50, true)"
    """
    return f"({', '.join(_format_value(value) for value in row)})"


def _value_key(value: object) -> Hashable:
    match value:
        case float() if value != value:  # noqa: PLR0124 — the definition of NaN
            return _NAN
        case Decimal() if value.is_nan():
            return _NAN
        case list() | tuple():
            return tuple(_value_key(element) for element in value)
        case dict():
            return frozenset((_value_key(key), _value_key(element)) for key, element in value.items())
        case bytearray() | memoryview():
            return bytes(value)
        case Hashable():
            return value
        case _:
            raise AssertionError(f"not a value of a row: {value!r}")


def _format_value(value: object) -> str:  # noqa: PLR0911 — one line per kind of value
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bytes() | bytearray():
            return f"x'{value.hex()}'"
        case datetime() | date():
            return str(value)
        case list() | tuple():
            return f"[{', '.join(_format_value(element) for element in value)}]"
        case _:
            return str(value)


def _reading_order(counted: tuple[Row, int]) -> str:
    return format_row(counted[0])
