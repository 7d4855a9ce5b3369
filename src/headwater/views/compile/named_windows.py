"""WINDOW: a window that has a name is written out wherever it is used, before anything else is read.

    SELECT sum(y) OVER w2 FROM r WINDOW w1 AS (PARTITION BY x), w2 AS w1
        means   SELECT sum(y) OVER (PARTITION BY x) FROM r

Then the rest of the compiler sees its aggregates, GROUPING and sub-queries like any others.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from headwater.views.compile.expressions import replace_parts

_PARTS = ("partition_by", "order", "spec")


def spell_out_windows(select: exp.Select) -> exp.Select:
    """Return a SELECT with its named windows written out.

    A name that is not defined stays: Spark says so of the author's text.

    >>> import sqlglot
    >>> text = "SELECT sum(y) OVER w AS s FROM r WINDOW v AS (PARTITION BY x), w AS v"
    >>> spell_out_windows(sqlglot.parse_one(text, read="spark")).sql(dialect="spark")
    'SELECT SUM(y) OVER (PARTITION BY x) AS s FROM r'
    """
    named = {one.this.name.lower(): one for one in select.args.get("windows") or ()}
    if not named:
        return select
    result = select.copy()
    result.set("windows", None)
    result.set("expressions", [_spelled_out(item, named) for item in select.expressions])
    for clause in ("qualify", "order"):
        if found := select.args.get(clause):
            result.set(clause, _spelled_out(found, named))
    return result


def _spelled_out(expression: exp.Expr, named: Mapping[str, exp.Window]) -> exp.Expr:
    def written(node: exp.Expr) -> exp.Expr | None:
        if not isinstance(node, exp.Window) or not node.alias:
            return None
        window = _defined(node, named)
        if window is None:
            return None
        result = node.copy()
        result.set("alias", None)
        for part in _PARTS:
            result.set(part, window.args.get(part))
        return result

    return replace_parts(expression, written)


def _defined(window: exp.Window, named: Mapping[str, exp.Window]) -> exp.Window | None:
    """Return the window that has a specification of its own, along names; None if there is none."""
    seen: set[str] = set()
    while window.alias:
        name = window.alias.lower()
        if name in seen or name not in named or any(window.args.get(part) for part in _PARTS):
            return None
        seen.add(name)
        window = named[name]
    return window
