"""Values with a type or a default around them, as the compiler writes them around what the author wrote."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def unwrap(value: exp.Expr) -> Iterator[exp.Expr]:
    """Yield a value, and what it is made of as long as that is one value with a type or a default around it.

    >>> import sqlglot
    >>> [one.sql() for one in unwrap(sqlglot.parse_one("CAST(COALESCE(x, 0) AS INT)"))]
    ['CAST(COALESCE(x, 0) AS INT)', 'COALESCE(x, 0)', 'x']
    """
    while True:
        value = value.unnest()
        yield value
        if not isinstance(value, exp.Cast) and not has_default(value):
            return
        value = value.this


def has_default(value: exp.Expr) -> bool:
    """Tell whether a value is a number where it would be NULL."""
    return isinstance(value, exp.Coalesce) and [one.is_number for one in value.expressions] == [True]
