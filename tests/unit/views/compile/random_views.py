"""Views by chance: joins of all kinds, groups, sub-queries of all kinds, set operations, to a given depth.

All columns are integers, with NULLs among them, so that any two can be compared.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from headwater.model.relation import RelationName

RELATIONS = {"a.r": ("x", "y", "z"), "a.s": ("x", "w"), "b.t": ("y", "w", "k"), "b.u": ("id", "x")}
_COMPARISONS = ("=", "=", "=", "<>", "<", ">=", "<=>")


@dataclass
class Chance:
    """A source of random views."""

    random: random.Random
    count: int = 0
    tables: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(RELATIONS))

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def is_lucky(self, probability: float) -> bool:
        return self.random.random() < probability

    def view(self) -> str:
        text, _ = self.query(2, ())
        return text

    def query(self, depth: int, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        if depth > 0 and not outer and self.is_lucky(0.2):
            width = self.random.randint(1, 2)
            left, names = self.select(depth - 1, (), width)
            right, _ = self.select(depth - 1, (), width)
            word = self.pick("UNION ALL", "UNION", "INTERSECT", "EXCEPT")
            return f"{left} {word} {right}", names
        return self.select(depth, outer, self.random.randint(1, 3))

    def select(self, depth: int, outer: tuple[str, ...], width: int) -> tuple[str, tuple[str, ...]]:
        source, columns = self.source(depth)
        where = [self.predicate(depth, columns) for _ in range(self.random.randint(0, 2))]
        if outer and self.is_lucky(0.8):
            where.append(f"{self.random.choice(columns)} {self.pick('=', '=', '<')} {self.random.choice(outer)}")
        tail = f" FROM {source}" + (f" WHERE {' AND '.join(where)}" if where else "")
        if self.is_lucky(0.35):
            return self.grouped(columns, tail, width, outer)
        names = tuple(self.name("c") for _ in range(width))
        items = ", ".join(f"{self.value(columns, depth)} AS {name}" for name in names)
        distinct = "DISTINCT " if not outer and self.is_lucky(0.15) else ""
        return f"SELECT {distinct}{items}{tail}", names

    def grouped(
        self, columns: tuple[str, ...], tail: str, width: int, outer: tuple[str, ...]
    ) -> tuple[str, tuple[str, ...]]:
        keys = [] if self.is_lucky(0.25) else self.random.sample(columns, min(len(columns), self.random.randint(1, 2)))
        names = tuple(self.name("c") for _ in range(width))
        values = [
            self.aggregate(columns) if not keys or self.is_lucky(0.7) else self.random.choice(keys) for _ in names
        ]
        items = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        text = f"SELECT {items}{tail}"
        if keys:
            text += f" GROUP BY {', '.join(keys)}"
        if (keys or not outer) and self.is_lucky(0.3):
            text += f" HAVING {self.aggregate(columns)} {self.pick('>', '<=', '<>')} {self.random.randint(0, 4)}"
        return text, names

    def aggregate(self, columns: tuple[str, ...]) -> str:
        one, other = self.random.choice(columns), self.random.choice(columns)
        return self.pick(
            "COUNT(*)",
            f"COUNT({one})",
            f"SUM({one})",
            f"SUM({one} + {other})",
            f"MIN({one})",
            f"MAX({one})",
            f"COUNT(DISTINCT {one})",
            f"SUM({one}) FILTER (WHERE {other} > 1)",
            f"COUNT(*) FILTER (WHERE {other} = 1)",
            f"SUM(DISTINCT {one})",
        )

    def source(self, depth: int) -> tuple[str, tuple[str, ...]]:
        text, columns = self.item(depth)
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            other, more = self.item(depth - 1)
            kind = self.pick("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
            on = f"{self.random.choice(columns)} {self.pick('=', '=', '=', '<')} {self.random.choice(more)}"
            if self.is_lucky(0.3):
                on += f" AND {self.random.choice(columns + more)} {self.pick('>', '<>')} {self.random.randint(0, 3)}"
            text += f" {kind} {other} ON {on}"
            columns = columns if "SEMI" in kind or "ANTI" in kind else columns + more
        return text, columns

    def item(self, depth: int) -> tuple[str, tuple[str, ...]]:
        alias = self.name("t")
        if depth > 0 and self.is_lucky(0.35):
            text, names = self.query(depth - 1, ())
            return f"({text}) AS {alias}", tuple(f"{alias}.{name}" for name in names)
        table = self.random.choice(sorted(self.tables))
        return f"{table} AS {alias}", tuple(f"{alias}.{name}" for name in self.tables[table])

    def value(self, columns: tuple[str, ...], depth: int) -> str:
        one, other = self.random.choice(columns), self.random.choice(columns)
        if depth > 0 and self.is_lucky(0.1):
            return self.scalar(depth - 1, columns)
        return self.pick(
            one, one, one, f"{one} + {other}", f"COALESCE({one}, 7)", f"CASE WHEN {one} > 1 THEN {other} END"
        )

    def scalar(self, depth: int, columns: tuple[str, ...]) -> str:
        source, own = self.source(min(depth, 0))
        link = f" WHERE {self.random.choice(own)} = {self.random.choice(columns)}" if self.is_lucky(0.7) else ""
        function = self.pick("COUNT(*)", f"SUM({own[0]})", f"MAX({own[-1]})", f"COUNT({own[0]}) + 1")
        return f"(SELECT {function} FROM {source}{link})"

    def predicate(self, depth: int, columns: tuple[str, ...]) -> str:
        one = self.random.choice(columns)
        if depth > 0 and self.is_lucky(0.5):
            return self.tested(depth, one, columns)
        plain = f"{one} {self.random.choice(_COMPARISONS)} {self.random.choice((*columns, '1', '2'))}"
        return self.pick(plain, plain, f"({plain} OR {one} IS NULL)", f"{one} IN (0, 2)")

    def tested(self, depth: int, one: str, columns: tuple[str, ...]) -> str:
        linked = columns if self.is_lucky(0.6) else ()
        word = self.pick("EXISTS", "NOT EXISTS", "IN", "NOT IN", "compare", "either")
        if word == "compare":
            return f"{one} {self.pick('=', '<', '>=')} {self.scalar(depth - 1, columns)}"
        query, _ = self.select(depth - 1, linked, 1)
        exists = f"EXISTS ({query})"
        if word in {"IN", "NOT IN"}:
            return f"{one} {word} ({query})"
        if word == "either":
            inside = exists if self.is_lucky(0.5) else f"{one} {self.pick('IN', 'NOT IN')} ({query})"
            return f"({inside} OR {self.random.choice(columns)} = 1)"
        return exists if word == "EXISTS" else f"NOT {exists}"

    def rows(self) -> dict[RelationName, list[tuple[object, ...]]]:
        """Return rows for every relation; b.u has a key."""
        found = {}
        for name, columns in RELATIONS.items():
            source, table = name.split(".")
            count = self.random.choice((0, 1, 3, 5, 8))
            rows = [tuple(self.random.choice((None, 0, 1, 2, 3)) for _ in columns) for _ in range(count)]
            if table == "u":
                rows = [(place % 5, row[1]) for place, row in enumerate(rows[:5])]
            found[RelationName(source=source, name=table)] = rows
        return found
