"""What a view is computed from, before names and order are given to it: nodes that read nodes.

    Source ──► Joined ──► Grouped ──► Joined ──► ... ──► the view

A `Frame` is a join that is still being written: what FROM has read so far, and what must be true. Joins of joins become
one join while they are frames; a frame becomes a `Joined` node when something other than a join reads it.

Two kinds of columns appear in expressions. `o3`.`c1` is a column of an occurrence. A table with a `#` in it (`s#2`) is
a name of the SQL text that has not been settled: alias s of SELECT number 2. If it is found in a frame's `columns`, it
means what stands there; if it is not, it belongs to an outer query, and the condition that has it is a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from headwater.model.relation import Column, Relation
from headwater.views.steps.computed import Aggregates, First, Windows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SourceRelation:
    """A relation of a source."""

    relation: Relation

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its columns."""
        return self.relation.columns

    @property
    def never_null(self) -> frozenset[str]:
        """The columns that never hold NULL."""
        return self.relation.not_null | frozenset(self.relation.key)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joined:
    """A finished join. `values` give the columns."""

    occurrences: tuple[PlannedOccurrence, ...]
    conditions: tuple[exp.Expr, ...]
    values: tuple[exp.Expr, ...]
    columns: tuple[Column, ...]
    never_null: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouped:
    """One row per key: the keys, `ROWS`, and `total_of` and `known_of` each column of `totals`."""

    input: Node
    keys: tuple[str, ...]
    totals: tuple[str, ...]
    columns: tuple[Column, ...]
    never_null: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regrouped:
    """What is computed within partitions. `why` is the code of the reason."""

    input: Node
    keys: tuple[str, ...]
    computed: Aggregates | Windows | First
    why: str
    columns: tuple[Column, ...]
    never_null: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """An input of a union: which of its columns, in the union's order, and whether they are added or taken away."""

    node: Node
    names: tuple[str, ...]
    sign: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class United:
    """The signed sum of branches."""

    branches: tuple[Branch, ...]
    columns: tuple[Column, ...]
    never_null: frozenset[str] = frozenset()


Node = SourceRelation | Joined | Grouped | Regrouped | United

ROWS = "rows"


def total_of(column: str) -> str:
    """Return the name of the column that holds the total of another."""
    return f"total_{column}"


def known_of(column: str) -> str:
    """Return the name of the column that holds how many values of another are known."""
    return f"known_{column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOccurrence:
    """One appearance of a node in a join. A test is there so that something can be tested, and is nobody's lineage.

    `written` is the author's alias, if it is a relation that the view's own FROM names; else empty.
    """

    alias: str
    node: Node
    is_test: bool = False
    written: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A join that is being written: `columns` says what each name of the text means in it."""

    occurrences: tuple[PlannedOccurrence, ...]
    conditions: tuple[exp.Expr, ...]
    columns: Mapping[tuple[str, str], exp.Expr]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A query, compiled up to its last join: its columns' names and values.

    `empty` are the values where the query has no row but the text promises one: an aggregate without GROUP BY, computed
    per value of its links; None if no row is promised.
    """

    occurrences: tuple[PlannedOccurrence, ...]
    conditions: tuple[exp.Expr, ...]
    names: tuple[str, ...]
    values: tuple[exp.Expr, ...]
    empty: tuple[exp.Expr, ...] | None = None

    @property
    def is_join_of_relations(self) -> bool:
        """Whether it reads relations of sources and nothing else."""
        return all(isinstance(one.node, SourceRelation) for one in self.occurrences)
