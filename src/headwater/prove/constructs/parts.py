"""What constructs are made of: select lists, FROM items, and the three shapes that most of them have.

A construct takes what the one before it gave, so that any two can be put together, in either order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.prove.chance import DAY, INT, MONEY, TEXT, Chance, DrawnQuery, Item

Construct = Callable[[Chance, Item], DrawnQuery]
Condition = Callable[[Chance, Item, str], str]
Expression = Callable[[Chance, Item, str], tuple[str, str]]

COMPARE = ("=", "<>", "<", ">=", "<=>")


def select_some(chance: Chance, item: Item, alias: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return a select list of some columns under new names, and what they are."""
    kept = chance.some(item.columns, least=2)
    named = [(name, kind, chance.fresh("c")) for name, kind in kept]
    text = ", ".join(f"{alias}.{name} AS {new}" for name, _, new in named)
    return text, tuple((new, kind) for _, kind, new in named)


def read_as(chance: Chance, item: Item) -> tuple[str, str]:
    """Return a FROM item under a new alias, and the alias."""
    alias = chance.fresh("q")
    return f"{item.text} AS {alias}", alias


def filtered(condition: Condition) -> Construct:
    """Return the construct that keeps the rows of which a condition holds."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = read_as(chance, item)
        columns, kinds = select_some(chance, item, alias)
        return DrawnQuery(f"SELECT {columns} FROM {source} WHERE {condition(chance, item, alias)}", kinds)

    return construct


def valued(expression: Expression) -> Construct:
    """Return the construct that adds a computed column."""

    def construct(chance: Chance, item: Item) -> DrawnQuery:
        source, alias = read_as(chance, item)
        columns, kinds = select_some(chance, item, alias)
        value, kind = expression(chance, item, alias)
        name = chance.fresh("e")
        return DrawnQuery(f"SELECT {columns}, {value} AS {name} FROM {source}", (*kinds, (name, kind)))

    return construct


def one_of(*constructs: Construct) -> Construct:
    """Return the construct that is one of several, each time it is drawn: forms of one thing."""
    return lambda chance, item: chance.pick(*constructs)(chance, item)


def comparison(chance: Chance, item: Item, alias: str) -> str:
    """Return a comparison of two columns, or of a column with a literal."""
    kind = chance.pick(INT, TEXT, DAY, MONEY)
    left, right = chance.column(item, alias, kind), chance.column(item, alias, kind)
    return f"{left} {chance.pick(*COMPARE)} {chance.pick(right, chance.literal(kind))}"


def sub_query(chance: Chance, outer: Item, alias: str, *, is_linked: bool, columns: Sequence[str]) -> str:
    """Return a SELECT of columns of these types from a base relation, perhaps linked to the outer query."""
    other = chance.base()
    source, beside = read_as(chance, other)
    outputs = ", ".join(chance.column(other, beside, kind) for kind in columns) or "1"
    tests = [f"{chance.column(other, beside)} {chance.pick('=', '<', '>=')} {chance.literal(INT)}"]
    if is_linked:
        kind = chance.pick(INT, INT, TEXT)
        tests.append(f"{chance.column(other, beside, kind)} = {chance.column(outer, alias, kind)}")
    kept = chance.some(tests) if not is_linked else [tests[-1], *tests[: chance.pick(0, 1)]]
    return f"SELECT {outputs} FROM {source} WHERE {' AND '.join(kept)}"


def membership(chance: Chance, item: Item, alias: str, word: str, *, is_linked: bool) -> str:
    """Return the test whether a column is among the rows of a sub-query, or not."""
    kind = chance.pick(INT, INT, TEXT)
    query = sub_query(chance, item, alias, is_linked=is_linked, columns=(kind,))
    return f"{chance.column(item, alias, kind)} {word} ({query})"


def any_membership(chance: Chance, item: Item, alias: str) -> str:
    """Return a test of membership of any kind."""
    return membership(chance, item, alias, chance.pick("IN", "NOT IN"), is_linked=chance.pick(True, False))
