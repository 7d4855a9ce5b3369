"""A row as a person writes it: `city = 'Oslo' AND sold = 7`, some of its columns with their values."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headwater.errors import InvalidView
from headwater.views.text.reader_query import check_value
from headwater.views.text.spark_text import spark_text


def read_row(text: str, columns: tuple[str, ...]) -> dict[str, str]:
    """Return the columns that a text names, as they are spelt, with their values as Spark SQL.

    >>> read_row("City = 'Oslo', sold = 3 + 4 AND boss IS NULL", ("city", "sold", "boss"))
    {'city': "'Oslo'", 'sold': '3 + 4', 'boss': 'NULL'}
    """
    spelt = {name.lower(): name for name in columns}
    pairs = row_pairs(text)
    unknown = [name for name, _ in pairs if name.lower() not in spelt]
    if unknown:
        raise InvalidView(
            f'there is no column "{unknown[0]}"', code="HW-135", hint=f"its columns are: {', '.join(columns)}"
        )
    return {spelt[name.lower()]: value for name, value in pairs}


def row_pairs(text: str) -> list[tuple[str, str]]:
    """Return the names and values of a text that names a row. A value may say what a view may say, and asks nobody."""
    whole = f"({text})"
    try:
        parts = _parts(sqlglot.parse_one(whole, read="spark"))
        pairs = [_pair(part) for part in parts]
    except (SqlglotError, ValueError):
        raise InvalidView(
            f"this names no row: {text}",
            code="HW-134",
            detail="a row is written as columns with their values, AND between them",
            hint="write for instance: --where \"city = 'Oslo' AND sold = 7\"",
        ) from None
    for _, value in pairs:
        check_value(whole, value)
    return [(name, spark_text(value)) for name, value in pairs]


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    match tree:
        case exp.Paren() | exp.Tuple():
            inside = tree.expressions if isinstance(tree, exp.Tuple) else [tree.this]
            return [part for one in inside for part in _parts(one)]
        case exp.And():
            return [*_parts(tree.left), *_parts(tree.right)]
        case _:
            return [tree]


def _pair(part: exp.Expr) -> tuple[str, exp.Expr]:
    """Return the column and the value of `column = value` or `column IS NULL`."""
    if isinstance(part, exp.EQ | exp.NullSafeEQ | exp.Is) and isinstance(part.this, exp.Column):
        value = part.expression
        if not list(value.find_all(exp.Column)):
            return part.this.name, value
    raise ValueError(part)
