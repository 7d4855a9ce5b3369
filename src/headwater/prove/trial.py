"""A trial: some views, how each is kept, and a history of transactions, cut into batches. All of it is data.

A trial is drawn from a seed, or read from the file that an earlier one was written to.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Self

import msgspec

from headwater.model.relation import Relation, RelationName
from headwater.prove.chance import INT, MONEY, RELATIONS, Chance, Item, family
from headwater.prove.constructs.every import CONSTRUCTS
from headwater.sources.scripted import Changes, Values

_FORMAT = 1
_MOST_ROWS = 9
_CUTS: tuple[tuple[int, ...], ...] = ((), (), (), (1,), (5,), (40,), (1, 7), (200,))
"""How many transactions the first batches take; the last one takes the others, so that few batches hold many states."""
_RUNS = (1, 1, 2, 3, 8, 20)
"""How many transactions of one source follow each other."""
_STRONG_SHARE = 0.1
"""Such a view claims fewer states: those at the ends of batches."""
_NEVER_FILLED_SHARE = 0.06
"""Now and then a relation has no row, ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """A view of a trial: its text, what it is made of, and how it is kept."""

    name: str
    sql: str
    constructs: tuple[str, ...]
    guarantee: str | None = None
    maintenance: str | None = None
    group_tables: bool = True
    algorithm: str | None = None
    """A published algorithm that keeps it; the engine's own without one."""
    lower: tuple[tuple[str, str], ...] = ()
    """Names and texts of the views that it reads, itself or through others, each after those that it reads."""

    @property
    def whole_text(self) -> str:
        """Its text after those of the views that it reads."""
        return ";\n".join([*(sql for _, sql in self.lower), self.sql])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Views, the transactions before they are born and after, and how many of these each batch takes."""

    seed: int
    views: tuple[TrialView, ...]
    before: tuple[tuple[str, Changes], ...]
    after: tuple[tuple[str, Changes], ...]
    cuts: tuple[int, ...]

    def text(self) -> str:
        """Return the trial as the text of a file that `read` reads."""
        return json.dumps(
            {
                "format": _FORMAT,
                "seed": self.seed,
                "views": [asdict(view) for view in self.views],
                "before": [_written(source, changes) for source, changes in self.before],
                "after": [_written(source, changes) for source, changes in self.after],
                "cuts": list(self.cuts),
            },
            indent=1,
        )

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the trial that a text tells."""
        stored = json.loads(text)
        return cls(
            seed=stored["seed"],
            views=msgspec.convert(stored["views"], tuple[TrialView, ...]),
            before=tuple(_read(one) for one in stored["before"]),
            after=tuple(_read(one) for one in stored["after"]),
            cuts=tuple(stored["cuts"]),
        )

    def with_views(self, views: Iterable[TrialView]) -> Trial:
        """Return the same history with other views."""
        return replace(self, views=tuple(views))

    def of_sources(self, names: Collection[str]) -> Trial:
        """Return it without the transactions of sources that no view reads."""
        after, cuts, start = [], [], 0
        for count in self.cuts:
            kept = [one for one in self.after[start : start + count] if one[0] in names]
            after += kept
            cuts += [len(kept)] if kept else []
            start += count
        before = tuple(one for one in self.before if one[0] in names)
        return replace(self, before=before, after=tuple(after), cuts=tuple(cuts))


def draw_history(seed: int, tick_count: int) -> Trial:
    """Return a trial without views: rows that are there before, and transactions of both sources."""
    chance = Chance(random=random.Random(seed))  # noqa: S311 - reproducible on purpose
    filled = [one for one in RELATIONS if chance.random.random() >= _NEVER_FILLED_SHARE] or list(RELATIONS)
    held: dict[RelationName, Counter[Values]] = {relation.name: Counter() for relation in filled}
    sources = sorted({relation.name.source for relation in filled})
    before = tuple((source, _transaction(chance, source, held, fills=True)) for source in sources)
    after: list[tuple[str, Changes]] = []
    while len(after) < tick_count:
        source = chance.pick(*sources)
        for _ in range(min(chance.pick(*_RUNS), tick_count - len(after))):
            changes: Changes = {}
            while not changes:
                changes = _transaction(chance, source, held, fills=False)
            after.append((source, changes))
    first = chance.pick(*_CUTS)
    cuts = (*first, tick_count - sum(first)) if sum(first) < tick_count else (tick_count,)
    return Trial(seed=seed, views=(), before=before, after=tuple(after), cuts=cuts)


def draw_view(chance: Chance, name: str, constructs: Sequence[str], others: Mapping[str, TrialView]) -> TrialView:
    """Return a view in which constructs are put on top of each other, the first one at the bottom.

    It may read others, which were drawn before.
    """
    chance.names, chance.read = 0, []  # what is made of the same has the same text
    item = chance.base()
    for construct in constructs[:-1]:
        item = CONSTRUCTS[construct](chance, item).as_item()
    query = CONSTRUCTS[constructs[-1]](chance, item)
    chance.views.append(Item(name, query.columns))
    below = [pair for read in chance.read for pair in (*others[read].lower, (read, others[read].sql))]
    return TrialView(
        name=name,
        sql=query.text,
        constructs=tuple(constructs),
        guarantee="strong" if chance.random.random() < _STRONG_SHARE else None,
        maintenance=chance.pick(None, None, None, "self", "probe", "runtime"),
        group_tables=chance.pick(True, True, False),
        lower=tuple(dict.fromkeys(below)),
    )


def draw_published(chance: Chance, name: str, algorithms: Sequence[str]) -> TrialView:
    """Return a join that shows the keys of its relations, kept by a published algorithm."""
    tables = [chance.pick(("a.t", "x"), ("b.u", "y")) for _ in range(chance.pick(2, 2, 3))]
    joined = f"{tables[0][0]} AS q0"
    for number, (table, column) in enumerate(tables[1:], 1):
        before = chance.random.randrange(number)
        joined += f" JOIN {table} AS q{number} ON q{number}.{column} = q{before}.{tables[before][1]}"
    columns = ", ".join(
        f"q{number}.id AS k{number}, q{number}.{tables[number][1]} AS c{number}" for number in range(len(tables))
    )
    kept = chance.pick("", f" WHERE q0.{tables[0][1]} <> {chance.literal(INT)}")
    return TrialView(
        name=name,
        sql=f"SELECT {columns} FROM {joined}{kept}",
        constructs=("join", "published algorithm"),
        maintenance="probe",
        algorithm=chance.pick(*algorithms),
    )


def _transaction(
    chance: Chance, source: str, held: Mapping[RelationName, Counter[Values]], *, fills: bool
) -> dict[RelationName, dict[Values, int]]:
    """Draw what a transaction of a source does, and do it to the rows that are held."""
    own = [relation for relation in RELATIONS if relation.name.source == source and relation.name in held]
    changes: dict[RelationName, dict[Values, int]] = {}
    for relation in own if fills or chance.pick(True, False) else chance.some(own):
        rows = held[relation.name]
        change: Counter[Values] = Counter()
        there = list(rows.elements())
        if chance.random.random() < _EMPTYING_SHARE and not fills:
            change.subtract(there)
        else:
            change.subtract(chance.random.sample(there, min(len(there), chance.pick(0, 1, 1, 2))))
            for _ in range(chance.pick(3, 5) if fills else chance.pick(0, 1, 1, 2)):
                row = _row(chance, relation)
                if len(there) + change.total() < _MOST_ROWS and _is_free(relation, row, rows, change):
                    change[row] += 1
        rows.update(change)
        changed = {row: count for row, count in change.items() if count}
        if changed:
            changes[relation.name] = changed
    return changes


_EMPTYING_SHARE = 0.04
"""Now and then a transaction empties a relation."""


def _row(chance: Chance, relation: Relation) -> Values:
    return tuple(
        chance.random.randint(0, 12) if column.name in relation.key else chance.value(column.type)
        for column in relation.columns
    )


def _is_free(relation: Relation, row: Values, rows: Counter[Values], change: Counter[Values]) -> bool:
    """Tell whether no row with the same key is there after the change."""
    width = len(relation.key)
    return not width or all(
        rows[other] + change[other] <= 0 for other in (*rows, *change) if other[:width] == row[:width]
    )


def _written(source: str, changes: Changes) -> dict[str, Any]:
    return {
        "source": source,
        "changes": {
            str(name): [
                [count, *(None if value is None else str(value) for value in row)] for row, count in rows.items()
            ]
            for name, rows in changes.items()
        },
    }


def _read(stored: Mapping[str, Any]) -> tuple[str, Changes]:
    known = {str(relation.name): relation for relation in RELATIONS}
    return stored["source"], {
        known[name].name: {
            tuple(_value(text, column.type) for text, column in zip(values, known[name].columns, strict=True)): count
            for count, *values in rows
        }
        for name, rows in stored["changes"].items()
    }


def _value(text: str | None, kind: str) -> object:
    if text is None:
        return None
    match family(kind):
        case "int":
            return int(text)
        case "boolean":
            return text == "True"
        case "date":
            return date.fromisoformat(text)
        case "string":
            return text
        case _:
            assert family(kind) == MONEY
            return Decimal(text)
