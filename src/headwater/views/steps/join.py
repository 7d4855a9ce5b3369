"""A select-project-join view, understood: which relations it reads, how they join, what it keeps, what it gives.

    view = π outputs (σ conditions (occurrence ⋈ occurrence ⋈ ...))

All expressions are sqlglot trees whose columns are written `alias`.`column`, with the alias of an occurrence and the
column as the catalog spells it. The trees are shared and are never edited in place.

Invariants
1. Aliases are unique without regard to case; so are the names of outputs.
2. Every column of a condition or an output is among its occurrence's `columns`.
3. A row is in the view as often as it can be combined from one row of each occurrence for which every condition is
   TRUE (not FALSE, not NULL).
4. An edge repeats conditions of the form `a.x = b.y`: leaving edges out changes cost, never results. So do selections,
   of the form `a.x < 5`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from headwater.deltas.extent import NOTHING, Extent
from headwater.deltas.selection import Selection
from headwater.model.relation import Relation, RelationName
from headwater.views.steps.local_selections import local_selections


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One appearance of a relation. `columns` are those the view needs, in the relation's order, at least one.

    A test is there so that something can be tested, and is nobody's lineage: rows of a query around it, repeated, or
    what must be known of a query that must not have a row.
    """

    alias: str
    relation: Relation
    columns: tuple[str, ...]
    is_test: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """Equal columns of two occurrences, by which rows of one find the rows of the other: a probe follows an edge.

    Both columns of a pair hold the same kind of value, so that equality on the source and on Spark agree. No column is
    in two pairs: where `a.x = b.y AND a.x = b.z`, one of them finds the rows and the conditions sort out the rest.
    """

    left: str
    right: str
    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A conjunct of WHERE or of a join's ON: rows stay for which it is TRUE. `fallible`: it may raise on some rows."""

    expression: exp.Expr
    aliases: frozenset[str]
    fallible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A column of the view: its name and the expression that gives its value. `fallible`: it may raise on some rows."""

    name: str
    expression: exp.Expr
    fallible: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinView:
    """A view of selections, projections and inner joins. `sql` is it as one SELECT over its relations."""

    name: str
    sql: str
    occurrences: tuple[Occurrence, ...]
    edges: tuple[Edge, ...]
    conditions: tuple[Condition, ...]
    outputs: tuple[Output, ...]
    relations: Mapping[RelationName, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    """The relations this view reads, each with the columns that any of its occurrences needs."""
    selections: Mapping[str, tuple[Selection, ...]] = field(init=False, repr=False, compare=False)
    """By alias, what a row has to pass to join anything at all."""
    extents: Mapping[RelationName, Extent] = field(init=False, repr=False, compare=False)
    """By relation, the rows that some occurrence can join with anything; it makes no difference if others are there."""

    def __post_init__(self) -> None:
        """Gather the relations and what is selected of them, once: algorithms ask for them at every step."""
        needed: dict[RelationName, tuple[str, ...]] = {}
        for occurrence in self.occurrences:
            known = {*needed.get(occurrence.relation.name, ()), *occurrence.columns}
            needed[occurrence.relation.name] = tuple(n for n in occurrence.relation.column_names if n in known)
        object.__setattr__(self, "relations", needed)
        selections = {occurrence.alias: self._selections(occurrence) for occurrence in self.occurrences}
        object.__setattr__(self, "selections", selections)
        extents: dict[RelationName, Extent] = {}
        for occurrence in self.occurrences:
            others = extents.get(occurrence.relation.name, NOTHING)
            extents[occurrence.relation.name] = others.plus(Extent.of(selections[occurrence.alias]))
        object.__setattr__(self, "extents", extents)

    def _selections(self, occurrence: Occurrence) -> tuple[Selection, ...]:
        own = [c.expression for c in self.conditions if c.aliases == {occurrence.alias}]
        return tuple(found for expression in own for found in local_selections(expression, occurrence.relation))

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the view's columns, in order."""
        return tuple(output.name for output in self.outputs)

    @property
    def fallible(self) -> bool:
        """Whether some condition or output may raise, so that rows must be netted before it is evaluated."""
        return any(condition.fallible for condition in self.conditions) or any(o.fallible for o in self.outputs)

    def occurrence(self, alias: str) -> Occurrence:
        """Return the occurrence of that alias. Asking for one that is not there is a bug of the caller."""
        return next(occurrence for occurrence in self.occurrences if occurrence.alias == alias)
