"""The operands of a chain: a AND b AND c is a tree that leans to the left, as deep as the chain is long."""

from __future__ import annotations

from sqlglot import exp


def operands(expression: exp.Expr, chain: type[exp.Binary]) -> list[exp.Expr]:
    """Return what a chain of one operator connects, from left to right, without parentheses around each.

    >>> import sqlglot
    >>> [one.sql() for one in operands(sqlglot.parse_one("a AND (b AND (c OR d)) AND e"), exp.And)]
    ['a', 'b', 'c OR d', 'e']
    """
    found: list[exp.Expr] = []
    waiting = [expression]
    while waiting:
        bare = waiting.pop().unnest()
        if isinstance(bare, chain):
            waiting += [bare.right, bare.left]
        else:
            found.append(bare)
    return found
