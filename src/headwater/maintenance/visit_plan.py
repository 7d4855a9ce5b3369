r"""Which sources to visit, one after another, until every term of a transaction has bound every occurrence.

A transaction that changes a relation with k appearances starts k terms. A visit asks one source, for all terms at once,
about every occurrence that is next to what a term has bound; so one visit may serve several terms.

    R - S - R, R changes      terms {1}, {3}      visit S: {1,2}, {2,3}      visit R: both are complete      2 visits

The states are the sets of bound occurrences, one for each term; visits lead from one to another; a shortest path is a
minimum plan. With `closure` a source goes on by itself from the rows it finds to its own next occurrences, so that one
visit binds all that hang together there.

What is not done: the search knows the shape of the view and not its rows. A probe that was asked before, or a term that
comes to nothing, makes a transaction cheaper than its plan; a row put back by rebasing whose onward keys a closure did
not ask for makes it dearer (PAPERS.md §3.2). Past `_LARGEST_EXACT` states the plan goes along a tree (`probe_plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headwater.maintenance.probe_plan import plan_visits

Bound = frozenset[str]
_State = tuple[Bound, ...]
_LARGEST_EXACT = 5_000


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
        """Return the occurrences that can be asked for next. One that no equality leads to only when no other is left.

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
    moves = _Moves(layout)
    start = tuple(dict.fromkeys(terms))
    paths: dict[_State, tuple[str, ...]] = {start: ()}
    waiting = [start]
    for state in waiting:
        if moves.is_complete(state):
            return paths[state]
        if len(paths) > _LARGEST_EXACT:
            return _along_a_tree(moves, start)
        for source in moves.useful(state):
            following = moves.after(state, source)
            if following not in paths:
                paths[following] = (*paths[state], source)
                waiting.append(following)
    raise AssertionError("every term can be completed: an occurrence that nothing leads to is read whole")


def next_round(layout: Layout, terms: Iterable[Bound]) -> tuple[str, ...]:
    """Return the visits of a minimum plan that need no answer of one before them. They can go out at once.

    That is so where a visit binds the same occurrences now as it would in its turn.

    >>> star = Layout.of({"f": "f", "d": "d", "e": "e"}, [("f", "d"), ("f", "e")], closure=False)
    >>> next_round(star, [frozenset("f")]), next_round(star, [frozenset("d")])
    (('d', 'e'), ('f',))
    """
    now = tuple(terms)
    later, chosen = now, list[str]()
    for source in plan(layout, now):
        found = [layout.after_visit(bound, source) - bound for bound in later]
        if source not in chosen and found == [layout.after_visit(bound, source) - bound for bound in now]:
            chosen.append(source)
        later = tuple(layout.after_visit(bound, source) for bound in later)
    return tuple(chosen)


def round_count(layout: Layout, terms: Iterable[Bound]) -> int:
    """Return how many rounds complete every term: one after another, each of visits that go out at once.

    >>> chain = Layout.of({alias: alias for alias in "abc"}, ["ab", "bc"], closure=False)
    >>> round_count(chain, [frozenset("b")]), round_count(chain, [frozenset("a")])
    (1, 2)
    """
    state, rounds = tuple(terms), 0
    while any(len(bound) < len(layout.sources) for bound in state):
        sources = next_round(layout, state)
        bound_by = [[layout.after_visit(bound, source) for source in sources] for bound in state]
        state = tuple(bound.union(*reached) for bound, reached in zip(state, bound_by, strict=True))
        rounds += 1
    return rounds


class _Moves:
    """Where visits lead to. The same sets of bound occurrences come up again and again, so they are remembered."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._sources = tuple(dict.fromkeys(layout.sources.values()))
        self._after: dict[Bound, dict[str, Bound]] = {}

    def is_complete(self, state: _State) -> bool:
        return all(len(bound) == len(self.layout.sources) for bound in state)

    def useful(self, state: _State) -> tuple[str, ...]:
        """Return the sources where some term finds an occurrence to bind, in the order of the view."""
        return tuple(source for source in self._sources if any(source in self._from(bound) for bound in state))

    def after(self, state: _State, source: str) -> _State:
        """Return the state after a visit. Terms that have bound the same occurrences are one from then on."""
        return tuple(dict.fromkeys(self._from(bound).get(source, bound) for bound in state))

    def _from(self, bound: Bound) -> Mapping[str, Bound]:
        """Return where each visit that binds something leads to."""
        if bound not in self._after:
            near = {self.layout.sources[alias] for alias in self.layout.reachable(bound)}
            self._after[bound] = {source: self.layout.after_visit(bound, source) for source in near}
        return self._after[bound]


def _along_a_tree(moves: _Moves, state: _State) -> tuple[str, ...]:
    """Return the useful visits along a tree of the join graph: from the leaves to the root, and back."""
    neighbours = moves.layout.neighbours
    edges = [(alias, near) for alias, others in neighbours.items() for near in others]
    trees = plan_visits(neighbours, edges)
    inwards = [alias for tree in trees for level in reversed(tree.levels[:-1]) for alias in level]
    outwards = [alias for tree in trees for level in tree.levels for alias in level]
    visits: list[str] = []
    while not moves.is_complete(state):
        for source in (moves.layout.sources[alias] for alias in (*inwards, *outwards)):
            if source in moves.useful(state):
                visits.append(source)
                state = moves.after(state, source)
    return tuple(visits)
