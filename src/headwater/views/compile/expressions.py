"""Small questions and changes that every rule asks of expressions. Trees are never edited in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from sqlglot import exp

from headwater.views.text.operands import operands

UNSETTLED = "#"
"""Stands in the table of a column that is a name of the text, and in no alias of an occurrence."""

SUBQUERIES = (exp.Query, exp.Exists)

REJECT_NULL = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
"""Comparisons that are not TRUE if a side is NULL."""


def column(table: str, name: str) -> exp.Column:
    """Return a column as the rules write it.

    >>> column("o1", "x").sql(dialect="spark")
    '`o1`.`x`'
    """
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))


def conjuncts(expression: exp.Expr | None) -> list[exp.Expr]:
    """Return what must be true for the whole to be true. TRUE itself is left out."""
    if expression is None:
        return []
    return [part for part in operands(expression, exp.And) if not (isinstance(part, exp.Boolean) and part.this)]


def disjuncts(expression: exp.Expr) -> list[exp.Expr]:
    """Return the alternatives of which one must be true."""
    return operands(expression, exp.Or)


def implied(conditions: Iterable[exp.Expr]) -> tuple[exp.Expr, ...]:
    """Return the conditions and what every alternative of an OR has in common: by that rows may find each other.

    >>> import sqlglot
    >>> [c.sql() for c in implied([sqlglot.parse_one("(a = b AND c) OR (a = b AND d)")])]
    ['a = b', '(a = b AND c) OR (a = b AND d)']
    """
    found: dict[exp.Expr, None] = {}
    for condition in conditions:
        if isinstance(condition, exp.Or):
            first, *others = [conjuncts(part) for part in disjuncts(condition)]
            found |= dict.fromkeys(part for part in first if all(part in other for other in others))
        found[condition] = None
    return tuple(found)


def all_of(parts: Iterable[exp.Expr]) -> exp.Expr:
    """Return the conjunction."""
    return exp.and_(*parts) if (parts := list(parts)) else exp.true()


def columns_in(expression: exp.Expr) -> Iterator[exp.Column]:
    """Yield the columns of an expression, without those of queries inside it."""
    return (node for node in walk_outside(expression) if isinstance(node, exp.Column))


def walk_outside(expression: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of an expression. A query inside is yielded and not entered."""
    return (node for node in expression.walk(prune=lambda node: isinstance(node, SUBQUERIES)))


def tables_in(expression: exp.Expr) -> frozenset[str]:
    """Return the aliases that an expression speaks of."""
    return frozenset(found.table for found in columns_in(expression))


def is_linked(expression: exp.Expr) -> bool:
    """Tell whether an expression speaks of an outer query."""
    return any(UNSETTLED in table for table in tables_in(expression))


def outer_names(expression: exp.Expr) -> str:
    """Return the columns of outer queries that an expression speaks of, as the author knows them.

    >>> outer_names(exp.EQ(this=column("o1", "x"), expression=column("s#2", "y")))
    's.y'
    >>> outer_names(column("_4#2", "y"))  # of a query in FROM that has no alias
    'y'
    """
    outer = [found for found in columns_in(expression) if UNSETTLED in found.table]
    aliases = [found.table.partition(UNSETTLED)[0] for found in outer]
    return ", ".join(
        dict.fromkeys(
            found.name if re.fullmatch(r"_\d+", alias) else f"{alias}.{found.name}"
            for found, alias in zip(outer, aliases, strict=True)
        )
    )


def settle(expression: exp.Expr, meant: Mapping[tuple[str, str], exp.Expr]) -> exp.Expr:
    """Return the expression with columns replaced by what they mean. Others stay."""

    def replaced(node: exp.Expr) -> exp.Expr | None:
        return meant.get((node.table, node.name)) if isinstance(node, exp.Column) else None

    return replace_parts(expression, replaced)


def replace_parts(expression: exp.Expr, replacement: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """Return the expression with its topmost parts replaced for which there is a replacement. Queries stay whole."""
    found = replacement(expression)
    if found is not None:
        copied = found.copy()
        return exp.paren(copied) if isinstance(copied, (exp.Binary, exp.Unary, exp.Between, exp.In)) else copied
    if isinstance(expression, SUBQUERIES):
        return expression.copy()
    result = type(expression)()  # not a copy of the whole tree, which would be copied again at every level of it
    result.meta.update(expression.meta)
    for key, value in expression.args.items():
        if isinstance(value, exp.Expr):
            result.set(key, replace_parts(value, replacement))
        elif isinstance(value, list):
            result.set(key, [replace_parts(v, replacement) if isinstance(v, exp.Expr) else v for v in value])
        else:
            result.set(key, value)
    return result


def split_equality(condition: exp.Expr, own: frozenset[str]) -> tuple[exp.Expr, exp.Expr] | None:
    """Return an equality's sides, own first, if one side speaks of own aliases alone and the other of none of them."""
    if not isinstance(condition, exp.EQ):
        return None
    left, right = condition.left, condition.right
    for mine, other in ((left, right), (right, left)):
        if tables_in(mine) and tables_in(mine) <= own and tables_in(other) and not tables_in(other) & own:
            return mine, other
    return None


def has_query(expression: exp.Expr) -> bool:
    """Tell whether a query stands inside an expression."""
    return any(isinstance(node, SUBQUERIES) for node in walk_outside(expression))


def null_of(kind: str) -> exp.Expr:
    """Return NULL with a type.

    >>> null_of("decimal(12,2)").sql(dialect="spark")
    'CAST(NULL AS DECIMAL(12, 2))'
    """
    return cast_to(exp.null(), held_type(kind))


def cast_to(value: exp.Expr, kind: str) -> exp.Expr:
    """Return a value as one of a Spark type."""
    return exp.cast(value, exp.DataType.build(kind, dialect="spark"))


def held_type(kind: str) -> str:
    """Return the type in which a node holds values of a type: NULL has none of its own, and is held as BOOLEAN.

    >>> held_type("void"), held_type("array<void>"), held_type("int")
    ('boolean', 'array<boolean>', 'int')
    """
    return re.sub(r"\bvoid\b", "boolean", kind)


def is_surely_null(value: exp.Expr) -> bool:
    """Tell whether a value is NULL because something in it is, all through arithmetic and casts."""
    bare = value.unnest()
    if isinstance(bare, exp.Null):
        return True
    if isinstance(bare, (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)):
        return is_surely_null(bare.left) or is_surely_null(bare.right)
    return isinstance(bare, (exp.Cast, exp.Neg)) and is_surely_null(bare.this)
