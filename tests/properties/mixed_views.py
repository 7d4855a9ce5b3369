"""Views by chance that mix what is easily got wrong: NOT over memberships, NULLs without a type, aggregates of linked
aggregates, grouping sets in all spellings, GROUPING in windows, windows with names, relations that make no difference.
"""

from __future__ import annotations

from dataclasses import dataclass

from random_views import Chance


@dataclass
class Mixed(Chance):
    """A source of such views, small enough to be many."""

    def view(self) -> str:
        text, _ = self.query(1, ())
        if self.is_lucky(0.05):
            return f"WITH unused AS (SELECT w FROM a.s) {text}"
        return text

    def query(self, depth: int, outer: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        if depth > 0 and not outer and self.is_lucky(0.12):
            left, names = self.select(depth - 1, (), 2)
            right, [only] = self.select(depth - 1, (), 1)
            word = self.pick("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL")
            alias = self.name("q")
            return f"{left} {word} SELECT {alias}.{only}, NULL FROM ({right}) AS {alias}", names
        return super().query(depth, outer)

    def select(self, depth: int, outer: tuple[str, ...], width: int) -> tuple[str, tuple[str, ...]]:
        if not outer and self.is_lucky(0.2):
            return self.windowed(depth, width)
        return super().select(depth, outer, width)

    def windowed(self, depth: int, width: int) -> tuple[str, tuple[str, ...]]:
        source, columns = self.source(depth)
        names = tuple(self.name("c") for _ in range(width))
        window = f"PARTITION BY {self.pick('NULL', *columns)} ORDER BY {self.pick(*columns)}"
        calls = [
            self.pick(f"SUM({self.pick(*columns)}) OVER w2", "RANK() OVER w1", "COUNT(*) OVER w1", *columns)
            for _ in names
        ]
        items = ", ".join(f"{call} AS {name}" for call, name in zip(calls, names, strict=True))
        where = f" WHERE {self.predicate(depth, columns)}" if self.is_lucky(0.4) else ""
        return f"SELECT {items} FROM {source}{where} WINDOW w1 AS ({window}), w2 AS w1", names

    def grouped(
        self, columns: tuple[str, ...], tail: str, width: int, outer: tuple[str, ...]
    ) -> tuple[str, tuple[str, ...]]:
        if outer or self.is_lucky(0.5):
            return super().grouped(columns, tail, width, outer)
        keys = self.random.sample(columns, min(len(columns), 2))
        first, last = keys[0], keys[-1]
        sets = self.pick(
            f"{', '.join(keys)} WITH ROLLUP",
            f"{', '.join(keys)} WITH CUBE",
            f"ROLLUP ({', '.join(keys)})",
            f"{first}, CUBE ({last})",
            f"GROUPING SETS (({first}), (), ({first}, {last}))",
            f"GROUPING SETS (({first}, {last}), ROLLUP ({last}))",
        )
        values = [
            self.pick(
                self.aggregate(columns),
                first,
                f"GROUPING({first})",
                "GROUPING_ID()",
                f"RANK() OVER (PARTITION BY GROUPING({first}) ORDER BY {self.aggregate(columns)})",
                f"SUM(COUNT(*)) OVER (PARTITION BY {first})",
            )
            for _ in range(width)
        ]
        names = tuple(self.name("c") for _ in values)
        items = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        having = f" HAVING {self.predicate(0, tuple(keys))}" if self.is_lucky(0.3) else ""
        return f"SELECT {items}{tail} GROUP BY {sets}{having}", names

    def value(self, columns: tuple[str, ...], depth: int) -> str:
        if self.is_lucky(0.06):
            return f"COALESCE(NULL, {self.random.choice(columns)})"
        if depth > 0 and self.is_lucky(0.12):
            test = self.tested(depth, self.random.choice(columns), columns)
            return self.pick(
                f"CASE WHEN {test} THEN 1 ELSE 2 END",
                f"IF(NOT ({test}), 1, 0)",
                f"CASE WHEN NOT ({test} OR {self.plain(columns)}) THEN 1 END",
                f"CASE WHEN ({test}) IS NULL THEN 1 ELSE 0 END",
                f"CAST(COALESCE({test}, {self.plain(columns)}) AS INT)",
            )
        return super().value(columns, depth)

    def plain(self, columns: tuple[str, ...]) -> str:
        return f"{self.random.choice(columns)} {self.pick('=', '<', '>')} {self.random.choice((*columns, '1', '2'))}"

    def predicate(self, depth: int, columns: tuple[str, ...]) -> str:
        if depth > 0 and self.is_lucky(0.5):
            test, other = self.tested(depth, self.random.choice(columns), columns), self.plain(columns)
            return self.pick(
                f"NOT ({test} OR {other})",
                f"NOT ({test} AND {other})",
                f"NOT (NOT ({test}) AND ({other} OR NOT ({self.tested(depth, columns[0], columns)})))",
                f"({test}) = ({other})",
                f"({test}) IS NOT NULL",
                f"({test}) <=> ({other})",
                f"NOT CASE WHEN {test} THEN {other} ELSE FALSE END",
                f"({test} OR ({other} AND NOT ({test})))",
            )
        return super().predicate(depth, columns)

    def scalar(self, depth: int, columns: tuple[str, ...]) -> str:
        if self.is_lucky(0.5):
            return super().scalar(depth, columns)
        source, own = self.source(0)
        link = f" WHERE {self.random.choice(own)} = {self.random.choice(columns)}"
        one = self.random.choice(own)
        alias = self.name("q")
        count = self.pick("COUNT(*)", f"SUM({one})", f"COALESCE(MAX({one}), 0)")
        return self.pick(
            f"(SELECT SUM(n) FROM (SELECT {count} AS n FROM {source}{link}) AS {alias})",
            f"(SELECT n + 1 FROM (SELECT {count} AS n FROM {source}{link}) AS {alias})",
            f"(SELECT {count} FROM {source}{link} HAVING COUNT(*) <> 1)",
            f"(SELECT MAX(n) FROM (SELECT {count} AS n FROM {source}{link} GROUP BY {one}) AS {alias})",
            f"(SELECT COUNT(*) FROM (SELECT DISTINCT {one} AS n FROM {source}{link}) AS {alias})",
            f"(SELECT COUNT(n) FROM (SELECT {one} AS n FROM {source}{link}) AS {alias} WHERE n > 0)",
        )
