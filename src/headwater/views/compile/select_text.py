"""A join as SQL text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from headwater.model.relation import DEFAULT_SCHEMA, RelationName
from headwater.views.text.spark_text import quoted, spark_text


def select_text(
    tables: Mapping[str, RelationName], conditions: Iterable[exp.Expr], values: Iterable[tuple[str, exp.Expr]]
) -> str:
    """Return the SELECT that gives named values from relations by alias.

    >>> sales = RelationName(source="shop", name="sales")
    >>> select_text({"o0": sales}, [exp.condition("x > 1")], [("c0", exp.column("x"))])
    'SELECT x AS `c0` FROM `shop`.`sales` AS `o0` WHERE (x > 1)'
    """
    outputs = ", ".join(f"{spark_text(value)} AS {quoted(name)}" for name, value in values)
    source = ", ".join(f"{_table(name)} AS {quoted(alias)}" for alias, name in tables.items())
    tests = " AND ".join(f"({spark_text(condition)})" for condition in conditions)
    return f"SELECT {outputs} FROM {source}" + (f" WHERE {tests}" if tests else "")


def _table(name: RelationName) -> str:
    parts = [name.source, *([] if name.schema == DEFAULT_SCHEMA else [name.schema]), name.name]
    return ".".join(map(quoted, parts))
