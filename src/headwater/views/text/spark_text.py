"""Expressions as Spark SQL text."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator


class _Generator(SparkGenerator):
    """Spark's, but `<=>` stays `<=>`: IS NOT DISTINCT FROM binds less tightly, so `a <=> b = c` would change.

    And a SELECT stays the one that it is: Spark knows QUALIFY by now, and DISTINCT ON it never did.
    """

    TRANSFORMS = {  # noqa: RUF012 — sqlglot's way to extend a generator
        **SparkGenerator.TRANSFORMS,
        exp.NullSafeEQ: lambda self, node: self.binary(node, "<=>"),
        exp.Select: lambda self, node: self.select_sql(node),
    }


def spark_text(expression: exp.Expr) -> str:
    """Return an expression as Spark SQL.

    >>> import sqlglot
    >>> spark_text(sqlglot.parse_one("r.x <=> 1 AND r.y IS NOT NULL", read="spark"))
    'r.x <=> 1 AND NOT r.y IS NULL'
    """
    return _Generator(dialect=Spark(), comments=False).generate(expression)


def quoted(name: str) -> str:
    """Return a name as a quoted identifier.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
