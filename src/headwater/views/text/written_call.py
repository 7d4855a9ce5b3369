"""Where a call stands in a view's text, for the functions whose place sqlglot does not keep.

sqlglot gives functions names of its own (`max_by` is ArgMax to it), and forgets where those stand whose arguments it
reads in a way of their own. Messages show the name that the author wrote.
"""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType


def find_call(call: exp.Func, sql: str) -> tuple[str, int, int] | None:
    """Return the name of a call in lower case, and from which character to which it stands, if that is known.

    >>> sql = "SELECT max_by((CAST(a AS INT)), b) AS top FROM r"
    >>> find_call(sqlglot.parse_one(sql, read="spark").find(exp.ArgMax), sql)
    ('max_by', 7, 34)
    """
    inside = [part.meta["start"] for part in call.walk() if "start" in part.meta]
    if not inside:
        return None
    tokens = _tokens(sql)
    closed = 0
    for place in reversed([place for place, token in enumerate(tokens) if token.start < min(inside)]):
        closed += {TokenType.R_PAREN: 1, TokenType.L_PAREN: -1}.get(tokens[place].token_type, 0)
        if closed >= 0:
            continue
        closed = 0
        name, end = tokens[place - 1], _closing(tokens, place)
        if place and end is not None and _makes(sql[name.start : end], type(call)):
            return name.text.lower(), name.start, end
    return None


@lru_cache(maxsize=16)
def _tokens(sql: str) -> tuple[Token, ...]:
    return tuple(Spark().tokenize(sql))


def _closing(tokens: tuple[Token, ...], opening: int) -> int | None:
    """Return the character after the parenthesis that closes another."""
    depth = 0
    for token in tokens[opening:]:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            return int(token.end) + 1
    return None


def _makes(text: str, kind: type[exp.Expr]) -> bool:
    """Tell whether a text is a call of some kind."""
    try:
        return type(sqlglot.parse_one(text, read="spark")) is kind
    except SqlglotError:
        return False
