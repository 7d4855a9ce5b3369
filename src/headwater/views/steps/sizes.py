"""How many rows there are of what a view reads: what the costs of a step are estimated from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from headwater.model.relation import Relation, RelationName
from headwater.views.steps.join import JoinView

OLD_AND_NEW = 2.0
"""A row that changes is one row that goes and one that comes."""


@dataclass(slots=True, kw_only=True)
class Sizes:
    """How many rows there are of what, and by what its rows are found one at a time."""

    rows: dict[RelationName, float]
    segments: Mapping[RelationName, Relation] = field(default_factory=dict)
    """The segments of the view, as they are described."""
    keys: dict[RelationName, frozenset[str]] = field(default_factory=dict)
    behind: dict[RelationName, float] = field(default_factory=dict)
    """Of segments that are not kept: how many rows are read to compute one of theirs."""
    beneath: dict[RelationName, float] = field(default_factory=dict)
    """Of segments that are not kept: how many rows there are to compute all of theirs from."""

    def of(self, name: RelationName) -> float:
        """Return how many rows a relation or segment has."""
        return max(1.0, self.rows.get(name, 1.0))

    def read(self, name: RelationName, rows: float) -> float:
        """Return how many rows are read to look up this many of a relation or segment: all there are, at most."""
        return min(rows * self.behind.get(name, 1.0), self.there(name))

    def there(self, name: RelationName) -> float:
        """Return how many rows can be read to know all of a relation or segment."""
        return self.beneath[name] if name in self.beneath else self.of(name)

    def is_key(self, relation: Relation, columns: tuple[str, ...]) -> bool:
        """Tell whether values of these columns find one row at most."""
        key = self.keys.get(relation.name) or frozenset(relation.key)
        return bool(key) and key <= set(columns)

    def found(self, relation: Relation, columns: tuple[str, ...], *, equal_to: float | None = None) -> float:
        """Return how many rows one value finds. `equal_to` values there are on the other side, if they are a key."""
        rows = self.of(relation.name)
        if self.is_key(relation, columns):
            return 1.0
        return rows / (math.sqrt(rows) if equal_to is None else min(rows, equal_to))

    def partition(self, name: RelationName, keys: tuple[str, ...]) -> float:
        """Return how many rows of a segment are in one partition by keys: all without keys."""
        return self.found(self.segments[name], keys) if keys else self.of(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fanout:
    """What one changed row of an input leads to: rows read, and changed rows of the output."""

    read: float
    changed: float


class Estimates(Protocol):
    """What is known of rows from the statistics of sources: the other way to estimate, which `advise` takes."""

    def rows(self, name: RelationName) -> float:
        """Return the rows of a relation or segment."""
        ...

    def groups(self, name: RelationName, keys: tuple[str, ...]) -> float:
        """Return how many different keys the rows of a relation or segment have."""
        ...

    def joined(self, join: JoinView) -> float:
        """Return how many rows a join gives."""
        ...
