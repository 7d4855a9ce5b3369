"""What random queries are made of: base relations, typed columns, literals, and a seeded source of choices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import TypeVar

from headwater.model.relation import Column, Relation, RelationName

T = TypeVar("T")

INT, TEXT, MONEY, DAY, TRUTH = "int", "string", "decimal(8,2)", "date", "boolean"
NULL_SHARE = 0.2

RELATIONS = tuple(
    Relation(
        name=RelationName(source=source, name=name),
        columns=tuple(Column(name=column, type=kind, native=kind) for column, kind in columns),
        key=key,
        not_null=frozenset(key),
    )
    for source, name, key, columns in (
        ("a", "r", (), (("x", INT), ("y", INT), ("s", TEXT), ("d", DAY))),
        ("a", "t", ("id",), (("id", INT), ("x", INT), ("m", MONEY), ("b", TRUTH))),
        ("b", "u", ("id",), (("id", INT), ("y", INT), ("s", TEXT))),
        ("b", "v", (), (("y", INT), ("m", MONEY), ("d", DAY))),
    )
)
"""Tables with a key and without, with each type twice, in two sources."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something that can stand in FROM: its text, and its columns with their types."""

    text: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DrawnQuery:
    """A SELECT, with its columns and their types."""

    text: str
    columns: tuple[tuple[str, str], ...]

    def as_item(self) -> Item:
        """Return it as what can stand in FROM."""
        return Item(f"({self.text})", self.columns)


@dataclass
class Chance:
    """A source of choices. The same seed gives the same ones."""

    random: random.Random
    names: int = field(default=0)
    views: list[Item] = field(default_factory=list)
    """The views that were drawn before and may be read."""
    read: list[str] = field(default_factory=list)
    """The names of those that were read."""

    def fresh(self, letter: str) -> str:
        """Return a name that was not used yet."""
        self.names += 1
        return f"{letter}{self.names}"

    def pick(self, *choices: T) -> T:
        """Return one of the choices."""
        return self.random.choice(choices)

    def some(self, choices: Sequence[T], least: int = 1) -> list[T]:
        """Return some of the choices, in their order."""
        count = self.random.randint(min(least, len(choices)), len(choices))
        kept = set(self.random.sample(range(len(choices)), count))
        return [choice for place, choice in enumerate(choices) if place in kept]

    def base(self) -> Item:
        """Return a base relation."""
        relation = self.random.choice(RELATIONS)
        return Item(str(relation.name), tuple((column.name, column.type) for column in relation.columns))

    def view(self) -> Item:
        """Return a view that was drawn before."""
        item = self.random.choice(self.views)
        self.read.append(item.text)
        return item

    def column(self, item: Item, alias: str, kind: str = INT) -> str:
        """Return a column of a type. Where there is none, an expression of that type over another column."""
        fitting = [name for name, type_ in item.columns if _family(type_) == kind]
        if fitting:
            return f"{alias}.{self.random.choice(fitting)}"
        name, type_ = self.random.choice(item.columns)
        return _converted(f"{alias}.{name}", _family(type_), kind)

    def any_column(self, item: Item, alias: str) -> tuple[str, str]:
        """Return a column and its type."""
        name, kind = self.random.choice(item.columns)
        return f"{alias}.{name}", kind

    def literal(self, kind: str) -> str:
        """Return a literal of a type, as Spark writes it."""
        value = self.value(kind, null_share=0.0)
        match value:
            case bool():
                return str(value).upper()
            case date():
                return f"DATE '{value}'"
            case Decimal():
                return f"CAST({value} AS DECIMAL(8,2))"
            case str():
                return f"'{value}'"
            case _:
                return str(value)

    def value(self, kind: str, null_share: float = NULL_SHARE) -> object:
        """Return a value of a type out of a few, so that rows meet, tie and stand twice."""
        if self.random.random() < null_share:
            return None
        match _family(kind):
            case "int":
                return self.random.choice((0, 1, 1, 2, 3, 7))
            case "string":
                return self.random.choice(("", "a", "A", "ab", "b", "zed"))
            case "date":
                return date(2024, 2, 27) + timedelta(days=self.random.randint(0, 4))
            case "boolean":
                return self.random.choice((True, False))
            case _:
                return Decimal(self.random.choice(("0.00", "1.25", "1.50", "-2.00", "10.00")))


def family(kind: str) -> str:
    """Return the type that stands for all types that can be compared with a type.

    >>> [family(kind) for kind in ("bigint", "decimal(18,2)", "string")]
    ['int', 'decimal(8,2)', 'string']
    """
    return _family(kind)


def _family(kind: str) -> str:
    if kind in {"tinyint", "smallint", "int", "bigint"}:
        return INT
    return MONEY if kind.startswith("decimal") or kind == "double" else kind


def _converted(text: str, kind: str, wanted: str) -> str:
    """Return an expression of a wanted type that depends on a value of another."""
    is_there = f"{text} IS NULL"
    match wanted:
        case "int":
            return f"LENGTH({text})" if kind == TEXT else f"CASE WHEN {is_there} THEN NULL ELSE 1 END"
        case "string":
            return f"CASE WHEN {is_there} THEN 'none' ELSE 'a' END"
        case "boolean":
            return f"({is_there})"
        case "date":
            return f"CASE WHEN {is_there} THEN DATE '2024-02-28' ELSE DATE '2024-03-01' END"
        case _:
            return f"CASE WHEN {is_there} THEN CAST(0.5 AS DECIMAL(8,2)) ELSE CAST(1.25 AS DECIMAL(8,2)) END"
