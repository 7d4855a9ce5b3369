r"""Which sources to visit, one after another, until every term of a transaction has bound every occurrence.

A transaction that changes a relation with k appearances starts k terms. A visit asks one source, for all terms at once,
about every occurrence that is next to what a term has bound; so one visit may serve several terms.

    R - S - R, R changes      terms {1}, {3}      visit S: {1,2}, {2,3}      visit R: both are complete      2 visits

The states are the sets of bound occurrences, one for each term; visits lead from one to another; a shortest path is a
minimum plan. With `closure` a source goes on by itself from the rows it finds to its own next occurrences, so that one
visit binds all that hang together there.

What is not done: the search knows the shape of the view and not its rows. A probe that was asked before, or a term that
comes to nothing, makes a transaction cheaper than its plan; a row put back by rebasing whose onward keys a closure did
not ask for makes it dearer (PAPERS.md §3.2). Past `_LARGEST_EXACT` states the plan is only a good one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

Bound = frozenset[str]
_LARGEST_EXACT = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where the occurrences of a view are and which of them are next to each other.

    >>> chain = Layout.of({"s": "one", "r": "two", "q": "two"}, ["sr", "rq"], closure=False)
    >>> chain.reachable(frozenset("s"))
    ('r',)
    >>> sorted(chain.after_visit(frozenset("s"), "two"))
    ['r', 's']
    """

    sources: Mapping[str, str]
    neighbours: Mapping[str, Bound]
    closure: bool

    @staticmethod
    def of(sources: Mapping[str, str], edges: Iterable[Sequence[str]], *, closure: bool) -> Layout:
        """Build a layout from the source of each occurrence, in the view's order, and the pairs that are linked."""
        near: dict[str, set[str]] = {alias: set() for alias in sources}
        for left, right in edges:
            near[left].add(right)
            near[right].add(left)
        neighbours = {alias: frozenset(others) for alias, others in near.items()}
        return Layout(sources=sources, neighbours=neighbours, closure=closure)

    def reachable(self, bound: Bound) -> tuple[str, ...]:
        """Return the occurrences that can be asked for next; one that no equality leads to only when no other is left.

        >>> Layout.of({"a": "x", "b": "x", "c": "x"}, ["ab"], closure=False).reachable(frozenset("ab"))
        ('c',)
        """
        unbound = [alias for alias in self.sources if alias not in bound]
        linked = tuple(alias for alias in unbound if self.neighbours[alias] & bound)
        return linked or tuple(unbound[:1])

    def after_visit(self, bound: Bound, source: str) -> Bound:
        """Return what is bound after a visit to a source."""
        asked = frozenset(alias for alias in self.reachable(bound) if self.sources[alias] == source)
        after = bound | asked
        while self.closure and asked:
            near = frozenset().union(*(self.neighbours[alias] for alias in asked))
            asked = frozenset(alias for alias in near - after if self.sources[alias] == source)
            after |= asked
        return after


def plan(layout: Layout, terms: Iterable[Bound]) -> tuple[str, ...]:
    """Return the sources of a shortest series of visits that completes every term.

    >>> rsr = {"r1": "at r", "s": "at s", "r2": "at r"}
    >>> plan(Layout.of(rsr, [("r1", "s"), ("s", "r2")], closure=False), [frozenset({"r1"}), frozenset({"r2"})])
    ('at s', 'at r')
    >>> rrr = dict.fromkeys("abc", "at r")
    >>> [len(plan(Layout.of(rrr, ["ab", "bc"], closure=closure), map(frozenset, "abc"))) for closure in (False, True)]
    [2, 1]
    """
    start = tuple(dict.fromkeys(terms))
    paths: dict[tuple[Bound, ...], tuple[str, ...]] = {start: ()}
    waiting = [start]
    for state in waiting:
        if _is_complete(layout, state):
            return paths[state]
        if len(paths) > _LARGEST_EXACT:
            return paths[state] + _greedy(layout, state)
        for source in _useful(layout, state):
            following = _after(layout, state, source)
            if following not in paths:
                paths[following] = (*paths[state], source)
                waiting.append(following)
    raise AssertionError("every term can be completed: an occurrence that nothing leads to is read whole")


def _is_complete(layout: Layout, state: tuple[Bound, ...]) -> bool:
    return all(len(bound) == len(layout.sources) for bound in state)


def _useful(layout: Layout, state: tuple[Bound, ...]) -> tuple[str, ...]:
    """Return the sources where some term finds an occurrence to bind, in the order of the view."""
    useful = {layout.sources[alias] for bound in state for alias in layout.reachable(bound)}
    return tuple(dict.fromkeys(source for source in layout.sources.values() if source in useful))


def _after(layout: Layout, state: tuple[Bound, ...], source: str) -> tuple[Bound, ...]:
    """Return the state after a visit; terms that have bound the same occurrences are one from then on."""
    return tuple(dict.fromkeys(layout.after_visit(bound, source) for bound in state))


def _greedy(layout: Layout, state: tuple[Bound, ...]) -> tuple[str, ...]:
    """Return visits that each bind as much as can be."""
    visits: list[str] = []
    while not _is_complete(layout, state):
        source = max(_useful(layout, state), key=partial(_bound_count, layout, state))
        visits.append(source)
        state = _after(layout, state, source)
    return tuple(visits)


def _bound_count(layout: Layout, state: tuple[Bound, ...], source: str) -> int:
    return sum(len(layout.after_visit(bound, source)) for bound in state)
