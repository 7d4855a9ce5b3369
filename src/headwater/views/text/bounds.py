"""How large a view's text may be, and how deep: what is beyond is refused before it is parsed.

A parser calls itself for every level of parentheses, and whatever walks its tree for every level of that; a chain of
n operators is n levels deep. Python allows 1,000 calls inside each other, and a level takes up to 30. So we let it
allow more, once, and refuse what is still too deep for that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

CHARACTERS = 1_000_000
"""How long a text may be."""
VALUES = 10_000
"""How many values, columns or other items a list may have."""
NESTING = 100
"""How many parentheses, CASE and signs may stand inside each other."""
JOINS = 100
"""How many times a view's own text may say JOIN."""
PARTS = 20_000
"""How many parts a value may have, once the queries inside it stand where their columns are used."""
DEPTH = 1_000
"""How deep a parsed text may be: a chain of AND, OR, + or UNION is as deep as it is long."""

_CALLS = 15_000
_NESTED = (exp.Paren, exp.Func, exp.Not, exp.Neg, exp.In, exp.Tuple)
_BESIDE = (exp.Connector, exp.If)
_OPENS = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE})
_CLOSES = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END})
_SIGNS = frozenset({TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.PLUS})
_OF_TYPES = frozenset({TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """What is too large about a text, where that begins (the token's number), and what to do."""

    what: str
    remedy: str
    token: int | None = None


def excess_of_text(sql: str) -> Excess | None:
    """Return what is wrong with the length of a text."""
    if len(sql) <= CHARACTERS:
        return None
    return Excess(
        what=f"it has {len(sql):,} characters; at most {CHARACTERS:,} can be read",
        remedy="put long lists of values into a table of a source and join it, or make several views of it",
    )


def excess_of_tokens(tokens: Sequence[Token]) -> Excess | None:
    """Return what is too large or too deeply nested, if anything is.

    >>> from sqlglot.dialects.spark import Spark
    >>> print(excess_of_tokens(Spark().tokenize(f"SELECT {'(' * 200}a{')' * 200} AS b")).what)
    parentheses, CASE, signs or types are nested more than 100 deep
    >>> excess_of_tokens(Spark().tokenize("SELECT a FROM s.t WHERE a IN (1, 2, 3)"))
    """
    items = [1]
    begins = [0]
    signs = types = 0
    before = None
    for place, token in enumerate(tokens):
        kind = token.token_type
        signs = signs + 1 if kind in _SIGNS else 0
        types = 0 if kind is TokenType.R_PAREN else types + (kind is TokenType.LT and before in _OF_TYPES)
        before = kind
        if kind in _OPENS:
            items.append(1)
            begins.append(place)
        elif kind in _CLOSES and len(items) > 1:
            items.pop()
            begins.pop()
        elif kind is TokenType.COMMA:
            items[-1] += 1
            if items[-1] > VALUES:
                return Excess(
                    what=f"a list has more than {VALUES:,} items",
                    remedy="put the values into a table of a source and join it: JOIN source.table AS t ON t.value = …",
                    token=begins[-1],
                )
        if len(items) - 1 + signs + types > NESTING:
            return Excess(
                what=f"parentheses, CASE, signs or types are nested more than {NESTING} deep",
                remedy="name the inner parts with WITH, or make views of them",
                token=place,
            )
    return None


def excess_of_tree(tree: exp.Expr) -> Excess | None:
    """Return what is too deep about a parsed text, if anything is."""
    level: list[exp.Expr] = [tree]
    for _ in range(DEPTH):
        level = [inner for node in level for inner in node.iter_expressions()]
        if not level:
            return None
    return Excess(
        what=f"a chain of operators (AND, OR, +, UNION, …) is more than {DEPTH:,} long",
        remedy="compare with a list, x IN (1, 2, …), or put the values into a table of a source and join it",
    )


def excess_of_joins(tokens: Sequence[Token]) -> Excess | None:
    """Return that a view's own text joins too much."""
    places = [place for place, token in enumerate(tokens) if token.token_type is TokenType.JOIN]
    if len(places) <= JOINS:
        return None
    return Excess(
        what=f"it has {len(places):,} joins; at most {JOINS} can be maintained",
        remedy="make several views of it: a view may read others",
        token=places[JOINS],
    )


def excess_of_value(value: exp.Expr, select: exp.Expr) -> Excess | None:
    """Return that a value has grown too large: each query that uses a column twice makes it twice as large.

    One that its SELECT writes out at this size has not grown.

    >>> import sqlglot
    >>> excess_of_value(sqlglot.parse_one("a + a"), sqlglot.parse_one("SELECT a + a AS b FROM r"))
    """
    size = sum(1 for _ in value.walk())
    if size <= PARTS or size <= sum(1 for _ in select.walk()):
        return None
    return Excess(
        what=f"a value has more than {PARTS:,} parts, because queries inside each other use it again and again",
        remedy="name each column of an inner query fewer times, or group in one of the queries between",
    )


def is_too_deep(value: exp.Expr) -> bool:
    """Tell whether a value has grown so deep that its text could not be parsed: queries inside each other wrap it.

    >>> import sqlglot
    >>> is_too_deep(sqlglot.parse_one("a + (b * (c - 1))"))
    False
    """
    waiting = [(value, 0)]
    while waiting:
        node, depth = waiting.pop()
        depth += isinstance(node, _NESTED) and not isinstance(node, _BESIDE)  # a branch counts with its CASE
        if depth > NESTING:
            return True
        waiting += [(inner, depth) for inner in node.iter_expressions()]
    return False


def allow_depth() -> None:
    """Let Python call as deep as a text within these bounds takes."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _CALLS))
