"""Which tables a query names, before anything else is known of it."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headwater.errors import InvalidView


def tables_named(sql: str) -> tuple[str, ...]:
    """Return the unqualified tables of a query, each once, in lower case.

    >>> tables_named("WITH a AS (SELECT 1 x) SELECT * FROM Sales s JOIN a ON true, sales t")
    ('sales', 'a')
    """
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError as error:
        raise InvalidView(
            "the query cannot be parsed", code="HW-127", detail=str(error).split("\n")[0], hint="it is Spark SQL"
        ) from None
    return tuple(dict.fromkeys(table.name.lower() for table in tree.find_all(exp.Table) if not table.db))
