"""Terms: a view's change as a sum of products, one bag of rows for each occurrence.

    change of V = sum over terms of  rows(o1) join rows(o2) join ... rows(on)          counts multiply, signs included

What the published algorithms compute step by step is such a sum. They differ in what they bind an occurrence to: the
rows of a change, an answer with the concurrent changes taken out, an answer as it came and another term that takes
the error out again. Nothing is joined while an algorithm runs: each occurrence keeps its own rows, and the view's own
conditions join them once, when the change is installed. On Spark that is one job for any number of terms, because the
number of the term is a column that the join compares.

A change carries its sign once, in the rows of the occurrence that changed. (Paper 000 merges two halves that both carry
it: a delete then comes out as an insert, and duplicates are squared.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from headwater.deltas.lookup import B
from headwater.model.position import Tick
from headwater.views.steps.join import JoinView


@dataclass(frozen=True, slots=True, kw_only=True)
class Term(Generic[B]):
    """One product: the rows of each occurrence bound so far, and the tick at which what it gives comes or goes."""

    tick: Tick
    bound: Mapping[str, B] = field(default_factory=dict)

    def bind(self, alias: str, rows: B) -> Term[B]:
        """Return the term with one more occurrence bound, or with one bound to other rows."""
        return Term(tick=self.tick, bound={**self.bound, alias: rows})

    def at(self, tick: Tick) -> Term[B]:
        """Return the term as part of another tick's change."""
        return Term(tick=tick, bound=self.bound)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can come of it any more: some occurrence has no rows."""
        return any(not len(rows) for rows in self.bound.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class TermStep:
    """Ask an occurrence for the rows that join the rows of another one, by equal columns, or for all of its rows."""

    alias: str
    via: str | None
    columns: tuple[str, ...] = ()
    via_columns: tuple[str, ...] = ()


def steps_from(view: JoinView, bound: set[str], within: set[str] | None = None) -> tuple[TermStep, ...]:
    """Return the order in which a sweep binds what is not bound: to the left first, then to the right.

    An occurrence is asked through a neighbour that is bound by then; one that no equality leads to is read whole.
    """
    places = {occurrence.alias: place for place, occurrence in enumerate(view.occurrences)}
    start = min(places[alias] for alias in bound)
    visited = set(bound)
    waiting = [alias for alias in places if alias not in bound and (within is None or alias in within)]
    waiting.sort(key=lambda alias: (places[alias] > start, abs(places[alias] - start)))
    steps: list[TermStep] = []
    while waiting:
        linked = [ways[0] for alias in waiting if (ways := steps_to(view, alias, visited))]
        following = linked[0] if linked else TermStep(alias=waiting[0], via=None)
        steps.append(following)
        waiting.remove(following.alias)
        visited.add(following.alias)
    return tuple(steps)


def steps_to(view: JoinView, alias: str, visited: Collection[str]) -> tuple[TermStep, ...]:
    """Return the ways in which an occurrence is reached from the known ones: one for each edge that leads to it."""
    ways: list[TermStep] = []
    for edge in view.edges:
        own = tuple(left for left, _ in edge.pairs)
        theirs = tuple(right for _, right in edge.pairs)
        if edge.left == alias and edge.right in visited:
            ways.append(TermStep(alias=alias, via=edge.right, columns=own, via_columns=theirs))
        if edge.right == alias and edge.left in visited:
            ways.append(TermStep(alias=alias, via=edge.left, columns=theirs, via_columns=own))
    return tuple(ways)


def started_terms(view: JoinView, tick: Tick, changes: Mapping[Any, B]) -> tuple[Term[B], ...]:
    """Return one term for each occurrence that a transaction changed, in the order of the occurrences.

    In the term of occurrence p those before p are needed as they are after the transaction, those after p as they were
    before it: every combination of two changed occurrences then counts once.
    """
    return tuple(
        Term(tick=tick, bound={occurrence.alias: changes[occurrence.relation.name]})
        for occurrence in view.occurrences
        if len(changes[occurrence.relation.name])
    )


def needed_at(view: JoinView, alias: str, start: str, tick: Tick) -> Tick:
    """Return the state in which a term that a tick started at one occurrence needs another: after it, or before it."""
    aliases = [occurrence.alias for occurrence in view.occurrences]
    return tick if aliases.index(alias) < aliases.index(start) else Tick(tick - 1)
