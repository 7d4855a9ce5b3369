"""Visits: bind all terms of a transaction together, one source at a time, asking nothing twice.

    terms {r1: d}, {r2: d}  ── visit S: the keys of both ──►  bound from one answer  ── visit R: both ──►  complete

Every visit asks a source that a minimum plan names (`visit_plan`), for all terms, about everything that is next to what
they have bound. Visits that need nothing of each other's answers make one round: they go out at once. With closure a
source goes on by itself to its own next occurrences and returns, for each, the rows it found *and the keys it looked
for*, not a join.

Coverage. Rebasing may put back a row that the source no longer had; where it leads on to was then not looked for. The
executed keys tell: a term goes on only if all of its keys were asked for, else the next visit asks for the uncovered
ones alone. Each such follow-up starts one occurrence deeper, so it costs at most what a walk would. What has been
delivered when a query is sent is known, so the keys that those changes lead on to travel with it and need no follow-up.

Papers: 003 §4 and 001 §4.1, corrected (PAPERS.md §3.2, §3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.deltas.signed_bag import Keys
from headwater.maintenance.probe_cache import Correct, ProbeCache
from headwater.maintenance.published.messages import VIEW, QueryPart, ViewHistory
from headwater.maintenance.published.terms import Term, TermStep, steps_to
from headwater.maintenance.rebase import rebase
from headwater.maintenance.visit_plan import Bound, Layout, next_round
from headwater.maintenance.walk import Questions, Round
from headwater.model.position import Tick
from headwater.model.relation import RelationName
from headwater.views.steps.join import JoinView


def all_covered(*, covered: bool, queried: bool) -> bool:  # noqa: ARG001 - that something was asked is not enough
    """Tell whether a term may bind an occurrence: when everything it needs of it was asked for."""
    return covered


def nowhere(view: JoinView, step: TermStep) -> bool:  # noqa: ARG001 - whatever the view shows
    """Tell whether a step looks for its rows in the view: none does, sources are asked for all of them."""
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How sources are visited: whether they go on by themselves, how answers are corrected, when a term may go on."""

    closure: bool
    looks: Callable[[JoinView, TermStep], bool] = nowhere
    """Whether a step reads the view's own rows before a source is asked (`self_maintenance`)."""
    together: Callable[[Layout, Sequence[Bound]], tuple[str, ...]] = next_round
    """Which sources are asked at once."""
    correct: Correct = rebase
    may_bind: Callable[..., bool] = all_covered


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A transaction as it begins: its terms, and the state that each needs of each occurrence."""

    terms: tuple[Term[Any], ...]
    changes: Mapping[RelationName, Any]
    needed: Callable[[str, str], Tick]
    """From an occurrence and the one a term started at to the tick that the term needs of it."""
    concurrent: Callable[[RelationName], Any]
    """The changes of a relation from this transaction on, as far as they have been delivered."""


def layout_of(view: JoinView, *, closure: bool) -> Layout:
    """Return where a view's occurrences are, for the planner."""
    sources = {occurrence.alias: occurrence.relation.name.source for occurrence in view.occurrences}
    return Layout.of(sources, [(edge.left, edge.right) for edge in view.edges], closure=closure)


def visit_sources(
    view: JoinView, begun: Begun, log: ViewHistory[Any], manner: Manner
) -> Questions[tuple[Term[Any], ...]]:
    """Bind every occurrence of every term, and return the terms of which something can come."""
    visits = _Visits(view, begun, log, manner)
    while True:
        visits.bind()
        unfinished = visits.unfinished()
        if not unfinished:
            return tuple(term for term in visits.terms if not term.is_empty)
        looks = visits.looks()
        sources = () if looks else manner.together(visits.layout, unfinished)
        asked: Round = ((VIEW, looks),) if looks else tuple((source, visits.parts(source)) for source in sources)
        arrived = [(yield asked)]
        while len(arrived) < len(asked):
            arrived.append((yield ()))
        for answered in arrived:
            for part in answered.results:
                for request, result in part:
                    visits.cache.keep(request, result)


class _Visits:
    """The terms of one transaction, as far as they are bound, and what was asked for."""

    def __init__(self, view: JoinView, begun: Begun, log: ViewHistory[Any], manner: Manner) -> None:
        self.layout = layout_of(view, closure=manner.closure)
        self.cache: ProbeCache[Any] = ProbeCache(like=begun.changes, log=log, correct=manner.correct)
        self.terms = list(begun.terms)
        self._starts = [next(iter(term.bound)) for term in begun.terms]
        self._view = view
        self._begun = begun
        self._manner = manner
        self._queried: set[tuple[int, str]] = set()
        self._looked: dict[str, Any] = {}

    def unfinished(self) -> list[frozenset[str]]:
        """Return what is bound in each term that can still come to something and has something left to bind."""
        everything = len(self.layout.sources)
        return [frozenset(t.bound) for t in self.terms if not t.is_empty and len(t.bound) < everything]

    def bind(self) -> None:
        """Bind every occurrence of every term whose rows are known."""
        for index, start in enumerate(self._starts):
            while (following := self._bound_further(index, start)) is not None:
                self.terms[index] = following

    def _bound_further(self, index: int, start: str) -> Term[Any] | None:
        term = self.terms[index]
        if term.is_empty:
            return None
        for alias in self.layout.reachable(frozenset(term.bound)):
            relation = self._relation(alias)
            for step in self._steps(term, alias):
                leading = None if step.via is None else term.bound[step.via]
                covered = self.cache.is_covered(relation, step, leading)
                if self._manner.may_bind(covered=covered, queried=(index, alias) in self._queried):
                    tick = self._begun.needed(alias, start)
                    return term.bind(alias, self.cache.rows(relation, step, leading, tick))
        return None

    def looks(self) -> tuple[QueryPart[Any], ...]:
        """Return what to look for in the view's own rows: missing keys that were not looked for before."""
        asked: dict[str, QueryPart[Any]] = {}
        for term in self.terms:
            for alias in () if term.is_empty else self.layout.reachable(frozenset(term.bound)):
                for step in self._steps(term, alias):
                    if step.via is None or not self._manner.looks(self._view, step):
                        continue
                    keys: Any = self.cache.missing(self._relation(alias), step, term.bound[step.via])
                    earlier = self._looked.get(alias)
                    if len(new := keys if earlier is None else keys.without(earlier)):
                        self._looked[alias] = new if earlier is None else earlier.plus(new)
                        also: Any = asked[alias].keys if alias in asked else new
                        asked[alias] = QueryPart(carried={}, steps=(step,), keys=new.plus(also))
        return tuple(asked.values())

    def parts(self, source: str) -> tuple[QueryPart[Any], ...]:
        """Return what to ask a source: the missing keys of everything next to what any term has bound, once."""
        asked: dict[tuple[Any, ...], QueryPart[Any]] = {}
        for index, term in enumerate(self.terms):
            if term.is_empty or len(term.bound) == len(self.layout.sources):
                continue
            bound = frozenset(term.bound)
            first = [alias for alias in self.layout.reachable(bound) if self.layout.sources[alias] == source]
            left = self.layout.after_visit(bound, source) - bound - set(first)
            self._queried |= {(index, alias) for alias in (*first, *left)}
            for alias in first:
                step = self._steps(term, alias)[0]
                leading = None if step.via is None else term.bound[step.via]
                keys = self.cache.missing(self._relation(alias), step, leading)
                for steps, own in self._paths(step, keys, sorted(left)):
                    self._merge(asked, steps, own)
                    left -= {one.alias for one in steps}
        return tuple(asked.values())

    def _paths(
        self, step: TermStep, keys: Keys | None, left: Sequence[str]
    ) -> list[tuple[tuple[TermStep, ...], Keys | None]]:
        """Return a step and all that follows it at its source, and what follows from the changes at the warehouse."""
        steps = [step]
        for _ in left:
            reached = [one.alias for one in steps]
            waiting = [alias for alias in left if alias not in reached]
            ways = [ways[0] for alias in waiting if (ways := steps_to(self._view, alias, reached))]
            if not ways:
                break
            steps.append(ways[0])
        paths: list[tuple[tuple[TermStep, ...], Keys | None]] = [(tuple(steps), keys)]
        for later in steps[1:]:
            assert later.via is not None, "a source goes on along equalities"
            changes = self._begun.concurrent(self._relation(later.via))
            if later.via == step.alias and keys is not None:
                changes = changes.matching(step.columns, keys)
            relation = self._relation(later.alias)
            if len(own := changes.keys(later.via_columns, self._begun.changes[relation], later.columns)):
                paths.append((_below(later, steps), own))
        return paths

    def _merge(self, asked: dict[tuple[Any, ...], QueryPart[Any]], steps: tuple[TermStep, ...], keys: Any) -> None:
        """Add a question. One that asks the same way as another only adds its keys to it."""
        places = [step.alias for step in steps]
        shape = tuple(
            (self._relation(step.alias), step.columns, step.via_columns if index else (), _place(places, step.via))
            for index, step in enumerate(steps)
        )
        earlier = asked.get(shape)
        if earlier is not None and earlier.keys is not None and keys is not None:
            keys = earlier.keys.plus(keys)
        asked[shape] = QueryPart(carried={}, steps=earlier.steps if earlier else steps, keys=keys)

    def _steps(self, term: Term[Any], alias: str) -> tuple[TermStep, ...]:
        return steps_to(self._view, alias, term.bound) or (TermStep(alias=alias, via=None),)

    def _relation(self, alias: str) -> RelationName:
        return self._view.occurrence(alias).relation.name


def _below(step: TermStep, steps: Sequence[TermStep]) -> tuple[TermStep, ...]:
    """Return a step and those that follow from it."""
    below = [step]
    for other in steps:
        if other.via in [one.alias for one in below]:
            below.append(other)
    return tuple(below)


def _place(aliases: Sequence[str], alias: str | None) -> int:
    """Return the number of the step that another one follows, or -1 for the first, which follows the warehouse."""
    return aliases.index(alias) if alias in aliases else -1
