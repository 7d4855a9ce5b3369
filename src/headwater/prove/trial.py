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

from headwater.prove.chance import MONEY, RELATIONS, Chance, family
from headwater.prove.constructs import CONSTRUCTS
from headwater.relation import Relation, RelationName
from headwater.sources.scripted import Changes, Values

_FORMAT = 1
_MOST_ROWS = 9
_CUTS = (1, 5, 40, 100, 160)
"""So many transactions are in a batch: the smallest, some, and so many that few batches hold many states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """A view of a trial: its text, what it is made of, and how it is kept."""

    name: str
    sql: str
    constructs: tuple[str, ...]
    guarantee: str | None = None
    maintenance: str | None = None
    group_tables: bool = True


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
        told = json.loads(text)
        return cls(
            seed=told["seed"],
            views=tuple(TrialView(**{**view, "constructs": tuple(view["constructs"])}) for view in told["views"]),
            before=tuple(_read(one) for one in told["before"]),
            after=tuple(_read(one) for one in told["after"]),
            cuts=tuple(told["cuts"]),
        )

    def with_views(self, views: Iterable[TrialView]) -> Trial:
        """Return the same history with other views."""
        return replace(self, views=tuple(views))

    def of_sources(self, names: Collection[str]) -> Trial:
        """Return it without the transactions of other sources, which nobody follows."""
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
    held: dict[RelationName, Counter[Values]] = {relation.name: Counter() for relation in RELATIONS}
    sources = sorted({relation.name.source for relation in RELATIONS})
    before = tuple((source, _transaction(chance, source, held, fills=True)) for source in sources)
    after: list[tuple[str, Changes]] = []
    for _ in range(tick_count):
        changes: Changes = {}
        while not changes:
            source = chance.pick(*sources)
            changes = _transaction(chance, source, held, fills=False)
        after.append((source, changes))
    cuts: list[int] = []
    while sum(cuts) < tick_count:
        cuts.append(min(chance.pick(*_CUTS), tick_count - sum(cuts)))
    return Trial(seed=seed, views=(), before=before, after=tuple(after), cuts=tuple(cuts))


def draw_view(chance: Chance, name: str, constructs: Sequence[str]) -> TrialView:
    """Return a view in which constructs are put on top of each other, the first one at the bottom."""
    item = chance.base()
    for construct in constructs[:-1]:
        item = CONSTRUCTS[construct](chance, item).as_item()
    query = CONSTRUCTS[constructs[-1]](chance, item)
    return TrialView(
        name=name,
        sql=query.text,
        constructs=tuple(constructs),
        guarantee=chance.pick(None, None, None, "strong"),
        maintenance=chance.pick(None, None, "probe", "runtime", None),
        group_tables=chance.pick(True, True, False),
    )


def _transaction(
    chance: Chance, source: str, held: Mapping[RelationName, Counter[Values]], *, fills: bool
) -> dict[RelationName, dict[Values, int]]:
    """Draw what a transaction of a source does, and do it to the rows that are held."""
    own = [relation for relation in RELATIONS if relation.name.source == source]
    changes: dict[RelationName, dict[Values, int]] = {}
    for relation in own if fills else chance.some(own):
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


def _read(told: Mapping[str, Any]) -> tuple[str, Changes]:
    known = {str(relation.name): relation for relation in RELATIONS}
    return told["source"], {
        known[name].name: {
            tuple(_value(text, column.type) for text, column in zip(values, known[name].columns, strict=True)): count
            for count, *values in rows
        }
        for name, rows in told["changes"].items()
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
